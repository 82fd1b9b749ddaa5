"""FIFO windows whose entries also carry an integer: where they came from, or what comes next.

SlickDeque and FlatFIT keep a position beside every partial. Here the state of an algorithm gains
one ring of integers, `z`, as long as the rings of partials.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from paneflow.aggregates.kernels import Shape
from paneflow.aggregates.operator import Array, Operator
from paneflow.merging.contract import BACK, FRONT, Algorithm, Fifo, FifoMerger


@dataclass(frozen=True)
class Linked(Algorithm):
    """An algorithm with a ring of integers `z`, the last part of its state.

    Entries need not stand at their partial's position: `live` names the two counters between
    which they are found.
    """

    live: tuple[int, int] = (FRONT, BACK)

    def state(self, shape: Shape) -> str:
        """The arguments that hold the state."""
        return f"{super().state(shape)}, z"


class LinkedFifo(Fifo):
    """The streaming face of an algorithm with links.

    >>> from paneflow.aggregates.sums import integer_sum
    >>> from paneflow.merging.flat_fit import FLAT_FIT
    >>> window = LinkedFifo(FLAT_FIT, integer_sum("v"))
    >>> for low in (3, 1, 2):
    ...     window.insert(0, low)
    >>> window.evict()
    >>> window.query()
    (0, 3)
    """

    algorithm: Linked

    def __init__(self, algorithm: Linked, operator: Operator, size: int = 16) -> None:
        super().__init__(algorithm, operator, size)
        self.links: Array = np.zeros(self._capacity, np.int64)

    @property
    def state(self) -> tuple[Any, ...]:
        """The arguments of the compiled functions."""
        return (*super().state, self.links)

    @property
    def stored(self) -> int:
        """How many partials are kept now, a link counted as one."""
        fixed = sum(n for _, n in self.algorithm.cells)
        return (len(self.rings) + 1) * len(self._live("z")) + fixed

    def _live(self, ring: str) -> Array:
        first, last = (int(self.counters[k]) for k in self.algorithm.live)
        return np.arange(first, last)

    def _grow(self) -> None:
        before, positions = self._capacity, self._live("z")
        super()._grow()
        links: Array = np.zeros(2 * before, np.int64)
        links[positions & (2 * before - 1)] = self.links[positions & (before - 1)]
        self.links = links


class LinkedMerger(FifoMerger):
    """The columnar face of an algorithm with links."""

    algorithm: ClassVar[Linked]
    window: ClassVar[type[Fifo]] = LinkedFifo
