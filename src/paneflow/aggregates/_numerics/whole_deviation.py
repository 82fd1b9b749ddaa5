"""Sums of integers and of their squares without rounding: what var and std of integers carry.

Deviations of floats would round integers beyond 2**53 before their spread is computed. Sums in
32-bit limbs, each in an int64 of its own, are exact, so all engines return the same bits however
the events were sliced. A partial is (high, low, s0, s1, s2, s3): the sum is
high * 2**32 + low, the sum of squares s0 + s1 * 2**32 + s2 * 2**64 + s3 * 2**96. Limbs may grow
beyond 32 bits; merging carries the excess.

Plain Python so that it can be compiled into the loops around it.
"""

from __future__ import annotations

import math

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled, lean

Partial = tuple[int, int, int, int, int, int]

MASK = 0xFFFFFFFF
RUN = 1 << 29
"""Events whose limbs can be added without a carry."""
LIMBS = 8
PLAIN = 2.0**61

IDENTITY = (0, 0, 0, 0, 0, 0)


def lift(x: int) -> Partial:
    """The limbs of one integer and of its square."""
    high, low = x >> 32, x & MASK
    # The square is above * 2**64 + 2 * cross * 2**32 + below. As an int64, `below` may have
    # wrapped, and twice `cross` would: only their bits count.
    below, cross, above = low * low, high * low, high * high
    return (
        high,
        low,
        below & MASK,
        ((below >> 32) & MASK) + ((cross << 1) & MASK),
        (cross >> 31) + (above & MASK),
        above >> 32,
    )


def combine(p: Partial, q: Partial) -> Partial:
    """The limbs of both, carried."""
    low = p[1] + q[1]
    s0 = p[2] + q[2]
    s1 = p[3] + q[3] + (s0 >> 32)
    s2 = p[4] + q[4] + (s1 >> 32)
    return (
        p[0] + q[0] + (low >> 32),
        low & MASK,
        s0 & MASK,
        s1 & MASK,
        s2 & MASK,
        p[5] + q[5] + (s2 >> 32),
    )


def gather(first: int, end: int, values: Array) -> Partial:
    """The limbs of a run of integers."""
    p = IDENTITY
    for a in range(first, end, RUN):
        high, low, s0, s1, s2, s3 = 0, 0, 0, 0, 0, 0
        for i in range(a, min(a + RUN, end)):
            q = lift(values[i])
            high += q[0]
            low += q[1]
            s0 += q[2]
            s1 += q[3]
            s2 += q[4]
            s3 += q[5]
        p = combine(p, (high, low, s0, s1, s2, s3))
    return p


@lean
def _carry(limbs):  # type: ignore[no-untyped-def]
    """Bring every limb but the last into 0 <= limb < 2**32."""
    for k in range(len(limbs) - 1):
        limbs[k + 1] += limbs[k] >> 32
        limbs[k] &= MASK


@lean
def _add_product(wide, a, b, sign):  # type: ignore[no-untyped-def]
    """Add or subtract a product, limb by limb; what leaves the top is zero."""
    for j in range(len(a)):
        for k in range(len(b)):
            if j + k < LIMBS:
                product = a[j] * b[k]  # its bits, as those of an unsigned number
                wide[j + k] += sign * (product & MASK)
                if j + k + 1 < LIMBS:
                    wide[j + k + 1] += sign * ((product >> 32) & MASK)


@lean
def _rounded(limbs):  # type: ignore[no-untyped-def]
    """Carried limbs that are not negative, as a float."""
    top = len(limbs) - 1
    while top >= 2 and limbs[top] == 0:
        top -= 1
    if top < 2:
        return float(limbs[1]) * 2.0**32 + limbs[0]
    lead = float(limbs[top]) * 2.0**64 + (float(limbs[top - 1]) * 2.0**32 + limbs[top - 2])
    return math.ldexp(lead, 32 * (top - 2))


@compiled
def spreads(n, high, low, s0, s1, s2, s3):  # type: ignore[no-untyped-def]
    """n times the sum of squared deviations, for many windows: n * squares - sum * sum.

    Computed without rounding, and rounded once or twice as it becomes a float.
    """
    out = np.empty(len(n), np.float64)
    wide = np.empty(LIMBS, np.int64)
    total = np.empty(4, np.int64)
    squares = np.empty(6, np.int64)
    count = np.empty(2, np.int64)
    for i in range(len(n)):
        squares[0], squares[1], squares[2], squares[3] = s0[i], s1[i], s2[i], s3[i]
        squares[4], squares[5] = 0, 0
        _carry(squares)
        if n[i] * (float(squares[1]) * 2.0**32) < PLAIN and squares[2] == 0 and squares[3] == 0:
            # The sum's square is no larger, by the inequality of Cauchy and Schwarz.
            whole = (high[i] << 32) + low[i]
            out[i] = n[i] * ((squares[1] << 32) + squares[0]) - whole * whole
            continue
        count[0], count[1] = n[i] & MASK, n[i] >> 32
        total[0], total[1], total[2], total[3] = low[i], high[i], 0, 0
        _carry(total)
        if total[3] < 0:
            for k in range(4):
                total[k] = -total[k]
            _carry(total)
        wide[:] = 0
        _add_product(wide, count, squares, 1)
        _add_product(wide, total, total, -1)
        _carry(wide)
        out[i] = _rounded(wide)
    return out
