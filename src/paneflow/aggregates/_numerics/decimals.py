"""Decimals as integers: their digits without the point, and the way back.

A decimal is held as int64 as long as its digits fit, which those of every decimal of up to 18
digits do. A value with more is refused: it would need arithmetic that kernels do not have, and a
rounded decimal is not what anybody wants. Sums have more room: two limbs, and 38 digits at the end.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.operator import Array, Partials
from paneflow.errors import InputError

DIGITS_OF_SUM = 38
EXACT = 2**53
"""Up to here a float64 holds every integer."""
EXACT_POWER = 22
"""Up to here a float64 holds every power of ten."""


def sum_type(scale: int) -> pa.DataType:
    """The type of a sum: as many digits behind the point, and room before it."""
    if scale > DIGITS_OF_SUM:
        return pa.decimal256(76, scale)
    return pa.decimal128(DIGITS_OF_SUM, scale)


def digits(array: pa.Array, name: str) -> Array:
    """Decimals as integers, their digits without the point; 0 for nulls.

    >>> from decimal import Decimal
    >>> digits(pa.array([Decimal("-2.50"), None, Decimal("1")], pa.decimal128(5, 2)), "price")
    array([-250,    0,  100])
    """
    words = array.type.bit_width // 64
    if words == 0:
        narrow: Array = _stored(array, np.int32, 1)[:, 0].astype(np.int64)
        low, fits = narrow, np.ones(len(array), np.bool_)
    else:
        stored = _stored(array, np.int64, words)
        low = stored[:, 0]
        fits = (stored[:, 1:] == (low >> 63)[:, None]).all(axis=1)
    if array.null_count:
        # What stands in the place of a null means nothing.
        present = array.is_valid().to_numpy(zero_copy_only=False)
        low, fits = np.where(present, low, 0), fits | ~present
    if not fits.all():
        row = int(np.argmin(fits))
        raise InputError(
            f"column {name!r} of type {array.type} holds {array[row]}, whose digits do not fit "
            f"into int64: cast it to float64, or to a decimal with fewer digits behind the point"
        )
    return np.ascontiguousarray(low)


def from_digits(values: Array, type_: pa.DataType, valid: Array | None = None) -> pa.Array:
    """Integers as decimals of a type.

    >>> from_digits(np.array([-250, 100]), pa.decimal128(5, 2)).to_pylist()
    [Decimal('-2.50'), Decimal('1.00')]
    """
    return _made(values, values >> 63, type_, valid)


def from_limbs(limbs: Partials, type_: pa.DataType, valid: Array) -> pa.Array:
    """Sums that are held as limbs of 32 bits (`sums.py`) as decimals of 128 bits or more.

    >>> limbs = np.array([2**40]), np.array([7])
    >>> from_limbs(limbs, pa.decimal128(38, 0), np.array([True])).to_pylist()
    [Decimal('4722366482869645213703')]
    """
    high, low = limbs
    carried = high + (low >> 32)
    return _made((carried << 32) | (low & 0xFFFFFFFF), carried >> 32, type_, valid)


def as_floats(values: Array, scale: int) -> Array:
    """Digits as the float64 nearest to each decimal.

    >>> as_floats(np.array([1, 30]), 1)
    array([0.1, 3. ])
    """
    if not 0 <= scale <= EXACT_POWER or np.any((values > EXACT) | (values < -EXACT)):
        # Digits and power of ten are not both exact, so a quotient would be rounded twice.
        written = pc.binary_join_element_wise(pa.array(values).cast(pa.string()), f"{-scale}", "e")
        parsed: Array = written.cast(pa.float64()).to_numpy()
        return parsed
    quotients: Array = values / 10.0**scale
    return quotients


def power_of_ten(scale: int) -> float:
    """What digits are divided by."""
    return float(f"1e{scale}")


def _stored(array: pa.Array, dtype: type, words: int) -> Array:
    if len(array) == 0:  # which may have no buffer
        return np.zeros((0, words), dtype)
    size = np.dtype(dtype).itemsize * words
    held: Array = np.frombuffer(array.buffers()[1], dtype, len(array) * words, array.offset * size)
    return held.reshape(-1, words)


def _made(low: Array, high: Array, type_: pa.DataType, valid: Array | None) -> pa.Array:
    bits = None
    if valid is not None and not valid.all():
        bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
        low, high = np.where(valid, low, 0), np.where(valid, high, 0)
    words = type_.bit_width // 64
    if words == 0:
        stored = low.astype(np.int32)
    else:
        stored = np.empty((len(low), words), np.int64)
        stored[:, :2] = np.column_stack([low, high])[:, :words]
        stored[:, 2:] = (high >> 63)[:, None]
    return pa.Array.from_buffers(type_, len(low), [bits, pa.py_buffer(stored)])
