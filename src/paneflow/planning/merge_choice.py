"""Which algorithm merges a window's slices, over a table and over a stream.

Over a table, SBA touches every slice that a window passes over, about three times; FlatFAT touches
the two ends of each row, and two nodes per level of its tree between them. So SBA wins where
windows slide finely, and FlatFAT where windows are few and long and several of them share the
slices.

Over a stream it matters whether slices arrive in order, which laws combine obeys, whether a slow
slide hurts, and whether combining is expensive enough for a second thread. The figures behind the
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


WORTH_A_THREAD = 4096
"""The number of slices in a window from which a second thread has enough to do."""
WORTH_SHARING = 15.0
"""The nanoseconds of a combine from which fewer combines are worth a second thread, or branches
that cannot be predicted."""
FEW_COMBINES = 3
"""The combines per slice of the algorithms for long windows."""


@dataclass(frozen=True)
class Stream:
    """What the choice depends on: the windows of a stream, the aggregate's laws, and the goal.

    A window has `slices` slices and is evaluated every `slide` of them. A slice may arrive after
    `late` newer ones. `invertible` means exactly invertible. `merges_in_place` says that combining
    allocates no arrays, which holds for everything except rows without `combine_into`.
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
        return "fiba", f"slices may be {stream.late:,} slices late: only a tree inserts anywhere"
    each = stream.slices / stream.slide
    if each <= FEW_COMBINES:
        return "recalculate", f"a slice is in {each:g} windows: nothing is gained by reuse"
    if stream.invertible:
        return "subtract", "what leaves can be subtracted exactly: always two combines"
    costly = stream.combine_ns >= WORTH_SHARING
    if costly and stream.selective and stream.goal == "throughput":
        return "slick_deque", "combine selects and is expensive: fewer than two combines per slice"
    if costly and stream.cores > 1 and stream.merges_in_place and stream.slices >= WORTH_A_THREAD:
        return "pba", f"a combine takes {stream.combine_ns:.0f} ns: a second thread does half of it"
    if stream.goal == "latency":
        return "daba", "at most six combines in any slide"
    return "sba", "three combines per slice, whatever the range"
