"""A W-Hive whose operations go step by step, for the exploration of interleavings.

Its functions are those that are compiled, read as Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paneflow.engines.multicore.multiway import hive_loops, hive_memory, winset_keys, winset_list
from paneflow.engines.multicore.multiway.hive_loops import (
    Bounds,
    Events,
    Own,
    Pairs,
    Released,
    Retired,
)
from paneflow.engines.multicore.multiway.hive_memory import HiveMemory, room_for
from paneflow.windows import Sliding
from tests.multicore.multiway.hive_model import Found, Next, Operation, Pass, Update
from tests.multicore.multiway.interleaving import Steps, in_steps

MODULES = (hive_memory, winset_list, winset_keys, hive_loops)
ROOM = 64
LEVELS = 2
"""Few, so that there are fewer steps; one level of shortcuts is like the next."""


def levels_of(number: int) -> int:
    """Winsets of different heights next to each other; compiled code draws them from a hash."""
    return 1 + number // 2 % 2


def stepping(**changed: Any) -> dict[str, Any]:
    """The functions of a hive, in steps, of which some may be changed."""
    # Hashes need integers that overflow; a table of 16 slots is searched as a whole anyway.
    constants = {"height": levels_of, "home": lambda code, bits: code % 2**bits, "LEVELS": LEVELS}
    return in_steps(MODULES, **constants | changed)


class SteppingHive:
    """Counts events; each writer has its lane."""

    def __init__(self, names: dict[str, Any], window: Sliding, writers: int, nodes: int) -> None:
        self._names = names
        memory = room_for(writers, nodes, 16, 192)
        self.memory = HiveMemory(*(cells.tolist() for cells in memory))
        edges = np.array(window.edges, np.int64)
        span = (window.range.value, window.slide.value, window.offset.value)
        self._bounds = Bounds(_Edges(edges), *span, -(2**62))
        self._own = [Own([[0] * ROOM], list(range(ROOM)), [ROOM], [], []) for _ in range(writers)]
        self._held = [0] * nodes
        self._retired = Retired([0] * nodes, [0] * nodes, [0, 0])
        self._writers = writers

    def begin(self, operation: Operation) -> Steps:
        """Begin an operation."""
        names, memory = self._names, self.memory
        match operation:
            case Update(writer, time, key):
                own = self._own[writer]
                own = own._replace(fields=_Fields(own.fields[0]))
                events = Events([key], [time], _Nothing(), 0, 1)
                pairs = Pairs([0] * 8, [0] * 8)
                done, _ = yield from names["place"](
                    memory, writer, own, self._bounds, events, 0, pairs
                )
                assert done == 1
            case Pass(writer, number):
                yield from names["pass_on"](memory, writer, number)
            case Next(most):
                return (yield from self._next(most))
        return None

    def _next(self, most: int) -> Steps:
        names, memory = self._names, self.memory
        winsets, slots, least = yield from names["final_slots"](memory, most)
        if winsets == 0:
            return ()
        out = Released([0] * winsets, [0] * winsets, [0] * slots, [0] * slots)
        found = yield from names["release"](memory, winsets, least, out, self._held, self._retired)
        counts: dict[tuple[int, int], int] = {}
        begin = 0
        for number, end in zip(out.number, out.until, strict=True):
            for code, cell in zip(out.codes[begin:end], out.cells[begin:end], strict=True):
                key, lane = divmod(code, self._writers)
                counted = self._own[lane].fields[0]
                counts[number, key] = counts.get((number, key), 0) + counted[cell]
            begin = end
        assert begin == found
        taken: Found = tuple(sorted((n, key, count) for (n, key), count in counts.items()))
        return taken


class _Edges:
    """Edges that are read by two numbers, as in an array."""

    def __init__(self, edges: Any) -> None:
        self._edges = edges.tolist()

    def __len__(self) -> int:
        return len(self._edges)

    def __getitem__(self, at: tuple[int, int]) -> int:
        return int(self._edges[at[0]][at[1]])


class _Fields:
    """One row that is read and written by two numbers, as in an array."""

    def __init__(self, row: list[int]) -> None:
        self._row = row

    def __len__(self) -> int:
        return 1

    def __getitem__(self, at: tuple[int, int]) -> int:
        return self._row[at[1]]

    def __setitem__(self, at: tuple[int, int], value: int) -> None:
        self._row[at[1]] = value


class _Nothing:
    """No values that could be missing."""

    shape = (0, 0)
