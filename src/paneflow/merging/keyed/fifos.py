"""The windows of many keys, each a FIFO window of its own, slid by one compiled call.

A stream keeps one window for each key, and a push slides all of them. What an algorithm needs for
one window (`contract.py`) is here kept for many: counters and cells in a row for each, rings in
regions of one pool. Windows are told apart by slots; the caller decides which key has which slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.merging.contract import BACK, FRONT, Algorithm, filled
from paneflow.merging.keyed.regions import FEWEST, Move, Regions, spread
from paneflow.merging.linked import Linked


class Slides(NamedTuple):
    """How far some windows slide, a row for each answer, and which partials enter.

    The rows of `slots[j]` are `at[j]` to `at[j + 1]`, the partials that enter its window in the
    course of them `first[j]` to `first[j + 1]`.
    """

    slots: Array
    at: Array
    lo: Array
    """For each row, how many partials have left the window since its beginning."""
    hi: Array
    """And how many have entered it."""
    since: Array
    """For each row, the time from which on partials are in the window."""
    until: Array
    """And the time at which it ends."""
    first: Array
    times: Array
    """The times of the partials that enter."""


class KeyedWindows(Protocol):
    """The windows of one operator, by slot."""

    def reserve(self, slots: int) -> None:
        """Have room for so many slots."""
        ...

    def clear(self, slots: Array) -> None:
        """Let the windows of some slots be empty, and their counters begin anew."""
        ...

    def slide(self, slides: Slides, partials: Partials) -> Partials:
        """What is in the windows at each row, merged."""
        ...


class KeyedFifos:
    """Windows that partials enter and leave in order, by any FIFO algorithm."""

    def __init__(self, algorithm: Algorithm, operator: Operator, size: int) -> None:
        """`size`: how many partials a window is expected to hold."""
        algorithm.check(operator)
        self._algorithm = algorithm
        self._operator = operator
        self._kernel = kernel(operator, "slide_many", SlideLoop(algorithm), algorithm.helpers)
        self._regions = Regions()
        self._first = np.zeros(algorithm.counters, np.int64)
        for counter, value in algorithm.initial(size).items():
            self._first[counter] = value
        self._live = algorithm.live if isinstance(algorithm, Linked) else (FRONT, BACK)
        self._counters = np.zeros((0, algorithm.counters), np.int64)
        self._rings = [operator.empty(FEWEST) for _ in algorithm.rings]
        self._links = np.zeros(FEWEST if isinstance(algorithm, Linked) else 0, np.int64)
        self._cells: list[Partials] = [_cells(operator, 0, n) for _, n in algorithm.cells]

    def reserve(self, slots: int) -> None:
        before = len(self._counters)
        self._regions.reserve(slots)
        room = len(self._regions.base) - before
        if room > 0:
            self._counters = np.append(self._counters, np.tile(self._first, (room, 1)), axis=0)
            self._cells = [
                tuple(
                    np.append(old, new, axis=0)
                    for old, new in zip(cells, _cells(self._operator, room, n), strict=True)
                )
                for cells, (_, n) in zip(self._cells, self._algorithm.cells, strict=True)
            ]

    def clear(self, slots: Array) -> None:
        self._regions.free(slots)
        self._counters[slots] = self._first
        for cells, (_, n) in zip(self._cells, self._algorithm.cells, strict=True):
            for column, empty in zip(cells, _cells(self._operator, 1, n), strict=True):
                column[slots] = empty

    def slide(self, slides: Slides, partials: Partials) -> Partials:
        inside = self._counters[slides.slots, BACK] - self._counters[slides.slots, FRONT]
        move = self._regions.grow(slides.slots, inside + np.diff(slides.first))
        if move is not None:
            self._move(move)
        merged = self._operator.empty(len(slides.lo))
        links = (self._links,) if isinstance(self._algorithm, Linked) else ()
        stores = [column for store in (*self._rings, *self._cells) for column in store]
        regions = (self._regions.base, self._regions.size)
        identity = self._operator.start()
        state = (self._counters, *regions, identity, *stores, *links)
        self._kernel(slides, *state, *partials, *merged)
        return merged

    def _move(self, move: Move) -> None:
        """Bring what rings hold to where it now belongs."""
        first, last = (self._counters[move.slots, counter] for counter in self._live)
        positions, which = spread(first, last)
        # A region that did not exist has no length, and nothing in it.
        source = move.old_base[which] + (positions & (move.old_size[which] - 1))
        target = move.base[which] + (positions & (move.size[which] - 1))
        end = self._regions.end

        def moved(column: Array) -> Array:
            return moved_cells(column, source, target, end, move.fresh)

        self._rings = [tuple(map(moved, ring)) for ring in self._rings]
        if isinstance(self._algorithm, Linked):
            self._links = moved(self._links)


def moved_cells(column: Array, source: Array, target: Array, end: int, fresh: bool) -> Array:
    """A column of a pool with some of its cells in other places."""
    values = column[source]
    if fresh or end > len(column):
        longer = np.empty((max(end, FEWEST) * 5 // 4, *column.shape[1:]), column.dtype)
        if not fresh:
            longer[: len(column)] = column
        column = longer
    column[target] = values
    return column


def _cells(operator: Operator, slots: int, n: int) -> Partials:
    """For each of some slots, n cells that hold the identity."""
    return tuple(
        column.reshape(slots, n, *column.shape[1:]) for column in filled(operator, slots * n)
    )


@dataclass(frozen=True)
class SlideLoop:
    """Writes the loop that slides the windows of many slots, one after the other."""

    algorithm: Algorithm

    def __call__(self, shape: Shape) -> str:
        algorithm = self.algorithm
        state = algorithm.state(shape)
        stores = [*(f"all_{name}" for name in algorithm.stores)]
        arguments = ", ".join(map(shape.names, stores))
        views = [shape.view(name, f"all_{name}", "base", "end") for name in algorithm.rings]
        for name, _ in algorithm.cells:
            views += [f"{name}{k} = all_{name}{k}[slot]" for k in range(len(shape.components))]
        if isinstance(algorithm, Linked):
            arguments += ", all_z"
            views.append("z = all_z[base:end]")
        return f"""
            def slide_many(
                slides, counters, bases, sizes, identity, {arguments}, {shape.names("p")},
                {shape.names("o")},
            ):
                for j in range(len(slides.slots)):
                    slot = slides.slots[j]
                    base = bases[slot]
                    end = base + sizes[slot]
                    m = counters[slot]
                    {"; ".join(views)}
                    entering = slides.first[j]
                    for w in range(slides.at[j], slides.at[j + 1]):
                        while m[0] < slides.lo[w] and m[0] < m[1]:
                            evict({state})
                        while m[1] < slides.hi[w]:
                            insert({state}, {shape.load("p", "entering")})
                            entering += 1
                        {algorithm.ask(shape)}
                        {shape.store("o", "w", "r")}
            """
