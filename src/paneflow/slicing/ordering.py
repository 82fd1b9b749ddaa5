"""Stable orders of many rows by a few integer columns.

Events are ordered by (key, time), result rows by (end, window, seq). Both are integers of a
small range, so a radix sort that looks only at the bits in use beats comparing by far; it is
stable, which keeps the total order of events with equal times.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled, helper
from paneflow.errors import UnsupportedError
from paneflow.slicing import threads

DIGIT = 11
"""Bits to sort by in one pass that moves rows: more would not fit the cache."""
WIDEST = 18
"""Bits to sort by in a pass that moves no rows."""
FEW = 256
"""Up to this many rows NumPy sorts as fast as kernels do, and nothing has to be compiled."""
LIMIT = 2**31 - 1
WORTH_A_THREAD = 500_000


def stable_order(fields: Sequence[Array], n: int) -> Array | None:
    """The rows sorted by int64 fields, first field first; None if they are sorted already.

    >>> import numpy as np
    >>> stable_order([np.array([2, 1, 2, 1])], 4)
    array([1, 3, 0, 2], dtype=int32)
    """
    if n <= FEW:
        return _sorted_few(fields)
    passes = _passes(fields, n)
    return None if passes is None else _run(passes, n)


def stable_places(fields: Sequence[Array], n: int) -> Array | None:
    """The place of each row once sorted: the inverse of `stable_order`.

    >>> import numpy as np
    >>> stable_places([np.array([2, 1, 2, 1])], 4)
    array([2, 0, 3, 1], dtype=int32)
    """
    places = np.empty(n, np.int32)
    if n <= FEW:
        order = _sorted_few(fields)
        if order is not None:
            places[order] = np.arange(n, dtype=np.int32)
        return None if order is None else places
    passes = _passes(fields, n, WIDEST if len(fields) == 1 else DIGIT)
    if passes is None:
        return None
    *before, last = passes
    if before:
        _places_pass(*last, _run(before, n), places)
    else:
        _count_places(*last, places)
    return places


def places_by_code(codes: Array, distinct: int) -> tuple[Array | None, Array]:
    """As `stable_places` by codes below `distinct`, and how many rows have each code.

    >>> import numpy as np
    >>> places, counts = places_by_code(np.array([2, 1, 2, 1]), 3)
    >>> places.tolist(), counts.tolist()
    ([2, 0, 3, 1], [0, 2, 2])
    """
    n = len(codes)
    width = max(distinct - 1, 1).bit_length()
    if n < 2 or n <= FEW or width > WIDEST or is_sorted(codes):
        return stable_places([codes], n), np.bincount(codes, minlength=distinct)
    _check_rows(n)
    places = np.empty(n, np.int32)
    # The codes' range is known, and counting them is the first half of placing them.
    return places, _count_places(codes, 0, 0, width, places)[:distinct]


def _sorted_few(fields: Sequence[Array]) -> Array | None:
    order = np.lexsort(tuple(reversed(fields))).astype(np.int32)
    return None if is_sorted(order) else order


Pass = tuple[Array, int, int, int]
"""A field, its least value, and the shift and width of the digit to sort by."""


def _passes(fields: Sequence[Array], n: int, widest: int = DIGIT) -> list[Pass] | None:
    """What to sort by, least significant first; None if nothing is to be done."""
    _check_rows(n)
    if n < 2 or (len(fields) == 1 and is_sorted(fields[0])):
        return None
    passes: list[Pass] = []
    for field in reversed(fields):
        low, high = int(field.min()), int(field.max())
        bits = int(high - low).bit_length()
        count = 1 if 0 < bits <= widest else -(-bits // DIGIT)
        width = -(-bits // max(count, 1))
        passes += [(field, low, k * width, width) for k in range(count)]
    return passes or None


def _check_rows(n: int) -> None:
    if n > LIMIT:
        raise UnsupportedError(
            f"{n} rows are more than one table may have here ({LIMIT}): split the table, and "
            f"combine the parts with query.slice() and Slices.merge()"
        )


def _run(passes: Sequence[Pass], n: int) -> Array:
    order = np.empty(n, np.int32)
    _first_pass(*passes[0], order)
    spare = np.empty(n, np.int32) if len(passes) > 1 else order
    for each in passes[1:]:
        _pass(*each, order, spare)
        order, spare = spare, order
    return order


def is_sorted(field: Array) -> bool:
    """Whether a field never decreases; disorder mostly shows early."""
    if len(field) <= FEW:
        return bool((field[1:] >= field[:-1]).all())
    if len(field) > 1024 and not _sorted_one(field[:1024]):
        return False
    return bool(_sorted_one(field))


@compiled
def _sorted_one(field):  # type: ignore[no-untyped-def]
    descents = 0
    for i in range(1, len(field)):
        descents += field[i] < field[i - 1]  # without a branch, so that it is vectorised
    return descents == 0


@helper
def _count_digits(field, low, shift, mask, counts):  # type: ignore[no-untyped-def]
    for i in range(len(field)):
        counts[((field[i] - low) >> shift) & mask] += 1


@compiled
def _histogram(field, low, shift, mask, counts):  # type: ignore[no-untyped-def]
    _count_digits(field, low, shift, mask, counts)


@helper
def _starts(field, low, shift, mask):  # type: ignore[no-untyped-def]
    """Where the rows of each digit begin, in the order of digits."""
    counts = np.zeros(mask + 1, np.int64)
    _count_digits(field, low, shift, mask, counts)
    total = 0
    for d in range(len(counts)):
        count = counts[d]
        counts[d] = total
        total += count
    return counts


@compiled
def _first_pass(field, low, shift, width, out):  # type: ignore[no-untyped-def]
    mask = (1 << width) - 1
    at = _starts(field, low, shift, mask)
    for i in range(len(field)):
        d = ((field[i] - low) >> shift) & mask
        out[at[d]] = i
        at[d] += 1


@compiled
def _pass(field, low, shift, width, order, out):  # type: ignore[no-untyped-def]
    mask = (1 << width) - 1
    at = _starts(field, low, shift, mask)
    for i in range(len(order)):
        d = ((field[order[i]] - low) >> shift) & mask
        out[at[d]] = order[i]
        at[d] += 1


def _count_places(field: Array, low: int, shift: int, width: int, places: Array) -> Array:
    """Write the places after one pass, and return how many rows have each digit.

    All cores work on it: each counts and places its own rows.
    """
    ranges = _shares(len(field))
    counts = np.zeros((len(ranges), 1 << width), np.int64)
    digit = (low, shift, (1 << width) - 1)
    jobs = list(zip(counts, ranges, strict=True))
    _share_out(lambda job: _histogram(field[job[1]], *digit, job[0]), jobs)
    total: Array = counts.sum(axis=0)
    # Rows of a digit stand in the order of the ranges they come from.
    before = np.cumsum(counts.T.ravel()) - counts.T.ravel()
    counts[:] = before.reshape(1 << width, len(ranges)).T
    _share_out(lambda job: _place(field[job[1]], *digit, job[0], places[job[1]]), jobs)
    return total


def _shares(n: int) -> list[slice]:
    """Ranges of rows, one for each thread, if there are enough rows."""
    each = n if n < WORTH_A_THREAD else -(-n // threads.available())
    return [slice(k, min(k + each, n)) for k in range(0, n, max(each, 1))]


def _share_out(work: Callable[[Any], None], jobs: Sequence[Any]) -> None:
    """Do all jobs, side by side if there are several."""
    if len(jobs) == 1:
        work(jobs[0])
    else:
        list(_movers(len(jobs)).map(work, jobs))


@compiled
def _place(field, low, shift, mask, at, places):  # type: ignore[no-untyped-def]
    for i in range(len(field)):
        d = ((field[i] - low) >> shift) & mask
        places[i] = at[d]
        at[d] += 1


@compiled
def _places_pass(field, low, shift, width, order, places):  # type: ignore[no-untyped-def]
    mask = (1 << width) - 1
    at = _starts(field, low, shift, mask)
    for i in range(len(order)):
        d = ((field[order[i]] - low) >> shift) & mask
        places[order[i]] = at[d]
        at[d] += 1


@compiled
def _scatter(values, places, out):  # type: ignore[no-untyped-def]
    for i in range(len(places)):
        out[places[i]] = values[i]


def inverse(places: Array) -> Array:
    """The order that puts rows at their places."""
    return scatter(np.arange(len(places), dtype=np.int32), places)


def scatter(values: Array, places: Array) -> Array:
    """Each value at its place, moved by all cores.

    With many events of few keys this is several times faster than gathering by an order: it
    reads in sequence, and writes to as many sequences as there are keys.
    """
    out = np.empty(len(places), values.dtype)
    if values.dtype == object or len(places) <= FEW:
        out[places] = values
    else:
        # Cells are moved as they are: one kernel serves all types of one width.
        cells = f"i{values.itemsize}"
        given, moved = values.view(cells), out.view(cells)
        # The call releases the GIL, and no two ranges write to one place.
        _share_out(lambda rows: _scatter(given[rows], places[rows], moved), _shares(len(places)))
    return out


@functools.cache
def _movers(several: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(several, "paneflow-scatter")
