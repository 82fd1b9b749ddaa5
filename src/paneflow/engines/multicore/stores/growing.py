"""Arrays that grow, and what is kept for each key, with a way back.

Whoever works on a stream may fail in the middle, and is then put back to where it stood. A copy of
all keys would cost by how many there are, so only the keys that are about to change are noted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.tuning import tuning


class Grown:
    """A row of numbers, or of rows of them, that grows at its end.

    `values` has room behind what was put.
    """

    def __init__(self, dtype: Any = np.int64, width: tuple[int, ...] = ()) -> None:
        self.values: Array = np.empty((tuning.first_room, *width), dtype)

    @classmethod
    def like(cls, column: Array) -> Grown:
        """For values of the same type."""
        return cls(column.dtype, column.shape[1:])

    def put(self, at: int, numbers: Array) -> None:
        """Write numbers from a place on."""
        end = at + len(numbers)
        if end > len(self.values):
            room = max(end, 2 * len(self.values))
            grown = np.empty((room, *self.values.shape[1:]), self.values.dtype)
            grown[:at] = self.values[:at]
            self.values = grown
        self.values[at:end] = numbers

    def keep(self, chosen: Array) -> None:
        """Close up what is chosen among the first."""
        self.put(len(chosen), self.values[:0])
        kept = self.values[: len(chosen)][chosen]
        room = max(tuning.first_room, 2 * len(kept))
        self.values = np.empty((room, *kept.shape[1:]), kept.dtype)
        self.values[: len(kept)] = kept


class KeyState:
    """Some numbers for each key, all the same before its first event."""

    def __init__(self, *first: Any, dtype: Any = np.int64) -> None:
        self._first = np.array(first, dtype).reshape(-1, 1)
        self.values: Array = np.repeat(self._first, tuning.first_room, axis=1)
        self._noted: list[tuple[Array, Array]] = []

    def reserve(self, keys: Array) -> None:
        """Have room for some keys."""
        most, room = int(keys.max(initial=-1)) + 1, self.values.shape[1]
        if most > room:
            more = np.repeat(self._first, max(most, 2 * room) - room, axis=1)
            self.values = np.concatenate([self.values, more], axis=1)

    def touch(self, keys: Array) -> None:
        """Some keys are about to change."""
        self.reserve(keys)
        self._noted.append((keys, self.values[:, keys]))

    def settle(self) -> None:
        """What has changed stays."""
        self._noted.clear()

    def undo(self) -> None:
        """As it was when it was settled."""
        while self._noted:
            keys, before = self._noted.pop()
            self.values[:, keys] = before
