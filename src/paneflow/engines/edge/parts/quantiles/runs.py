"""Runs of slices: distinct values in order, how often each occurs, and what is left out of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.slicing.columns import one_chunk

FEW = 64
"""Slices of so few distinct values are sent whole."""
LEAST_STEP = 4
"""Where points would be closer, they and the answers would be more bytes than the slice."""


class Runs(NamedTuple):
    """The runs of several slices, one slice after the other.

    `gaps` says how many values lie between a run and the next; those are not among the runs.
    """

    values: pa.Array
    counts: Array
    gaps: Array
    offsets: Array
    """Where each slice begins, and where the last one ends."""

    @property
    def slices(self) -> Array:
        """The place of each run's slice."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @property
    def before(self) -> Array:
        """How many values come before each run, and behind the last, in all slices together."""
        return np.append(0, np.cumsum(self.counts + np.abs(self.gaps)))

    def gapped(self) -> Array:
        """Which slices have a gap."""
        found = np.zeros(len(self.offsets) - 1, np.bool_)
        found[self.slices[self.gaps != 0]] = True
        return found

    def as_lists(self, kind: pa.ListType) -> pa.ListArray:
        """Values and counts as a column of slices."""
        pairs = pa.StructArray.from_arrays([self.values, pa.array(self.counts)], ["value", "count"])
        return pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), pairs).cast(kind)

    def gap_lists(self) -> pa.ListArray:
        """The gaps as a column of slices; null where a slice has none."""
        gapped = self.gapped()
        held = pa.array(self.gaps[gapped[self.slices]], pa.int64())
        lengths = np.where(gapped, np.diff(self.offsets), 0)
        offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
        return pa.ListArray.from_arrays(offsets, held, mask=pa.array(~gapped))


def read_runs(lists: pa.ChunkedArray, gaps: pa.ChunkedArray | None = None) -> Runs:
    """The runs in a column of slices, with gaps if there may be any."""
    whole = one_chunk(lists)
    pairs = whole.flatten()
    lengths = whole.value_lengths().to_numpy(zero_copy_only=False)
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int64)
    counts = pairs.field("count").to_numpy(zero_copy_only=False)
    found = np.zeros(len(counts), np.int64)
    if gaps is not None:
        held = one_chunk(gaps)
        gapped = held.is_valid().to_numpy(zero_copy_only=False)
        found[np.repeat(gapped, lengths)] = held.flatten().to_numpy(zero_copy_only=False)
    return Runs(pairs.field("value"), counts, found, offsets)


def thinned(runs: Runs, shares: int) -> Runs:
    """Points of slices: so many that they and the answers are fewest, for so many quantiles.

    A step of k values between points makes m / k points, each of three numbers. About 2k runs, each
    of two numbers, are asked for each quantile: their sum is least at the root of 3m / 4.
    """
    lengths = np.diff(runs.offsets)
    steps = np.sqrt(0.75 * lengths / shares).astype(np.int64)
    steps[(lengths <= FEW) | (steps < LEAST_STEP)] = 1
    places = np.arange(len(runs.counts)) - np.repeat(runs.offsets[:-1], lengths)
    kept = (places % np.repeat(steps, lengths) == 0) | (places == np.repeat(lengths - 1, lengths))
    points = np.flatnonzero(kept)
    before = runs.before
    gaps = np.zeros(len(points), np.int64)
    gaps[:-1] = before[points[1:]] - before[points[:-1] + 1]
    offsets = np.append(0, np.cumsum(kept))[runs.offsets]
    return Runs(runs.values.take(pa.array(points)), runs.counts[points], gaps, offsets)


def spread(starts: Array, lengths: Array) -> Array:
    """The places start, start + 1, ... of several stretches, one after the other.

    >>> spread(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    places: Array = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return places
