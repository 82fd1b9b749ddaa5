"""Which algorithm merges a window's slices, over a table and over a stream.

Over a table, SBA touches every slice a window passes over, about three times; FlatFAT touches the
two ends of each row, and two nodes for each level of its tree between them. So SBA wins where
windows slide finely, FlatFAT where windows are few and long and several of them share the slices.

Over a stream, what decides is whether slices come in order, which laws combine obeys, whether a
slow slide hurts, and whether combining is dear enough for a second thread. The figures behind the
rule are in docs/merging.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from paneflow.errors import QueryError

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
"""Slices that FlatFAT cumulates instead of keeping them in its tree."""


def check_merge(merge: str) -> str:
    """A known algorithm, or auto."""
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


WORTH_A_THREAD = 4096
"""Slices in a window from which a second thread has enough to do."""
WORTH_SHARING = 15.0
"""Nanoseconds of a combine from which fewer of them are worth a second thread, or branches that
nobody can foresee."""
FEW_COMBINES = 3
"""Combines that the algorithms for long windows take for each slice."""


@dataclass(frozen=True)
class Stream:
    """What the choice depends on: the windows of a stream, the aggregate's laws, and the goal.

    `slices` are in a window, and it is asked for every `slide` of them. `late` slices may come
    after that many newer ones. `invertible` means exactly. `merges_in_place` says that combining
    makes no new arrays, which is true of everything but rows without `combine_into`.
    """

    slices: int
    slide: int = 1
    late: int = 0
    selective: bool = False
    invertible: bool = False
    merges_in_place: bool = True
    combine_ns: float = 1.0
    cores: int = 1
    goal: Literal["throughput", "latency"] = "throughput"


def choose_stream_merge(stream: Stream) -> tuple[str, str]:
    """The algorithm for a stream, and why.

    >>> choose_stream_merge(Stream(slices=3600))[0]
    'sba'
    >>> choose_stream_merge(Stream(slices=3600, goal="latency"))[0]
    'daba'
    """
    if stream.late:
        return "fiba", f"slices may come {stream.late:,} too late: only a tree takes them anywhere"
    each = stream.slices / stream.slide
    if each <= FEW_COMBINES:
        return "recalculate", f"a slice is in {each:g} windows: nothing is gained by reuse"
    if stream.invertible:
        return "subtract", "what leaves can be taken out exactly: two combines, always"
    dear = stream.combine_ns >= WORTH_SHARING
    if dear and stream.selective and stream.goal == "throughput":
        return "slick_deque", "combine selects and is dear: fewer than two combines for each slice"
    if dear and stream.cores > 1 and stream.merges_in_place and stream.slices >= WORTH_A_THREAD:
        return "pba", f"a combine takes {stream.combine_ns:.0f} ns: a second thread does half of it"
    if stream.goal == "latency":
        return "daba", "at most six combines in any slide"
    return "sba", "three combines for each slice, whatever the range"
