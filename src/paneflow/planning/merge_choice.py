"""Which algorithm merges a window's slices, over a table and over a stream.

Over a table, SBA touches every slice that a window passes over, about three times; FlatFAT touches
the two ends of each row, and two nodes per level of its tree between them. So SBA wins where
windows slide finely, and FlatFAT where windows are few and long and several of them share the
slices.

Over a stream it matters how much windows overlap, whether slices arrive in order, and whether what
leaves a window can be taken out exactly. The figures behind the rule are in docs/merging.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paneflow.aggregates.operator import Operator
from paneflow.errors import QueryError
from paneflow.windows import Sliding

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

AVAILABLE = (
    "recalculate",
    "subtract",
    "two_stacks",
    "daba",
    "slick_deque",
    "flat_fat",
    "flat_fit",
    "sba",
    "pba",
    "fiba",
)
SBA_COMBINES = 3
FLAT_FAT_COMBINES_PER_LEVEL = 2
BLOCK = 64
"""The number of slices that FlatFAT accumulates instead of keeping them in its tree."""


def check_merge(merge: str) -> str:
    """Check the name of an algorithm: a known one, or auto."""
    if not isinstance(merge, str) or merge not in ("auto", *AVAILABLE):
        raise QueryError(
            f"merge={merge!r} is not known here: choose one of 'auto', "
            f"{', '.join(map(repr, AVAILABLE))}"
        )
    return merge


def choose_merges(rows: Integers, lengths: Floats, slices: int) -> list[str]:
    """The cheaper algorithm for each window of a query, over one row of slices.

    >>> import numpy as np
    >>> choose_merges(np.array([1000, 10]), np.array([60.0, 10_000.0]), slices=100_000)
    ['flat_fat', 'flat_fat']
    >>> choose_merges(np.array([1000]), np.array([60.0]), slices=1060)
    ['sba']
    """
    levels = np.ceil(np.log2(np.maximum(lengths, 1.0) / BLOCK + 1.0)) + 1
    by_tree = rows * FLAT_FAT_COMBINES_PER_LEVEL * levels
    return ["flat_fat" if cheap else "sba" for cheap in by_tree < SBA_COMBINES * slices / 4]


FEW_COMBINES = 3
"""Combines that the algorithms for long windows take for each slice."""
SELDOM_LATE = 8
"""Times that slices may come late before a tree pays, whose kernels take seconds to compile."""
ANEW = "recalculate"
"""A window is merged from all its slices when it closes, and nothing is kept of that."""


class StreamMerge(NamedTuple):
    """The algorithm that merges a stream's slices into windows, and why."""

    name: str
    reason: str


def choose_stream_merge(
    window: Sliding,
    operator: Operator | None,
    *,
    late: int = 0,
    stored: bool = False,
    asked: str = "auto",
) -> StreamMerge:
    """How the time windows of a stream are merged, from partials of an operator.

    `late`: how often slices have come behind a window that had closed. Without an operator there
    are only events to count.
    `stored`: all slices are read from a store whenever the watermark moves.

    >>> from paneflow.aggregates.sums import float_sum, integer_sum
    >>> from paneflow.windows import sliding, tumbling
    >>> choose_stream_merge(sliding(3600, 1), integer_sum("v")).name
    'subtract'
    >>> choose_stream_merge(sliding(3600, 1), float_sum("v")).name
    'daba'
    >>> choose_stream_merge(tumbling(60), float_sum("v")).name
    'recalculate'
    """
    if asked != "auto":
        return StreamMerge(asked, f"merge={asked!r} was asked for")
    if stored:
        return StreamMerge(ANEW, "its slices are read from the state for every batch anyway")
    if window.overlap <= FEW_COMBINES:
        several = "1 window" if window.overlap == 1 else f"{window.overlap} windows"
        return StreamMerge(ANEW, f"a slice is in {several}: nothing is gained by keeping merges")
    if late > SELDOM_LATE:
        return StreamMerge("fiba", "slices come late: only a tree takes them anywhere")
    if operator is None or (operator.invert is not None and operator.exact):
        return StreamMerge("subtract", "what leaves can be taken out exactly: two combines, always")
    return StreamMerge("daba", "at most six combines for a row, so that no push is slow")
