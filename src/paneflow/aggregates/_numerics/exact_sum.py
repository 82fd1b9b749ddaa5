"""A float64 sum without rounding, held in a row of integers: what `sum(exact=True)` carries.

A float64 sum depends on the order of its additions, and engines merge slices in different orders.
This sum is an integer instead: every finite double is a whole multiple of 2^-1074, so a fixed-point
number that is wide enough for the whole range holds any sum of doubles exactly, and the order of
integer additions does not matter. It is rounded once, when a window is lowered.

The number is cut into limbs of 32 bits, each in an int64 cell of its own. Limbs are signed and may
grow beyond 32 bits: carries are postponed until a limb could overflow, about once in a billion
additions. The cell `PENDING` bounds the growth: no limb but the last exceeds `PENDING` times
2^32 - 1. Infinities and NaN do not fit into a fixed-point number; three more cells count them.

Kulisch's long accumulator, in the variant of Neal, "Fast exact summation using small and large
superaccumulators" (2015), with limbs that do not overlap.

`absorb` and `combine` are plain Python so that they can be compiled into the loops around them.
"""

from __future__ import annotations

import math

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from paneflow.compiling import compiled

Row = NDArray[np.int64]

# The largest double is below 2^1024, the smallest is 2^-1074: 2098 bits. 68 limbs leave 78 bits
# for the growth of the sum, more than 2^63 additions can use.
LIMBS = 68
PENDING = 68
PLUS_INFINITIES = 69
MINUS_INFINITIES = 70
NANS = 71
WIDTH = 72
"""How many int64 cells a row has. A row of zeros is the empty sum."""

LIMB_MASK = 0xFFFFFFFF
MOST_PENDING = 1 << 30


def carry(row: Row) -> None:
    """Bring every limb but the last into 0 <= limb < 2^32, in place; the value stays the same."""
    moved = 0
    for i in range(LIMBS - 1):
        limb = row[i] + moved
        row[i] = limb & LIMB_MASK
        moved = limb >> 32
    row[LIMBS - 1] += moved
    row[PENDING] = 1


def absorb(row: Row, x: float) -> Row:
    """Add one value to a row, in place, and return the row.

    >>> import numpy as np
    >>> row = np.zeros(WIDTH, np.int64)
    >>> for x in (1e300, 1.5, -1e300):
    ...     row = absorb(row, x)
    >>> float(lower_rows(row.reshape(1, WIDTH))[0])
    1.5
    """
    bits = np.float64(x).view(np.int64)
    sign = 1 if bits >= 0 else -1
    exponent = (bits >> 52) & 0x7FF
    digits = bits & 0xFFFFFFFFFFFFF
    if exponent == 0x7FF:
        if digits != 0:
            row[NANS] += 1
        elif sign > 0:
            row[PLUS_INFINITIES] += 1
        else:
            row[MINUS_INFINITIES] += 1
        return row
    if row[PENDING] >= MOST_PENDING:
        carry(row)
    # |x| is digits * 2^(place - 1074). Subnormal numbers have no leading one and share the place
    # of the smallest normal ones.
    place = exponent
    if exponent > 0:
        digits |= 1 << 52
        place = exponent - 1
    at = place >> 5
    shift = place & 31
    # 53 bits shifted by up to 31 do not fit into int64: shift the low 32 bits and the rest apart.
    low = (digits & LIMB_MASK) << shift
    high = ((digits >> 32) << shift) + (low >> 32)
    row[at] += sign * (low & LIMB_MASK)
    row[at + 1] += sign * (high & LIMB_MASK)
    row[at + 2] += sign * (high >> 32)
    row[PENDING] += 1
    return row


def combine(a: Row, b: Row) -> Row:
    """A new row that holds the values of both."""
    row = a + b
    if row[PENDING] > MOST_PENDING:
        carry(row)
    return row


def lower(row: Row) -> float:
    """The value of a row, rounded to the nearest double, ties to even. Destroys the row."""
    if row[NANS] > 0 or (row[PLUS_INFINITIES] > 0 and row[MINUS_INFINITIES] > 0):
        return math.nan
    if row[PLUS_INFINITIES] > 0:
        return math.inf
    if row[MINUS_INFINITIES] > 0:
        return -math.inf
    carry(row)
    sign = 1.0
    if row[LIMBS - 1] < 0:
        sign = -1.0
        for i in range(LIMBS):
            row[i] = -row[i]
        carry(row)
    top = LIMBS - 1
    while top >= 0 and row[top] == 0:
        top -= 1
    if top < 0:
        return 0.0
    length = 0
    while length < 63 and row[top] >> length:
        length += 1
    highest = 32 * top + length - 1
    # The lowest bit that a double of this size keeps; bits below it are rounded away.
    lowest = max(highest - 52, 0)
    digits = 0
    for i in range(top, (lowest >> 5) - 1, -1):
        shift = 32 * i - lowest
        digits += row[i] << shift if shift >= 0 else row[i] >> -shift
    if lowest > 0:
        half = lowest - 1
        if (row[half >> 5] >> (half & 31)) & 1:
            rest = row[half >> 5] & ((1 << (half & 31)) - 1)
            for i in range(half >> 5):
                rest |= row[i]
            if rest != 0 or digits & 1:
                digits += 1
    # Rounding up may reach 2^1024, and a sum may lie far beyond.
    if highest > 2097 or (lowest == 2045 and digits == 1 << 53):
        return sign * math.inf
    return sign * math.ldexp(float(digits), lowest - 1074)


# Compiled code may call these too.
register_jitable(carry)
register_jitable(lower)


@compiled
def lower_rows(rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The value of every row, correctly rounded.

    Equals `math.fsum` to the bit where that returns a number. Where it raises an error, this
    follows IEEE 754: a sum too large for a double becomes an infinity (the whole sum, whatever the
    sums on the way were), and infinities of both signs give NaN.
    """
    out = np.empty(rows.shape[0], np.float64)
    for i in range(rows.shape[0]):
        out[i] = lower(rows[i].copy())
    return out
