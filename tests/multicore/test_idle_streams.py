"""Sources that fall silent by the clock, and times that are too far ahead of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from examples.threshold_window import Threshold
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.pump.silence import Silence
from paneflow.engines.multicore.pump.stream_thread import StreamThread
from paneflow.engines.multicore.stream import Stream
from tests.bad_input.refusing import refused
from tests.multicore.hand_clock import HandClock, hand_clock
from tests.waiting import PATIENCE, comes_to_rest, wait_until

QUERY = pf.Query(W.tumbling(10), {"sum": A.sum("v")}, time="t", lateness=5)
MIXED = {
    "ten": W.tumbling(10),
    "rest": W.session(3),
    "pairs": W.count(2),
    "by": W.slide_by_time(3, 7),
    "mark": W.punctuation("m"),
}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> HandClock:
    return hand_clock(monkeypatch)


def events(*times: int) -> pa.Table:
    """Events whose values are their times."""
    return pa.table({"t": times, "v": times, "m": [t % 2 == 0 for t in times]})


def next_sums(stream: Stream, n: int) -> list[Any]:
    """The sums of the next rows, once there are so many."""
    sums: list[Any] = []
    while len(sums) < n:
        sums += next(stream.results(wait=PATIENCE))["sum"].to_pylist()
    return sums


@pytest.mark.parametrize("workers", [1, 2])
def test_a_silent_stream_closes_its_windows_and_goes_on(clock: HandClock, workers: int) -> None:
    with QUERY.open(workers, idle="5 seconds", late=True) as stream:
        stream.push(events(1, 12))
        clock.pass_by(4.9)
        stream.push(events(3))  # in time: the stream has not been silent for long enough
        clock.pass_by(5)
        assert next_sums(stream, 2) == [4, 12]
        stream.push(events(13, 20))
        clock.pass_by(5)
        assert next_sums(stream, 1) == [20]
        stream.push(events(31))
        clock.pass_by(5)
        assert next_sums(stream, 1) == [31]
        stream.finish()
        assert next(stream.late())["t"].to_pylist() == [13]


def test_windows_of_every_kind_close(clock: HandClock) -> None:
    query = pf.Query(MIXED, {"sum": A.sum("v")}, time="t", lateness=100)
    given = events(1, 2, 4, 15, 16, 16)
    with query.open(idle="5 s") as stream:
        stream.push(given)
        clock.pass_by(5)
        expected = query.over(given)
        rows = []
        while sum(map(len, rows)) < len(expected):
            rows.append(next(stream.results(wait=PATIENCE)))
        assert pa.concat_tables(rows).equals(expected)


def test_a_silent_source_does_not_hold_back_the_others(clock: HandClock) -> None:
    with QUERY.open(sources=3, idle="5 s") as stream:
        stream.push(events(1), source=0)
        stream.push(events(2), source=1)  # source 2 says nothing at all
        clock.pass_by(3)
        stream.push(events(38), source=0)
        clock.pass_by(2)
        stream.push(events(40), source=0)
        assert next_sums(stream, 1) == [3]
        wait_until(lambda: stream.metrics().watermark == 35)


def test_a_source_that_speaks_again_is_waited_for_again(clock: HandClock) -> None:
    with QUERY.open(sources=2, idle="5 s") as stream:
        stream.push(events(1), source=0)
        stream.push(events(2), source=1)
        clock.pass_by(4)
        stream.push(events(18), source=0)
        clock.pass_by(1)
        stream.push(events(19), source=0)
        assert next_sums(stream, 1) == [3]
        stream.push(events(16), source=1)
        stream.push(events(90), source=0)
        stream.finish()
        assert next_sums(stream, 2) == [53, 90]


def test_a_stream_of_ended_and_silent_sources_closes_its_windows(clock: HandClock) -> None:
    with QUERY.open(sources=2, idle="5 s") as stream:
        stream.push(events(1, 27), source=0)
        stream.push(events(2), source=1)
        stream.end_source(0)
        clock.pass_by(5)
        assert next_sums(stream, 2) == [3, 27]
        assert stream.metrics().watermark == 30


def test_without_idle_the_clock_says_nothing(clock: HandClock) -> None:
    with QUERY.open(late=True) as stream:
        stream.push(events(1))
        clock.pass_by(10**9)
        stream.push(events(2))
        stream.finish()
        assert next_sums(stream, 1) == [3]


def test_no_source_falls_silent_while_a_push_waits_for_room(clock: HandClock) -> None:
    silence = Silence(3, 5_000_000)
    clock.pass_by(5)
    assert silence.fallen() == [0, 1, 2]
    silence.know([2])
    silence.hear(0)
    silence.hear(1)
    silence.end(1)
    silence.pause()
    clock.pass_by(100)
    assert (silence.fallen(), silence.due_in) == ([], math.inf)
    silence.resume()
    assert (silence.fallen(), silence.due_in) == ([], 5)
    clock.pass_by(5)
    assert silence.fallen() == [0]


def test_the_time_that_a_stream_takes_to_begin_is_no_silence(
    clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = StreamThread._begin

    def slow(thread: StreamThread) -> None:
        wait_until(lambda: len(thread._shared.room_comes))  # the first push waits
        clock.pass_by(60)
        begin(thread)

    monkeypatch.setattr(StreamThread, "_begin", slow)
    with QUERY.open(sources=2, idle="5 s", late=True) as stream:
        stream.push(events(30), source=0)
        stream.push(events(1), source=1)
        stream.finish()
        assert next_sums(stream, 2) == [1, 30]


def test_keys_of_custom_windows_hold_rows_back_however_silent_the_stream_is(
    clock: HandClock,
) -> None:
    query = pf.Query(
        {"ten": W.tumbling(10), "high": Threshold("v", 1.0)}, {"sum": A.sum("v")}, time="t"
    )
    with query.open(idle="5 s") as stream:
        stream.push(events(1, 12))
        clock.pass_by(5)
        wait_until(lambda: stream.metrics().watermark == 21)
        stream.finish()
        rows = pa.concat_tables(stream.results())
    assert rows.equals(query.over(events(1, 12)))


def test_a_silent_stream_needs_no_core() -> None:
    with QUERY.open(idle="1 ms") as stream:
        stream.push(events(1, 12))
        wait_until(lambda: stream.metrics().watermark == 20)
        assert comes_to_rest()


def test_what_idle_may_be() -> None:
    refused(pf.QueryError, partial(QUERY.open, idle=5), "idle", '"5 seconds"')
    refused(pf.QueryError, partial(QUERY.open, idle="0 s"), "idle")
    refused(pf.QueryError, partial(QUERY.open, max_ahead=5), "max_ahead", '"5 seconds"')


# Times ahead of the clock.

STAMPED = pf.Query(W.tumbling("10 s"), {"sum": A.sum("v")}, lateness="10 s")
NOW = 1_700_000_000_000_000


def stamped(*seconds: float | None, unit: str = "us") -> pa.Table:
    """Events that many seconds after now."""
    micros = [None if s is None else NOW + round(s * 1e6) for s in seconds]
    times = pa.array(micros, pa.int64()).cast(pa.timestamp("us")).cast(pa.timestamp(unit), False)
    values = pa.array([1] * len(seconds))
    return pa.table({"ts": times, "v": values, "n": range(len(seconds))})


@pytest.fixture
def today(monkeypatch: pytest.MonkeyPatch) -> Iterator[HandClock]:
    yield hand_clock(monkeypatch, NOW)


@pytest.mark.parametrize("unit", ["us", "ms", "ns"])
@pytest.mark.parametrize("late", [False, True])
def test_events_too_far_ahead_are_left_out_and_counted(
    today: HandClock, unit: str, late: bool
) -> None:
    with STAMPED.open(max_ahead="1 minute", late=late) as stream:
        stream.push(stamped(0, 61, None, 60, 1e6, unit=unit))
        stream.push(stamped(58, unit=unit))
        today.pass_by(2)
        stream.push(stamped(62, 62.1, unit=unit))
        stream.finish()
        rows = pa.concat_tables(stream.results())
        metrics = stream.metrics()
    assert sum(rows["sum"].to_pylist()) == 4
    assert (metrics.ahead, metrics.timeless, metrics.pushed, metrics.late) == (3, 1, 4, 0)


def test_a_stream_of_nothing_but_times_too_far_ahead(today: HandClock) -> None:
    with STAMPED.open(max_ahead="0 s", late=True) as stream:
        stream.push(stamped(1, 2))
        stream.finish()
        assert list(stream.results()) == []
        assert stream.metrics().ahead == 2


def test_max_ahead_is_for_timestamps() -> None:
    with QUERY.open(max_ahead="1 minute") as stream:
        push = partial(stream.push, events(1))
        refused(pf.InputError, push, "max_ahead", "'t'", "int64", "timestamp")
