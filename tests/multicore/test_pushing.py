"""Who does the work of a stream: its own thread, or, where it is short, the thread that pushes."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.intake.front import Arrival
from paneflow.engines.multicore.stream import Stream
from paneflow.engines.multicore.tuning import tuning
from paneflow.errors import PaneflowError
from tests.multicore.support import TOPOLOGIES
from tests.waiting import PATIENCE, wait_until

QUERY = pf.Query(W.tumbling(10), {"sum": A.sum("v")}, time="t")


def events(first: int, n: int = 10) -> pa.RecordBatch:
    t = list(range(first, first + n))
    return pa.record_batch({"t": t, "v": t})


class Working:
    """Notes which threads work, and may do something else instead."""

    def __init__(self) -> None:
        self.threads: set[str] = set()
        self.raises: BaseException | None = None

    def __call__(self, rank: int) -> None:
        self.threads.add(threading.current_thread().name)
        if self.raises is not None and threading.current_thread() is threading.main_thread():
            raises, self.raises = self.raises, None
            raise raises


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams whose thread leaves the work to pushing threads."""
    monkeypatch.setattr(tuning, "left_over", 1000.0)


@pytest.fixture(params=[*TOPOLOGIES, "slices"])
def opened(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Stream, Working]]:
    """A stream whose PUs have all gone to sleep, where everything is short."""
    monkeypatch.setattr(tuning, "short_message", math.inf)
    working = Working()
    with Stream(QUERY, workers=3, strategy=request.param, pauses=working) as stream:
        stream.push(events(0))
        wait_until(lambda: all_asleep(stream))
        working.threads.clear()
        yield stream, working


def all_asleep(stream: Stream) -> bool:
    """Whether a stream has nothing to do, and no thread of it looks for something."""
    core = stream._core
    assert core is not None
    shared = core.shared
    at_work = shared.inbox.waiting or shared.turns.lock.locked()
    return not at_work and shared.pipeline.strategy.brief


def read(stream: Stream, n: int) -> list[int]:
    """The next results; waits long for them, but not forever."""
    found: list[int] = []
    end = time.monotonic() + PATIENCE
    while len(found) < n and time.monotonic() < end:
        for rows in stream.results(PATIENCE):
            found += rows.column("sum").to_pylist()
            if len(found) >= n:
                break
    return found


def push_now_and_then(stream: Stream) -> Iterator[None]:
    """Pushes with time between them: now and then the stream's thread may be about itself."""
    for first in range(10, 2000, 10):
        stream.push(events(first))
        yield
        time.sleep(0.005)


def test_a_short_push_is_worked_on_by_the_thread_that_pushes(
    opened: tuple[Stream, Working],
) -> None:
    stream, working = opened

    def workers() -> Iterator[set[str]]:
        for _ in push_now_and_then(stream):
            yield set(working.threads)
            working.threads.clear()

    assert {"MainThread"} in workers(), "another thread did the work, every time"


def test_what_ends_a_window_while_the_pusher_rests_is_soon_worked_on_by_the_stream_thread(
    opened: tuple[Stream, Working], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, working = opened
    assert stream._core is not None
    monkeypatch.setattr(stream._core.shared.turns, "rests", lambda arrived, due: True)
    stream.push(events(10, 2))
    assert read(stream, 1) == [45]
    stream.push(events(12, 3))
    stream.push(events(15, 6))
    assert read(stream, 1) == [145]
    assert "MainThread" not in working.threads


def test_what_ends_no_window_is_worked_on_without_another_push(
    opened: tuple[Stream, Working], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, working = opened
    assert stream._core is not None
    monkeypatch.setattr(stream._core.shared.turns, "rests", lambda arrived, due: True)
    monkeypatch.setattr(stream._core.shared.pipeline.strategy, "due", lambda limit: False)
    stream.push(events(10, 2))
    wait_until(lambda: stream.metrics().waiting == 0)
    assert "MainThread" not in working.threads


def test_a_push_that_finds_another_pusher_at_work_is_worked_on_without_another_push(
    opened: tuple[Stream, Working], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, _ = opened
    core = stream._core
    assert core is not None
    monkeypatch.setattr(core.shared.turns, "rests", lambda arrived, due: False)
    wait_until(lambda: core.shared.wanted == 1)  # the stream thread sleeps until it is woken
    with core.shared.turns.lock:  # as another pusher has it while it works
        stream.push(events(10))
    assert read(stream, 1) == [45]


@pytest.mark.parametrize("opened", TOPOLOGIES, indirect=True)  # others take events unread
def test_while_the_pusher_rests_pushes_wait_for_one_that_ends_a_window(
    patient: None, opened: tuple[Stream, Working], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, _ = opened
    assert stream._core is not None
    stream.push(events(10, 12))
    assert read(stream, 2) == [45, 145]
    wait_until(lambda: all_asleep(stream))
    monkeypatch.setattr(stream._core.shared.turns, "rests", lambda arrived, due: not due)
    steps: list[tuple[list[int], bool]] = []
    take = stream._core.shared.pipeline.front.take

    def noted(arrivals: list[Arrival]) -> list[Batch | int]:
        given = take(arrivals)
        for each in given:
            if isinstance(each, Batch):
                # Latency counts from the push that ended windows.
                counts = each.arrived == arrivals[-1].arrived
                steps.append(([arrival.rows for arrival in arrivals], counts))
        return given

    monkeypatch.setattr(stream._core.shared.pipeline.front, "take", noted)

    def rounds() -> Iterator[list[tuple[list[int], bool]]]:
        for window in range(20, 1020, 10):
            steps.clear()
            for first, n in ((window + 2, 3), (window + 5, 5), (window + 10, 2)):
                stream.push(events(first, n))
            assert read(stream, 1) == [sum(range(window, window + 10))]
            yield list(steps)

    together = [([3, 5, 2], True)]
    # The stream thread, if the machine has held it up on its way to sleep, may take a push.
    assert together in rounds(), "pushes never waited for each other"


def test_what_is_too_much_for_a_pusher_does_not_wait(
    patient: None, opened: tuple[Stream, Working], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, working = opened
    assert stream._core is not None
    monkeypatch.setattr(stream._core.shared.turns, "rests", lambda arrived, due: True)
    monkeypatch.setattr(stream._core.shared.pipeline.strategy, "due", lambda limit: False)
    stream.push(events(10, tuning.small_push - 1))
    stream.push(events(tuning.small_push + 9, 1))
    wait_until(lambda: stream.metrics().waiting == 0)
    assert "MainThread" not in working.threads


def test_rows_come_whichever_thread_works(opened: tuple[Stream, Working]) -> None:
    stream, _ = opened
    for first in range(10, 300, 10):
        stream.push(events(first))
    stream.finish()
    sums = [row for rows in stream.results() for row in rows.column("sum").to_pylist()]
    assert sums == [sum(range(first, first + 10)) for first in range(0, 300, 10)]


def test_an_interrupt_while_a_push_works_reaches_it_and_ends_the_stream(
    opened: tuple[Stream, Working],
) -> None:
    stream, working = opened
    assert stream._core is not None
    working.raises = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        list(push_now_and_then(stream))
    with pytest.raises(PaneflowError, match="KeyboardInterrupt"):
        list(stream.results(PATIENCE))
    assert stream._core.thread.join(PATIENCE)


def test_what_comes_behind_an_error_is_not_worked_on(
    opened: tuple[Stream, Working], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, _ = opened
    assert stream._core is not None

    def fails(arrivals: object) -> None:
        raise OSError("no more room")

    monkeypatch.setattr(stream._core.shared.pipeline, "step", fails)
    stream.push(events(10))
    with pytest.raises(PaneflowError, match="no more room"):
        list(stream.results(PATIENCE))
    with pytest.raises(PaneflowError, match="no more room"):
        stream.push(events(20))
