"""Events behind the watermark join the windows that are open for them, whoever answers."""

from __future__ import annotations

import contextlib
import math
import os
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from examples.threshold_window import Threshold
from paneflow import aggregates as A, windows as W
from paneflow.engines.live.open_windows import Held, OpenWindows
from paneflow.engines.live.stream_options import StreamOptions
from paneflow.engines.multicore.choosing import BY_NAME
from paneflow.engines.multicore.stream import Stream
from paneflow.engines.multicore.tuning import tuning
from tests.multicore.hand_clock import hand_clock
from tests.multicore.straggler_model import (
    FOLDED,
    KEPT,
    SCHEMA,
    Arrival,
    Case,
    Model,
    digits,
    draw,
    pushes,
    sessions,
    time_windows,
    windows_by_events,
    with_pauses,
)
from tests.multicore.support import ONE_WORKER, UNORDERED, asked_of, random_helping
from tests.properties.compare import assert_same_rows
from tests.seeds import some_first

MANY = int(os.environ.get("PANEFLOW_RANDOM_STRAGGLERS", "4000"))
STRATEGIES = ["auto", *BY_NAME]
WHOLE_WINDOWS = (*ONE_WORKER, "auto", "active", "agnostic")
"""Those that answer more than time and count windows, and aggregates of fixed size."""


def drawn(r: random.Random, strategy: str) -> Case:
    """A stream with stragglers that a strategy can answer."""
    windows = asked_of(strategy, [*time_windows(r), W.count(r.randint(1, 5), r.randint(1, 4))])
    if strategy in WHOLE_WINDOWS:
        windows.append(W.punctuation("mark"))
    if strategy in WHOLE_WINDOWS and strategy != "active":
        windows += [*sessions(r), *windows_by_events(r)]
    if strategy in (*ONE_WORKER, "auto"):
        windows.append(Threshold("x", 1.0))
    aggregates = FOLDED | KEPT if strategy in WHOLE_WINDOWS else FOLDED
    if strategy in UNORDERED:
        aggregates = {n: a for n, a in aggregates.items() if not a.laws.order_sensitive}
    return draw(r, windows, aggregates)


def check(case: Case, r: random.Random, strategy: str, workers: int, idle: int) -> None:
    """Rows and late events are those of the model; `idle` is in seconds, 0 for none."""
    model = Model(case.query, case.sources, idle or math.inf)
    model.replay(case.arrivals)
    got: list[pa.Table] = []
    late: list[pa.Table] = []
    options = StreamOptions.of(late=True, idle=f"{idle} s" if idle else None)
    with (
        pytest.MonkeyPatch.context() as patch,
        Stream(case.query, workers, strategy, case.sources, options=options) as stream,
    ):
        clock = hand_clock(patch)
        for after, source, events in pushes(r, case):
            clock.pass_by(after)
            if events is None:
                stream.end_source(source)
            else:
                stream.push(events, source)
            if r.random() < 0.3:
                got += stream.results(r.choice([0, 0, 0.001]))
                late += stream.late(r.choice([0, 0, 0.001]))
        stream.finish()
        got += stream.results()
        late += stream.late()
        counted = stream.metrics().late
    expected = model.rows()
    assert_same_rows(case.query, pa.concat_tables([expected.slice(0, 0), *got]), expected)
    assert pa.concat_tables([SCHEMA.empty_table(), *late]).to_pylist() == model.late
    assert counted == len(model.late)


@contextlib.contextmanager
def little_room(r: random.Random) -> Iterator[None]:
    """What is held in vain is let go of early, so that what is held gets new places."""
    room = r.choice([4, 20, 2**14])
    with pytest.MonkeyPatch.context() as patch:
        for name in ("spare_slots", "spare_sessions", "loose_slices"):
            patch.setattr(tuning, name, room)
        yield


def draw_and_check(seed: object, strategy: str, idle: int = 0) -> None:
    r = random.Random(f"{strategy} {seed}")
    case = drawn(r, strategy)
    case = with_pauses(r, case) if idle else case
    workers = r.randint(1, 4)
    try:
        with random_helping(r), little_room(r):
            check(case, r, strategy, workers, idle)
    except Exception as error:
        said = f"seed {seed}, {strategy} by {workers}, idle={idle}: {case!r}"
        raise AssertionError(said) from error


@pytest.mark.parametrize("seeds", some_first(6, 30))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_stragglers_join_what_is_open_and_nothing_else(strategy: str, seeds: range) -> None:
    for seed in seeds:
        draw_and_check(seed, strategy)


@pytest.mark.parametrize("seeds", some_first(3, 12))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_silent_sources_hold_nothing_back(strategy: str, seeds: range) -> None:
    for seed in seeds:
        draw_and_check(f"silent {seed}", strategy, idle=4)


@pytest.mark.parametrize("seed", [173, 273])
def test_stragglers_of_one_time_stay_in_order_whichever_threads_are_busy(seed: int) -> None:
    """Streams of a single source whose stragglers tie: `first` and `last` tell their order."""
    for _ in range(5):
        draw_and_check(f"silent {seed}", "tuple_gate_parallel", idle=4)


@pytest.mark.exhaustive
def test_thousands_of_streams_with_stragglers() -> None:
    for seed in range(MANY):
        idle = seed // len(STRATEGIES) % 2 * 4
        draw_and_check(f"many {seed}", STRATEGIES[seed % len(STRATEGIES)], idle)


def answered(
    query: pf.Query, pushes: list[list[tuple[int, int]]], sources: int = 1
) -> tuple[list[Any], int]:
    """Rows and late events of a stream of (t, v), pushed to one source after the other."""
    with query.open(sources=sources) as stream:
        for k, events in enumerate(pushes):
            stream.push([{"t": t, "v": v} for t, v in events], source=k % sources)
        stream.finish()
        rows = [row for table in stream.results() for row in table.to_pylist()]
        return rows, stream.metrics().late


def test_an_event_behind_the_watermark_joins_the_window_that_is_open() -> None:
    query = pf.Query(W.tumbling(10), {"sum": A.sum("v")}, time="t")
    rows, late = answered(query, [[(1, 1), (8, 2)], [(3, 4)], [(10, 8), (9, 16)]])
    assert ([row["sum"] for row in rows], late) == ([7, 8], 1)


def test_an_event_that_joins_some_windows_is_not_in_those_that_were_given() -> None:
    query = pf.Query(W.sliding(10, 5), {"sum": A.sum("v")}, time="t")
    rows, late = answered(query, [[(1, 1), (10, 2), (7, 4)]])
    assert [(row["end"], row["sum"]) for row in rows] == [(5, 1), (10, 1), (15, 6), (20, 2)]
    assert late == 0


def test_a_window_without_events_that_has_passed_does_not_come_back() -> None:
    query = pf.Query(W.sliding(10, 5), {"sum": A.sum("v")}, time="t")
    rows, _ = answered(query, [[(12, 1), (9, 2)]])
    assert [(row["end"], row["sum"]) for row in rows] == [(15, 3), (20, 1)]


def test_a_straggler_can_lead_two_open_sessions_into_one() -> None:
    query = pf.Query(W.session(5), {"sum": A.sum("v")}, time="t", lateness=4)
    rows, late = answered(query, [[(3, 1), (12, 2), (7, 4)]])  # the watermark is at 8
    assert [(row["seq"], row["start"], row["end"], row["sum"]) for row in rows] == [(0, 3, 17, 7)]
    assert late == 0


def test_a_closed_session_stays_as_it_was_given() -> None:
    query = pf.Query(W.session(2), {"sum": A.sum("v")}, time="t")
    rows, late = answered(query, [[(1, 1), (10, 2), (9, 4), (3, 8), (7, 16)]])
    given = [(row["seq"], row["start"], row["end"], row["sum"]) for row in rows]
    assert given == [(0, 1, 3, 1), (1, 7, 12, 22)]
    assert late == 1  # 3 would have joined what was given


def test_positions_are_final_at_the_watermark() -> None:
    query = pf.Query([W.count(2), W.tumbling(10)], {"sum": A.sum("v")}, time="t")
    rows, late = answered(query, [[(1, 1), (8, 2), (3, 4)]])
    assert {row["window"]: row["sum"] for row in rows} == {"count(2)": 3, "tumbling(10)": 7}
    assert late == 0


@pytest.mark.parametrize(
    "aggregate", [A.collect("v"), digits("v"), A.first("v"), A.last("v")], ids=str
)
def test_a_straggler_stands_where_its_time_and_source_put_it(aggregate: Any) -> None:
    query = pf.Query([W.tumbling(10), W.session(9)], {"a": aggregate}, time="t")
    # Of source 0 come 7, then 5 and 2, which are behind the watermark; of source 1 5, 7 and 5.
    pushes = [[(7, 5)], [(5, 4), (7, 0)], [(5, 1), (2, 3)], [(5, 2)]]
    rows, late = answered(query, pushes, sources=2)
    ordered = [(2, 3), (5, 1), (5, 4), (5, 2), (7, 5), (7, 0)]
    expected = query.over([{"t": t, "v": v} for t, v in ordered], engine="oracle")
    assert [row["a"] for row in rows] == [row["a"] for row in expected]
    assert late == 0


@pytest.mark.parametrize("workers", [1, 3])
def test_what_must_be_combined_in_order_is_answered_by_who_keeps_events(workers: int) -> None:
    query = pf.Query(W.tumbling(10), {"a": digits("v")}, time="t")
    with query.open(workers=workers) as stream:
        stream.push([{"t": 1, "v": 1}, {"t": 8, "v": 3}, {"t": 5, "v": 2}])
        assert stream.plan.strategy in ("single", "slices", "active")
        stream.finish()
        rows = [row for table in stream.results() for row in table.to_pylist()]
    assert [row["a"] for row in rows] == [234]


def open_windows(case: Case) -> tuple[list[Any], int]:
    """Rows and late events of the windows that Spark streams hold, an event at a time."""
    windows = OpenWindows(case.query, SCHEMA)
    held = Held(windows.layout.empty_table(), SCHEMA.empty_table(), None)
    latest, before, late, rows = -(10**6), None, 0, []
    for event in [*(a.event for a in case.arrivals), None]:
        sent = []
        if event is not None:
            sent = [windows.sent(pa.Table.from_pylist([event], schema=SCHEMA))]
            latest = max(latest, event["t"])
        watermark = 10**6 if event is None else latest - case.query.lateness.value
        made, held, missed = windows.advance(held, *windows.received(sent), before, watermark)
        before, late = watermark, late + missed
        rows += made.to_pylist()
    return rows, late


def check_open_windows(seed: object) -> None:
    r = random.Random(f"open windows {seed}")
    windows = [*time_windows(r), *sessions(r), *windows_by_events(r)]
    windows += [W.count(3, 2), W.punctuation("mark"), Threshold("x", 1.0)]
    case = draw(r, windows, FOLDED | KEPT, most=30)
    case = Case(case.query, 1, [Arrival(0, a.event) for a in case.arrivals if a.event])
    model = Model(case.query, 1)
    model.replay(case.arrivals)
    expected = model.rows().to_pylist()
    for row in expected:
        if row["window"].startswith("session"):
            row["seq"] = None
    rows, late = open_windows(case)
    assert sorted(map(repr, rows)) == sorted(map(repr, expected)), f"seed {seed}: {case!r}"
    assert late == len(model.late), f"seed {seed}: {case!r}"


@pytest.mark.parametrize("some", range(3))
def test_the_windows_of_spark_streams_mean_the_same(some: int) -> None:
    for seed in range(some * 5, some * 5 + 5):
        check_open_windows(seed)


@pytest.mark.exhaustive
def test_the_windows_of_spark_streams_mean_the_same_in_hundreds_of_streams() -> None:
    for seed in range(MANY // 10):
        check_open_windows(f"many {seed}")
