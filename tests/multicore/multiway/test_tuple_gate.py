"""A T-Gate gives every reader every tuple once, in total order, and only when it is ready."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

from paneflow.engines.multicore.multiway.tuple_gate import TupleGate
from paneflow.engines.multicore.tuning import tuning
from tests.multicore.multiway.gate_model import (
    NEVER,
    Advance,
    Close,
    GateModel,
    Idle,
    Insert,
    Join,
    Operation,
    Take,
    Tuple,
)
from tests.waiting import comes_to_rest, wait_until


def times(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def taken(gate: TupleGate, reader: int = 0) -> list[Tuple]:
    """What a reader gets by one call."""
    return list(zip(*(column.tolist() for column in gate.ready(reader)), strict=True))


def drained(gate: TupleGate, reader: int = 0) -> list[Tuple]:
    """All that is ready."""
    found: list[Tuple] = []
    while more := taken(gate, reader):
        found += more
    return found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of few tuples, few nodes and few tuples at a time."""
    monkeypatch.setattr(tuning, "longest_node", 3)
    monkeypatch.setattr(tuning, "tuples_per_node", 4)
    monkeypatch.setattr(tuning, "taken_at_once", 5)


def test_nothing_is_ready_before_every_source_has_shown_something() -> None:
    gate = TupleGate(3, 1, 8)
    gate.insert(0, times(1, 2))
    gate.insert(2, times(1))
    assert taken(gate) == []
    gate.insert(1, times(4))
    assert taken(gate) == [(1, 0, 0), (1, 2, 0)]


def test_the_last_tuple_of_a_source_is_ready_if_no_other_source_is_behind() -> None:
    gate = TupleGate(2, 1, 8)
    gate.insert(0, times(5))
    gate.insert(1, times(7))
    assert taken(gate) == [(5, 0, 0)]


def test_a_tie_is_ready_when_no_earlier_source_can_join_it() -> None:
    gate = TupleGate(2, 1, 8)
    gate.insert(0, times(5))
    gate.insert(1, times(5))
    assert taken(gate) == [(5, 0, 0)]
    gate.insert(0, times(5, 6))
    assert taken(gate) == [(5, 0, 1), (5, 1, 0)]


def test_readers_do_not_disturb_each_other() -> None:
    gate = TupleGate(1, 2, 8)
    gate.insert(0, times(1, 2))
    assert taken(gate, 0) == [(1, 0, 0), (2, 0, 1)]
    gate.insert(0, times(3))
    assert taken(gate, 0) == [(3, 0, 2)]
    assert drained(gate, 1) == [(1, 0, 0), (2, 0, 1), (3, 0, 2)]
    assert taken(gate, 0) == taken(gate, 1) == []


def test_an_idle_source_holds_nothing_back_and_joins_behind_what_was_taken() -> None:
    gate = TupleGate(2, 1, 8)
    gate.insert(0, times(1, 9))
    gate.idle(1)
    assert drained(gate) == [(1, 0, 0), (9, 0, 1)]
    assert gate.join(1) == 9
    gate.insert(0, times(12))
    assert taken(gate) == []
    gate.insert(1, times(9, 20))
    assert drained(gate) == [(9, 1, 0), (12, 0, 2)]


def test_a_source_may_join_before_anything_was_taken() -> None:
    gate = TupleGate(2, 1, 8)
    gate.idle(1)
    assert gate.join(1) is None
    gate.insert(0, times(1))
    assert taken(gate) == []


def test_a_closed_source_cannot_join_again() -> None:
    gate = TupleGate(2, 1, 8)
    gate.close(1)
    with pytest.raises(ValueError, match="source 1 is closed"):
        gate.join(1)


def test_what_all_sources_left_behind_is_ready() -> None:
    gate = TupleGate(2, 1, 8)
    gate.insert(0, times(1, 9))
    gate.insert(1, times(4))
    gate.idle(0)
    gate.close(1)
    assert drained(gate) == [(1, 0, 0), (4, 1, 0), (9, 0, 1)]
    assert gate.join(0) == 9


@pytest.mark.parametrize("wrong", [(5, 4), (2, 6)])
def test_times_that_are_not_in_order_are_refused(wrong: tuple[int, ...]) -> None:
    gate = TupleGate(1, 1, 8)
    gate.insert(0, times(3))
    with pytest.raises(ValueError, match="times of source 0 must be sorted"):
        gate.insert(0, times(*wrong))
    assert drained(gate) == [(3, 0, 0)]


def test_an_absent_source_cannot_insert() -> None:
    gate = TupleGate(2, 1, 8)
    gate.idle(0)
    with pytest.raises(ValueError, match="must be present"):
        gate.insert(0, times(3))


def test_only_as_much_is_taken_in_as_there_is_room_for() -> None:
    gate = TupleGate(2, 1, 4)
    assert gate.offer(0, times(*range(9))) == 4
    assert gate.offer(0, times(*range(9)), 4) == 0
    gate.insert(1, times(2))
    assert drained(gate) == [(0, 0, 0), (1, 0, 1), (2, 0, 2), (2, 1, 0)]
    assert gate.room(0) == 3


def test_times_may_lie_far_apart() -> None:
    far = 2**60
    gate = TupleGate(2, 1, 8)
    gate.insert(0, times(-far, -1, far))
    gate.insert(1, times(-far + 1, 0, far))
    gate.close(0)
    gate.close(1)
    expected = [(-far, 0, 0), (-far + 1, 1, 0), (-1, 0, 1), (0, 1, 1), (far, 0, 2), (far, 1, 2)]
    assert drained(gate) == expected


def test_more_equal_times_than_are_taken_at_once(small: None) -> None:
    gate = TupleGate(3, 1, 16)
    for source in (2, 0, 1):
        gate.insert(source, times(*[7] * 9, 8))
    for source in range(3):
        gate.close(source)
    found = drained(gate)
    assert found == [
        *((7, source, k) for source in range(3) for k in range(9)),
        *((8, source, 9) for source in range(3)),
    ]


def test_a_writer_without_room_waits_and_does_not_spin() -> None:
    gate = TupleGate(2, 1, 64)
    many = np.arange(5000)
    writer = threading.Thread(target=gate.insert, args=(0, many))
    writer.start()
    wait_until(lambda: gate.room(0) == 0)
    assert comes_to_rest()
    assert writer.is_alive()
    gate.close(1)
    found: list[Tuple] = []

    def all_taken() -> bool:
        found.extend(drained(gate))
        return len(found) == len(many)

    wait_until(all_taken)
    writer.join()
    assert found == [(k, 0, k) for k in range(5000)]


class Script:
    """Random operations on a gate, each compared with the model."""

    def __init__(self, seed: int) -> None:
        self.r = r = random.Random(seed)
        self.sources, self.readers = r.randint(1, 5), r.randint(1, 3)
        self.gate = TupleGate(self.sources, self.readers, r.choice([2, 4, 16]))
        self.model = GateModel.fresh(self.sources, self.readers)
        self.far = r.choice([1, 3, 100, 2**50])

    def tell(self, operation: Operation, result: object = None) -> None:
        after = self.model.after(operation, result)
        assert after is not None, (operation, result, self.model)
        self.model = after

    def step(self) -> None:
        source = self.r.randrange(self.sources)
        kind = self.r.choices(
            ["insert", "take", "idle", "join", "close", "advance"], [8, 6, 1, 2, 0.2, 1]
        )[0]
        if kind == "take":
            reader = self.r.randrange(self.readers)
            self.tell(Take(reader), taken(self.gate, reader))
        elif kind == "join" and not self.model.closed[source]:
            self.tell(Join(source), self.gate.join(source))
        elif kind == "idle":
            self.gate.idle(source)
            self.tell(Idle(source))
        elif kind == "close":
            self.gate.close(source)
            self.tell(Close(source))
        elif not (self.model.absent[source] or self.model.closed[source]):
            frontier = self.model.frontiers[source]
            begin = 0 if frontier == NEVER else frontier
            if kind == "advance":
                time = begin + self.r.randint(0, self.far)
                self.gate.advance(source, time)
                self.tell(Advance(source, time))
            else:
                steps = [self.r.randint(0, self.far) for _ in range(self.r.randint(0, 6))]
                more = begin + np.cumsum(times(*steps))
                for time in more[: self.gate.offer(source, more)].tolist():
                    self.tell(Insert(source, time))

    def finish(self) -> None:
        for source in range(self.sources):
            self.gate.close(source)
            self.tell(Close(source))
        for reader in range(self.readers):
            while self.model.ready(reader):
                self.tell(Take(reader), taken(self.gate, reader))
            assert taken(self.gate, reader) == []


@pytest.mark.parametrize("seed", range(300))
def test_random_scripts_do_what_the_model_does(seed: int, small: None) -> None:
    script = Script(seed)
    for _ in range(120):
        script.step()
    script.finish()


@pytest.mark.parametrize("seed", range(6))
def test_threads_insert_and_take_everything_once_and_in_order(seed: int, small: None) -> None:
    r = np.random.default_rng(seed)
    sources, readers = int(r.integers(2, 8)), int(r.integers(1, 4))
    gate = TupleGate(sources, readers, 16)
    shown = [np.sort(r.integers(0, 900, int(r.integers(0, 700)))) for _ in range(sources)]
    seen: list[list[Tuple]] = [[] for _ in range(readers)]

    def write(source: int) -> None:
        dice = random.Random(f"{seed} {source}")
        at = 0
        while at < len(shown[source]):
            until = at + dice.randint(1, 9)
            gate.insert(source, shown[source][at:until])
            at = until
        gate.close(source)

    every = sum(map(len, shown))

    def read(reader: int) -> None:
        wait_until(lambda: seen[reader].extend(drained(gate, reader)) or len(seen[reader]) == every)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(sources)]
    threads += [threading.Thread(target=read, args=(k,)) for k in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = sorted((t, s, i) for s in range(sources) for i, t in enumerate(shown[s].tolist()))
    assert all(found == expected for found in seen)
