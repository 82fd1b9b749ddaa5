"""Between which values a quantile must lie, where slices have gaps, and which gaps decide it.

Put every value in a gap where the run below it is: the value at a rank can only become less. Put
it where the run above is: it can only become greater. So the value lies between the two, and where
they are equal it is known. Otherwise the gaps that reach between the two are what is missing; once
they are filled, whatever is left out lies wholly below or wholly above.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.engines.edge.parts.quantiles.runs import Runs, spread

MOST_AT_ONCE = 2**21
"""Runs of windows that are held at once; a run counts in every window that its slice is in."""


class Spans(NamedTuple):
    """Windows as stretches of slices."""

    slices: Array
    """The places of the slices, in the order of their keys and starts."""
    lo: Array
    hi: Array
    """Each window holds slices[lo:hi]."""

    def chunks(self, sizes: Array) -> Iterator[tuple[int, Spans]]:
        """A few windows at a time, given the size of each slice, with the place of the first."""
        before = np.append(0, np.cumsum(sizes[self.slices]))
        held = np.cumsum(before[self.hi] - before[self.lo])
        starts = np.unique(held // MOST_AT_ONCE, return_index=True)[1]
        for first, end in zip(starts, np.append(starts[1:], len(self.lo)), strict=True):
            yield int(first), Spans(self.slices, self.lo[first:end], self.hi[first:end])


def undecided(
    runs: Runs, ranks: Array, windows: Spans, shares: Sequence[float]
) -> tuple[Array, Array]:
    """Pairs of a window and a run, of which the gap behind it must be filled for the window.

    `ranks` tells how the values of the runs compare.
    """
    pairs: list[tuple[Array, Array]] = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    if len(windows.lo):
        for first, some in windows.chunks(np.diff(runs.offsets)):
            window, run = _undecided(runs, ranks, some, shares)
            pairs.append((window + first, run))
    window, run = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return window, run


def _undecided(
    runs: Runs, ranks: Array, windows: Spans, shares: Sequence[float]
) -> tuple[Array, Array]:
    of_slice = windows.slices[spread(windows.lo, windows.hi - windows.lo)]
    of_window = np.repeat(np.arange(len(windows.lo)), windows.hi - windows.lo)
    several = np.diff(runs.offsets)[of_slice]
    run = spread(runs.offsets[of_slice], several)
    window = np.repeat(of_window, several)
    gaps = np.abs(runs.gaps)
    order = np.argsort(window * (ranks.max(initial=0) + 1) + ranks[run], kind="stable")
    placed = ranks[run][order]
    below = np.cumsum((runs.counts + gaps)[run][order])
    above = np.cumsum((runs.counts + np.append(0, gaps[:-1]))[run][order])
    last = np.searchsorted(window, np.arange(len(windows.lo)), side="right")
    ends = np.append(0, below)[last]
    n = np.diff(ends, prepend=0)
    over = np.append(ranks[1:], 0)[run]
    missing = np.zeros(len(run), np.bool_)
    for rank in _wanted(n, shares):
        sought = ends - n + np.minimum(rank, n - 1)
        # Windows without a value look up the place of another, and are left out below.
        low, high = (
            placed[np.minimum(np.searchsorted(sums, sought, side="right"), len(placed) - 1)]
            for sums in (below, above)
        )
        unknown = (low < high) & (n > 0)
        missing |= unknown[window] & (ranks[run] < high[window]) & (over > low[window])
    chosen = missing & (gaps[run] > 0)
    return window[chosen], run[chosen]


def _wanted(n: Array, shares: Sequence[float]) -> Iterator[Array]:
    """The ranks of the values between which quantiles are interpolated, for windows of n values."""
    for share in shares:
        exact = share * (n - 1)
        below = np.floor(exact).astype(np.int64)
        yield below
        if (exact > below).any():
            yield below + (exact > below)
