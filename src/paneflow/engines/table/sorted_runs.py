"""The values of slices in order, and how often each occurs.

Only values within one slice are compared, so no value needs a rank among those of other slices:
NumPy sorts numbers by vector instructions, at several times the speed at which it finds ranks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.engines.table.store import Held
from paneflow.slicing.ordering import stable_order

FEW = 32
"""Up to so many values of a slice are sorted by insertion: calling NumPy would take longer."""
REPEATED = 2
"""Values that occur more often than that on average are merged as they are, not one by one."""


class SortedRuns(NamedTuple):
    """Distinct values of several slices, one slice after the other."""

    values: Array
    counts: Array
    offsets: Array
    """Where each slice begins, and where the last one ends."""


def sorted_runs(held: Held, offsets: Array) -> SortedRuns:
    """The values of each slice; it begins at its offset, and the last one ends at the last."""
    values, counts = held.values, held.counts
    if counts is not None:
        total = int(counts.sum())
        if total > REPEATED * len(values):
            return _added_up(held, counts, offsets)
        if total > len(values):
            offsets = np.append(0, np.cumsum(counts))[offsets]
            values = np.repeat(values, counts)
    # Zeros are equal: they become one value, without a sign.
    ordered = values + 0.0 if values.dtype.kind == "f" else values.copy()
    for k in np.flatnonzero(np.diff(offsets) > FEW):
        ordered[offsets[k] : offsets[k + 1]].sort()
    numbers = np.empty(len(ordered), np.int64)
    ends = np.zeros(len(offsets), np.int64)
    _count_equal(ordered, offsets, numbers, ends)
    distinct = int(ends[-1])
    return SortedRuns(ordered[:distinct], numbers[:distinct], ends)


@compiled
def _count_equal(values, offsets, counts, ends):  # type: ignore[no-untyped-def]
    """Move distinct values to the front. Slices of more than a few values are sorted already."""
    at = 0
    for k in range(len(offsets) - 1):
        lo, hi = offsets[k], offsets[k + 1]
        if hi - lo <= FEW:
            for i in range(lo + 1, hi):
                value = values[i]
                j = i
                # NaN is greater than every number.
                while j > lo and (
                    value < values[j - 1] or (values[j - 1] != values[j - 1] and value == value)
                ):
                    values[j] = values[j - 1]
                    j -= 1
                values[j] = value
        begun = at
        for i in range(lo, hi):
            value = values[i]
            last = values[at - 1] if at > begun else value
            if at > begun and (value == last or (value != value and last != last)):
                counts[at - 1] += 1
            else:
                values[at] = value
                counts[at] = 1
                at += 1
        ends[k + 1] = at


def _added_up(held: Held, counts: Array, offsets: Array) -> SortedRuns:
    """The same for values that occur so often that repeating them would be too many."""
    ranks, distinct = held.column.ranked
    slice_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = stable_order([slice_of, ranks], len(ranks))
    if order is not None:
        slice_of, ranks, counts = slice_of[order], ranks[order], counts[order]
    fresh = np.ones(len(ranks), np.bool_)
    fresh[1:] = (slice_of[1:] != slice_of[:-1]) | (ranks[1:] != ranks[:-1])
    heads = np.flatnonzero(fresh)
    ends = np.searchsorted(slice_of[heads], np.arange(len(offsets)))
    return SortedRuns(distinct[ranks[heads]], np.add.reduceat(counts, heads), ends)
