"""Arrays that grow, and values for each key that can be restored.

Work on a stream may fail half-way, and its state is then restored. Copying the values of all keys
would cost too much if there are many, so only those about to change are noted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.tuning import tuning


class Grown:
    """An array that grows at its end by doubling; `values` has room after what was put."""

    def __init__(self, dtype: Any = np.int64, width: tuple[int, ...] = ()) -> None:
        self.values: Array = np.empty((tuning.first_room, *width), dtype)

    @classmethod
    def like(cls, column: Array) -> Grown:
        """An empty one for values of the same type."""
        return cls(column.dtype, column.shape[1:])

    def put(self, at: int, numbers: Array) -> None:
        """Write values from a place on."""
        end = at + len(numbers)
        self.reserve(end)
        self.values[at:end] = numbers

    def reserve(self, end: int) -> None:
        """Have room for values up to a place."""
        if end > len(self.values):
            room = max(end, 2 * len(self.values))
            grown = np.empty((room, *self.values.shape[1:]), self.values.dtype)
            grown[: len(self.values)] = self.values
            self.values = grown

    def keep(self, chosen: Array) -> None:
        """Keep the chosen ones among the first values, closed up."""
        self.put(len(chosen), self.values[:0])
        kept = self.values[: len(chosen)][chosen]
        room = max(tuning.first_room, 2 * len(kept))
        self.values = np.empty((room, *kept.shape[1:]), kept.dtype)
        self.values[: len(kept)] = kept


class KeyState:
    """Some values for each key, which start the same for all keys."""

    def __init__(self, *first: Any, dtype: Any = np.int64) -> None:
        self._first = np.array(first, dtype).reshape(-1, 1)
        self.values: Array = np.repeat(self._first, tuning.first_room, axis=1)
        self._noted: list[tuple[Array, Array]] = []

    def reserve(self, keys: Array) -> None:
        """Make room for some keys."""
        most, room = int(keys.max(initial=-1)) + 1, self.values.shape[1]
        if most > room:
            more = np.repeat(self._first, max(most, 2 * room) - room, axis=1)
            self.values = np.concatenate([self.values, more], axis=1)

    def touch(self, keys: Array) -> None:
        """Note the values of keys that are about to change."""
        self.reserve(keys)
        self._noted.append((keys, self.values[:, keys]))

    def settle(self) -> None:
        """Keep what has changed."""
        self._noted.clear()

    def undo(self) -> None:
        """Restore the state at the last `settle`."""
        while self._noted:
            keys, before = self._noted.pop()
            self.values[:, keys] = before
