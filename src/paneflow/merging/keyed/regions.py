"""Where the windows of many keys lie in one pool of cells: a region for each.

A region is a power of two cells long. A window that outgrows its region gets one at the end of the
pool; when more of the pool is left behind than is used, what is used is closed up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array

FEWEST = 1024
"""Cells, and slots, that a pool begins with."""


class Move(NamedTuple):
    """Regions of some slots, before and after they got longer."""

    slots: Array
    old_base: Array
    old_size: Array
    base: Array
    size: Array
    fresh: bool
    """Whether all cells move into a new pool, or some to another place in the same."""


class Regions:
    """The regions of slots, which are numbered from 0."""

    def __init__(self) -> None:
        self.base = np.zeros(0, np.int64)
        self.size = np.zeros(0, np.int64)
        self.end = 0
        """Cells of the pool that are, or were, in a region."""
        self._used = 0

    def reserve(self, slots: int) -> None:
        """Have room for so many slots."""
        missing = slots - len(self.base)
        if missing > 0:
            more = np.zeros(max(missing, len(self.base), FEWEST), np.int64)
            self.base, self.size = np.append(self.base, more), np.append(self.size, more)

    def free(self, slots: Array) -> None:
        """Give the regions of some slots back."""
        self._used -= int(self.size[slots].sum())
        self.size[slots] = 0

    def grow(self, slots: Array, needed: Array) -> Move | None:
        """Let regions hold so many cells; None if they do."""
        short = needed > self.size[slots]
        if not short.any():
            return None
        slots = slots[short]
        size = _powers(needed[short])
        fresh = self.end + int(size.sum()) > 2 * (self._used + int(size.sum())) + FEWEST
        if fresh:
            moved = np.zeros(len(self.size), np.bool_)
            moved[slots] = True
            others = np.flatnonzero((self.size > 0) & ~moved)
            size = np.append(size, self.size[others])
            slots = np.append(slots, others)
            self.end = 0
        ends = self.end + np.cumsum(size)
        move = Move(slots, self.base[slots], self.size[slots], ends - size, size, fresh)
        self._used += int((size - move.old_size).sum())
        self.end = int(ends[-1])
        self.base[slots], self.size[slots] = move.base, move.size
        return move


def spread(first: Array, last: Array) -> tuple[Array, Array]:
    """All numbers from each first to before each last, and which of the pairs each is of."""
    lengths = last - first
    which = np.repeat(np.arange(len(first)), lengths)
    before = np.repeat(np.cumsum(lengths) - lengths - first, lengths)
    return np.arange(len(which)) - before, which


def _powers(needed: Array) -> Array:
    """The least powers of two, from 2 on, that are no smaller."""
    exponents = np.ceil(np.log2(np.maximum(needed, 2))).astype(np.int64)
    return np.left_shift(np.int64(1), exponents)
