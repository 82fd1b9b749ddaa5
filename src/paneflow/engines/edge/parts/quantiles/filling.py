"""Gaps of runs filled with the values that lie in them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.edge.parts.quantiles.runs import Runs, spread


def gap_positions(runs: Runs) -> Array:
    """How many values of its slice come before the gap behind each run."""
    before = runs.before
    positions: Array = before[:-1] + runs.counts - before[runs.offsets[:-1]][runs.slices]
    return positions


def filled(runs: Runs, slices: Array, positions: Array, answers: Runs) -> Runs:
    """Runs with those of answers, each for the gap at a position of a slice.

    An answer is left out where there is no such gap, or no longer.
    """
    before = runs.before
    behind = before[:-1] + runs.counts
    sought = before[runs.offsets[slices]] + positions
    place = np.searchsorted(behind, sought)
    known = place < runs.offsets[slices + 1]
    known[known] = (behind[place[known]] == sought[known]) & (runs.gaps[place[known]] != 0)
    # The first of two answers counts.
    known &= np.isin(np.arange(len(place)), np.unique(place, return_index=True)[1])
    lengths = np.where(known, np.diff(answers.offsets), 0)
    added = spread(answers.offsets[:-1], lengths)
    at = np.repeat(place, lengths)
    order = np.argsort(np.append(2 * np.arange(len(runs.counts)), 2 * at + 1), kind="stable")
    gaps = runs.gaps.copy()
    gaps[place[known]] = 0
    none = np.zeros(len(added), np.int64)
    values = pa.concat_arrays([runs.values, answers.values.take(pa.array(added))])
    counts = np.append(runs.counts, answers.counts[added])
    more = np.bincount(runs.slices[at], minlength=len(runs.offsets) - 1)
    return Runs(
        values.take(pa.array(order)),
        counts[order],
        np.append(gaps, none)[order],
        np.append(0, np.cumsum(np.diff(runs.offsets) + more)),
    )
