"""Whatever the order of their steps, threads see a T-Gate that does one thing after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from paneflow.engines.multicore.multiway import arena, gate_reading, gate_writing, merged_runs
from paneflow.engines.multicore.multiway.arena import NOTHING, GateMemory
from paneflow.engines.multicore.multiway.merged_runs import Found, Merging
from tests.multicore.multiway.gate_model import (
    Advance,
    Close,
    GateModel,
    Idle,
    Insert,
    Join,
    Operation,
    Take,
)
from tests.multicore.multiway.interleaving import Case, Steps, Thread, at_once, in_steps, outcomes
from tests.multicore.multiway.linearizability import Event, is_linearizable

MODULES = (arena, merged_runs, gate_writing, gate_reading)
MOST = 4


def _listed(memory: Any) -> Any:
    """The same memory as lists of Python's integers."""
    return type(memory)(*(v if isinstance(v, int) else v.tolist() for v in memory))


class Gate:
    """A gate whose operations go step by step."""

    def __init__(
        self, names: dict[str, Any], sources: int, readers: int, capacity: int, nodes: int
    ) -> None:
        self._names = names
        self.memory: GateMemory = _listed(arena.room_for(sources, readers, capacity, nodes))
        self._rooms: list[tuple[Merging, Found]] = []
        for _ in range(readers):
            merging, found = merged_runs.room_to_merge(sources, MOST)
            self._rooms.append((_listed(merging), _listed(found)))

    def begin(self, operation: Operation) -> Steps:
        """Begin an operation."""
        names, memory = self._names, self.memory
        match operation:
            case Insert(source, time):
                taken = yield from names["insert"](memory, source, [time], 0, 1)
                return taken == 1
            case Advance(source, time):
                yield from names["advance"](memory, source, time)
            case Idle(source):
                yield from names["leave"](memory, source, False)
            case Close(source):
                yield from names["leave"](memory, source, True)
            case Join(source):
                floor = yield from names["join"](memory, source)
                return None if floor == NOTHING else floor
            case Take(reader):
                merging, found = self._rooms[reader]
                count = yield from names["take"](memory, reader, merging, found)
                return tuple(zip(*(column[:count] for column in found), strict=True))
        return None


def explore(
    scripts: list[list[Operation]],
    *,
    sources: int = 2,
    readers: int = 1,
    before: tuple[Operation, ...] = (),
    nodes: int = 8,
    levels: int = 1,
    broken: tuple[str, str] = ("", ""),
) -> int:
    """Check every way in which scripts can be interleaved; how many different ends there are.

    With `levels`, every node has so many.
    """
    named = in_steps(MODULES, broken, LEVELS=levels, height_of=lambda pointer: levels)
    model = GateModel.fresh(sources, readers)

    def make() -> tuple[Case, Gate]:
        nonlocal model
        gate = Gate(named, sources, readers, 8, nodes)
        model = GateModel.fresh(sources, readers)
        for operation in before:
            after = model.after(operation, at_once(gate.begin(operation)))
            assert after is not None
            model = after
        threads = [Thread(_begun(gate, script)) for script in scripts]
        shared = [cells for cells in gate.memory if isinstance(cells, list)]
        return Case(shared, threads), gate

    ends = 0
    for case, gate in outcomes(make):
        ends += 1
        done = tuple(len(thread.done) for thread in case.threads)
        rest = _rest(gate, sources, readers)
        # Nothing may be lost: once all sources are closed, everything is ready.
        last = [Event(operation, result, (*done, 0)) for operation, result in rest]
        history = [
            *([Event(e.operation, e.result, (*e.after, 0)) for e in t.done] for t in case.threads),
            last,
        ]
        assert is_linearizable(model, history), history
    return ends


def _begun(gate: Gate, script: list[Operation]) -> list[tuple[Operation, Callable[[], Steps]]]:
    return [(operation, lambda op=operation: gate.begin(op)) for operation in script]


def _rest(gate: Gate, sources: int, readers: int) -> Iterator[tuple[Operation, Any]]:
    """Close all sources, and take whatever is left."""
    for source in range(sources):
        yield Close(source), at_once(gate.begin(Close(source)))
    for reader in range(readers):
        found = True
        while found:
            found = at_once(gate.begin(Take(reader)))
            yield Take(reader), found


SCRIPTS: dict[str, dict[str, Any]] = {
    "two writers link at the same place": {"scripts": [[Insert(0, 5)], [Insert(1, 5)]]},
    "two writers link one after the other": {
        "scripts": [[Insert(0, 5), Insert(0, 7)], [Insert(1, 6)]],
        "levels": 2,
    },
    "a reader looks while two writers begin": {
        "scripts": [[Insert(0, 3)], [Insert(1, 4)], [Take(0)]],
    },
    "a reader looks twice while both sources move": {
        "before": (Insert(0, 1), Insert(1, 2)),
        "scripts": [[Insert(0, 5)], [Insert(1, 4)], [Take(0), Take(0)]],
    },
    "a reader looks twice while one source moves": {
        "before": (Insert(0, 1), Insert(1, 2), Insert(1, 9)),
        "scripts": [[Insert(0, 3)], [Take(0), Take(0)]],
    },
    "a source repeats the time that holds others back": {
        "before": (Insert(0, 5), Insert(1, 5)),
        "scripts": [[Insert(0, 5), Insert(0, 6)], [Take(0), Take(0)]],
    },
    "a source comes back while a reader goes beyond it": {
        "before": (Insert(0, 1), Idle(1), Insert(0, 5)),
        "scripts": [[Join(1)], [Take(0), Take(0)]],
    },
    "a source comes back while another moves on": {
        "before": (Insert(0, 1), Idle(1)),
        "scripts": [[Join(1), Idle(1)], [Insert(0, 4)], [Take(0)]],
    },
    "two sources come back in turn": {
        "before": (Insert(0, 5), Idle(1), Idle(2)),
        "scripts": [[Join(1), Advance(1, 9)], [Join(2)], [Take(0)]],
        "sources": 3,
    },
    "the last source leaves": {
        "before": (Insert(0, 5), Insert(1, 3)),
        "scripts": [[Idle(0), Join(0)], [Close(1)], [Take(0), Take(0)]],
    },
    "a source ends while another inserts": {
        "scripts": [[Insert(0, 3), Insert(0, 4)], [Close(1)], [Take(0)]],
    },
    "a frontier is raised without a tuple": {
        "before": (Insert(0, 5),),
        "scripts": [[Advance(1, 4), Advance(1, 6)], [Insert(0, 7)], [Take(0)]],
    },
    "two readers": {
        "before": (Insert(0, 1), Insert(1, 2)),
        "scripts": [[Insert(0, 3)], [Take(0)], [Take(1)]],
        "readers": 2,
    },
    "nodes are used again while another writer searches": {
        # Source 1 begins where the reader is, which moves on to let source 0 use that node again.
        "before": (Insert(0, 1), Advance(1, 1), Take(0), Insert(0, 2), Advance(1, 3)),
        "scripts": [[Insert(0, 7)], [Insert(1, 4)], [Take(0)]],
        "nodes": 2,
    },
    "nodes were used again before another writer searches": {
        # Source 1 remembers its own node, which leads to nodes that source 0 has used again.
        "before": (
            *(Insert(0, 1), Insert(1, 2), Insert(0, 3), Advance(1, 4), Take(0)),
            *(Insert(0, 6), Advance(1, 7), Take(0), Insert(0, 9)),
        ),
        "scripts": [[Insert(1, 8)], [Take(0)]],
        "nodes": 2,
    },
    "shortcuts lead to nodes that are used again": {
        "before": (
            *(Insert(0, 1), Insert(1, 1), Insert(0, 2), Insert(1, 2)),
            *(Take(0), Advance(1, 3)),
        ),
        "scripts": [[Insert(0, 3)], [Insert(1, 4)]],
        "nodes": 2,
        "levels": 2,
    },
    "nodes are used again while readers leave them": {
        "before": (Insert(0, 1), Insert(0, 2), Advance(1, 9)),
        "scripts": [[Insert(0, 3)], [Insert(1, 9)], [Take(0)]],
        "nodes": 2,
    },
}


LONG = {
    "a reader looks twice while both sources move",
    "a source comes back while another moves on",
    "a source ends while another inserts",
    "nodes are used again while another writer searches",
    "nodes are used again while readers leave them",
    "the last source leaves",
    "two readers",
}
"""Scripts with tens of thousands of states."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in SCRIPTS],
)
def test_every_interleaving_can_be_explained(name: str) -> None:
    assert explore(**SCRIPTS[name]) > 1


BREAKS: dict[str, tuple[str, tuple[str, str]]] = {
    "a link is written without looking whether it is still the same": (
        "two writers link at the same place",
        (
            "if exchange(gate.nodes, link_of, after, pointer):",
            "if publish(gate.nodes, link_of, pointer) is None:",
        ),
    ),
    "the frontier is raised before the node is linked": (
        "a reader looks twice while one source moves",
        (
            "link(gate, source, times[at], first, length)",
            "publish(gate.sources, mine + FRONTIER, 2 * times[at]); "
            "link(gate, source, times[at], first, length)",
        ),
    ),
    "ties are ready whatever their source": (
        "a source repeats the time that holds others back",
        ("time == limit and source > of", "False"),
    ),
    "an absent source is not told what it must not insert": (
        "a source comes back while a reader goes beyond it",
        ("exchange(gate.sources, cell, frontier, least | ABSENT)", "True"),
    ),
    "what an absent source is told may be overwritten by its return": (
        "a source comes back while a reader goes beyond it",
        (
            "if exchange(gate.sources, cell, frontier, frontier & ~ABSENT):",
            "if publish(gate.sources, cell, frontier & ~ABSENT) is None:",
        ),
    ),
    "nodes are used again while other writers look at them": (
        "nodes are used again while another writer searches",
        ("if other != source and entered <= gate.sources[mine + LEFT_IN]:", "if False:"),
    ),
    "hints outlive their nodes": (
        "nodes were used again before another writer searches",
        ("if pointer >> gate.bits < least_of(gate, gate.passed, of):", "if False:"),
    ),
    "a node is left before the next one is told of": (
        "nodes are used again while readers leave them",
        (
            "publish(gate.readers, mine + CURSOR, pointer)",
            "publish(gate.passed, cells + source_of(gate, last), (last >> gate.bits) + 1); "
            "publish(gate.readers, mine + CURSOR, pointer)",
        ),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", BREAKS)
def test_breaks_are_noticed(name: str) -> None:
    script, broken = BREAKS[name]
    with pytest.raises((AssertionError, IndexError)):
        explore(**SCRIPTS[script], broken=broken)
