"""Which algorithm merges a window's slices.

SBA touches every slice a window passes over, about three times; FlatFAT touches the two ends of
each row, and two nodes for each level of its tree between them. So SBA wins where windows slide
finely, FlatFAT where windows are few and long and several of them share the slices.
"""

from __future__ import annotations

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
    if merge not in ("auto", *AVAILABLE):
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
