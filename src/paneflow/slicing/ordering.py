"""Stable orders of many rows by a few integer columns.

Events are ordered by (key, time), result rows by (end, window, seq). Both are integers of a
small range, so a radix sort that looks only at the bits in use beats comparing by far; it is
stable, which keeps the total order of events with equal times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.errors import UnsupportedError

compiled = numba.njit(nogil=True, cache=True)
DIGIT = 11
LIMIT = 2**31 - 1


def stable_order(fields: Sequence[Array], n: int) -> Array | None:
    """The permutation that sorts n rows by int64 fields, first field first; None if sorted.

    >>> import numpy as np
    >>> stable_order([np.array([2, 1, 2, 1])], 4)
    array([1, 3, 0, 2], dtype=int32)
    """
    if n > LIMIT:
        raise UnsupportedError(
            f"{n} rows are more than one table may have here ({LIMIT}): split the table, and "
            f"combine the parts with query.slice() and Slices.merge()"
        )
    if n < 2 or (len(fields) == 1 and is_sorted(fields[0])):
        return None
    order: Array | None = None
    spare = np.empty(n, np.int32)
    for field in reversed(fields):
        low, high = _span(field)
        bits = int(high - low).bit_length()
        passes = -(-bits // DIGIT)
        for k in range(passes):
            width = -(-bits // passes)
            if order is None:
                order = np.empty(n, np.int32)
                _first_pass(field, low, k * width, width, order)
            else:
                _pass(field, low, k * width, width, order, spare)
                order, spare = spare, order
    return order


def is_sorted(field: Array) -> bool:
    """Whether a field never decreases."""
    return bool(_sorted_one(field))


@compiled
def _sorted_one(field):  # type: ignore[no-untyped-def]
    for i in range(1, len(field)):
        if field[i] < field[i - 1]:
            return False
    return True


@compiled
def _span(field):  # type: ignore[no-untyped-def]
    low = field[0]
    high = field[0]
    for value in field:
        low = min(low, value)
        high = max(high, value)
    return low, high


@compiled
def _starts(counts):  # type: ignore[no-untyped-def]
    total = 0
    for d in range(len(counts)):
        count = counts[d]
        counts[d] = total
        total += count


@compiled
def _first_pass(field, low, shift, width, out):  # type: ignore[no-untyped-def]
    mask = (1 << width) - 1
    counts = np.zeros(1 << width, np.int64)
    for i in range(len(field)):
        counts[((field[i] - low) >> shift) & mask] += 1
    _starts(counts)
    for i in range(len(field)):
        d = ((field[i] - low) >> shift) & mask
        out[counts[d]] = i
        counts[d] += 1


@compiled
def _pass(field, low, shift, width, order, out):  # type: ignore[no-untyped-def]
    mask = (1 << width) - 1
    counts = np.zeros(1 << width, np.int64)
    for i in range(len(field)):
        counts[((field[i] - low) >> shift) & mask] += 1
    _starts(counts)
    for i in range(len(order)):
        d = ((field[order[i]] - low) >> shift) & mask
        out[counts[d]] = order[i]
        counts[d] += 1
