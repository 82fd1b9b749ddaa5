"""Which algorithm merges a window's slices.

SBA touches every slice a window passes over, about three times; FlatFAT touches two nodes for
each level of its tree, for every row. So SBA wins where windows slide finely, FlatFAT where
windows are few and long and several of them share the slices.
"""

from __future__ import annotations

from paneflow.errors import QueryError

AVAILABLE = ("sba", "flat_fat")
SBA_COMBINES = 3
FLAT_FAT_COMBINES_PER_LEVEL = 2


def check_merge(merge: str) -> str:
    """A known algorithm, or auto."""
    if merge not in ("auto", *AVAILABLE):
        raise QueryError(
            f"merge={merge!r} is not known here: choose one of 'auto', "
            f"{', '.join(map(repr, AVAILABLE))}"
        )
    return merge


def choose_merge(rows: int, slices: int, mean_length: float) -> str:
    """The cheaper algorithm for one window's rows over a row of slices.

    >>> choose_merge(rows=1000, slices=1060, mean_length=60)
    'sba'
    >>> choose_merge(rows=10, slices=100_000, mean_length=10_000)
    'flat_fat'
    """
    levels = max(1.0, mean_length).__ceil__().bit_length()
    by_tree = rows * FLAT_FAT_COMBINES_PER_LEVEL * levels
    return "flat_fat" if by_tree < SBA_COMBINES * slices / 4 else "sba"
