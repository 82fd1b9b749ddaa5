"""What a stream gives, and when: order, watermarks, sources, late events, metrics."""

from __future__ import annotations

import datetime as dt
import threading
import time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.closing.event_log import EventLog
from tests.waiting import PATIENCE, wait_until

SUM = {"sum": A.sum("v")}
ADDED = (lambda v: v, lambda a, b: a + b, lambda p: p, 0.0)


def rows_of(stream: Any, wait: float = 1.0) -> list[dict[str, Any]]:
    """The rows of the next tables, each of which may be waited for."""
    return [row for rows in stream.results(wait) for row in rows.to_pylist()]


def next_rows(stream: Any, n: int) -> list[dict[str, Any]]:
    """At least so many rows, however long they take."""
    rows: list[dict[str, Any]] = []
    deadline = time.monotonic() + PATIENCE
    while len(rows) < n and time.monotonic() < deadline:
        rows += rows_of(stream, 0.02)
    return rows


def settled(stream: Any) -> None:
    """Wait until everything pushed has been looked at."""
    wait_until(lambda: not stream.metrics().waiting)
    time.sleep(0.02)


def test_what_is_not_final_is_not_given() -> None:
    query = pf.Query(W.tumbling(10), SUM, time="t")
    with query.open() as stream:
        stream.push([{"t": 1, "v": 1}, {"t": 9, "v": 2}])
        assert rows_of(stream, 0.05) == []
        stream.push([{"t": 10, "v": 4}])
        assert [row["sum"] for row in next_rows(stream, 1)] == [3]
        stream.finish()
        assert [row["sum"] for row in rows_of(stream)] == [4]


def test_lateness_holds_rows_back_until_events_can_no_longer_come() -> None:
    query = pf.Query(W.tumbling(10), SUM, time="t", lateness=5)
    with query.open() as stream:
        stream.push([{"t": 1, "v": 1}, {"t": 14, "v": 8}])
        assert rows_of(stream, 0.05) == []
        stream.push([{"t": 9, "v": 2}, {"t": 15, "v": 8}])
        assert [row["sum"] for row in next_rows(stream, 1)] == [3]


@pytest.mark.parametrize("split", [1, 2, 100])
def test_what_is_late_does_not_depend_on_batches(split: int) -> None:
    query = pf.Query(W.tumbling(10), SUM, time="t", lateness=2)
    t = [1, 12, 9, 10, 11, 3, 30, 27, 28, 29]
    events = pa.table({"t": t, "v": [1] * len(t)})
    with query.open() as stream:
        for start in range(0, len(t), split):
            stream.push(events.slice(start, split))
        stream.finish()
        rows = rows_of(stream)
        assert stream.metrics().late == 2  # 9 and 3 behind 10; 27 joins what ends at 30
    assert [(row["end"], row["sum"]) for row in rows] == [(10, 1), (20, 3), (30, 3), (40, 1)]


def test_the_slowest_source_holds_the_watermark_until_it_ends() -> None:
    query = pf.Query(W.tumbling(10), SUM, time="t")
    with query.open(sources=2) as stream:
        stream.push([{"t": 1, "v": 1}, {"t": 50, "v": 2}], source=0)
        assert rows_of(stream, 0.05) == []
        stream.push([{"t": 3, "v": 4}, {"t": 25, "v": 8}], source=1)
        assert [row["sum"] for row in next_rows(stream, 1)] == [5]
        stream.end_source(1)
        assert [row["sum"] for row in next_rows(stream, 1)] == [8]
        assert stream.metrics().watermark == 50


def test_a_source_may_end_before_it_has_shown_anything() -> None:
    query = pf.Query(W.tumbling(10), SUM, time="t")
    with query.open(sources=3) as stream:
        stream.end_source(2)
        stream.push([{"t": 11, "v": 1}], source=0)
        stream.end_source(1)
        stream.push([{"t": 21, "v": 1}], source=0)
        assert [row["end"] for row in next_rows(stream, 1)] == [20]


def test_equal_times_go_by_source_and_then_by_position() -> None:
    query = pf.Query(W.tumbling(10), {"all": A.collect("v")}, time="t")
    with query.open(sources=2) as stream:
        stream.push([{"t": 5, "v": 3}], source=1)
        stream.push([{"t": 5, "v": 1}, {"t": 5, "v": 2}], source=0)
        stream.push([{"t": 5, "v": 4}], source=1)
        stream.finish()
        assert [row["all"] for row in rows_of(stream)] == [[1, 2, 3, 4]]


def test_an_event_is_not_final_while_an_earlier_source_may_bring_one_of_its_time() -> None:
    query = pf.Query(W.count(3), {"all": A.collect("v")}, time="t")
    with query.open(sources=2) as stream:
        stream.push([{"t": 5, "v": 3}], source=1)
        stream.push([{"t": 5, "v": 1}], source=0)
        settled(stream)
        stream.push([{"t": 5, "v": 2}], source=0)
        stream.finish()
        assert [row["all"] for row in rows_of(stream)] == [[1, 2, 3]]


def test_keys_that_come_later_are_told_from_those_that_are_known() -> None:
    query = pf.Query(W.tumbling(10), {"n": A.count()}, key="k", time="t")
    with query.open() as stream:
        for keys in ([9, 1], [5, 9], [1, -3], [None, 5], [2**40, 1]):
            stream.push(pa.table({"t": [1, 1], "k": pa.array(keys, pa.int64())}))
            settled(stream)
        stream.finish()
        got = [(row["k"], row["n"]) for row in rows_of(stream)]
    assert got == [(None, 1), (-3, 1), (1, 3), (5, 2), (9, 2), (2**40, 1)]


def test_rows_come_in_one_order_across_all_tables() -> None:
    windows = {"b": W.tumbling(4), "a": W.sliding(8, 4), "c": W.count(3), "d": W.session(1)}
    query = pf.Query(windows, SUM, key="k", time="t")
    random = np.random.default_rng(1)
    t = np.cumsum(random.integers(0, 2, 400))
    events = pa.table({"t": t, "v": t, "k": random.choice(["z", "a", "m"], 400)})
    got = []
    with query.open() as stream:
        for start in range(0, 400, 7):
            stream.push(events.slice(start, 7))
            got += rows_of(stream, 0.001)
        stream.finish()
        got += rows_of(stream)
    order = [(row["end"], row["window"], row["seq"], row["k"]) for row in got]
    assert order == sorted(order)
    assert got == query.over(events).to_pylist()


def test_a_silent_key_holds_back_what_its_delta_window_may_still_precede() -> None:
    query = pf.Query(W.delta("d", 5, 2), SUM, key="k", time="t")
    with query.open() as stream:
        stream.push([{"t": 1, "v": 1, "d": 1, "k": "silent"}])
        stream.push([{"t": t, "v": 1, "d": t, "k": "busy"} for t in range(2, 40)])
        assert rows_of(stream, 0.05) == []
        stream.push([{"t": 40, "v": 1, "d": 40, "k": "silent"}])
        first, *_ = next_rows(stream, 1)
        assert (first["k"], first["end"]) == ("busy", 4)


def test_every_kind_of_batch_is_taken() -> None:
    query = pf.Query(W.tumbling(10), SUM, key="k", time="t")
    events = [{"t": 1, "v": 2, "k": "a"}]
    table = pa.Table.from_pylist(events)
    frame = pd.DataFrame(events)
    kinds = [events, table, table.to_batches()[0], frame, pl.DataFrame(events), []]
    with query.open() as stream:
        for batch in kinds:
            stream.push(batch)
        stream.finish()
        (row,) = rows_of(stream)
    assert (row["sum"], row["k"]) == (10, "a")


def test_timestamps_come_back_as_they_came() -> None:
    query = pf.Query(W.tumbling("10 s"), SUM, time="ts", lateness="1 s")
    start = dt.datetime(2024, 5, 6, tzinfo=dt.UTC)
    with query.open() as stream:
        stream.push([{"ts": start, "v": 1}])
        stream.finish()
        (row,) = rows_of(stream)
    assert (row["start"], row["end"]) == (start, start + dt.timedelta(seconds=10))


@pytest.mark.parametrize("strategy", ["slices", "active", "agnostic", "round_robin"])
def test_incomplete_windows_are_not_given_at_the_end(strategy: str) -> None:
    query = pf.Query(W.count(2, partial=True), SUM, time="t")
    with query.open(strategy=strategy) as stream:
        stream.push([{"t": t, "v": 1} for t in range(5)])
        stream.finish()
        assert [row["seq"] for row in rows_of(stream)] == [0, 1]


@pytest.mark.parametrize("strategy", ["auto", "active"])
def test_time_windows_are_looked_for_only_when_one_may_have_ended(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3 windows end in 30 pushes."""
    looks = []
    between = EventLog.between

    def counted(self: EventLog, *span: Any) -> Any:
        looks.append(span)
        return between(self, *span)

    monkeypatch.setattr(EventLog, "between", counted)
    query = pf.Query(W.tumbling(10), {"median": A.median("v")}, time="t")
    with query.open(strategy=strategy) as stream:
        for t in range(30):
            stream.push([{"t": t, "v": t}])
            settled(stream)
        assert [row["median"] for row in next_rows(stream, 2)] == [4.5, 14.5]
        stream.finish()
        assert [row["median"] for row in rows_of(stream)] == [24.5]
    assert len(looks) <= 4


def test_sessions_are_numbered() -> None:
    query = pf.Query(W.session(2), SUM, key="k", time="t")
    with query.open() as stream:
        for t in (1, 2, 10, 20, 21, 40):
            stream.push([{"t": t, "v": 1, "k": "a"}, {"t": t, "v": 1, "k": "b"}])
            settled(stream)
        stream.finish()
        assert [row["seq"] for row in rows_of(stream)] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_events_without_a_time_are_counted_and_left_out() -> None:
    query = pf.Query(W.tumbling(10), SUM, time="t")
    with query.open() as stream:
        stream.push(pa.table({"t": [1, None, 2], "v": [1, 2, 4]}))
        stream.finish()
        assert [row["sum"] for row in rows_of(stream)] == [5]
        assert stream.metrics().timeless == 1


@pytest.mark.parametrize("strategy", ["slices", "active", "agnostic", "round_robin"])
def test_metrics_say_what_was_done_and_how_long_it_took(strategy: str) -> None:
    query = pf.Query(W.tumbling(10), SUM, time="t")
    with query.open(workers=2, strategy=strategy) as stream:
        stream.push([{"t": t, "v": 1} for t in range(100)])
        stream.finish()
        assert len(rows_of(stream)) == 10
        metrics = stream.metrics()
    assert (metrics.pushed, metrics.late, metrics.waiting, metrics.held) == (100, 0, 0, 0)
    assert len(metrics.units) == 2
    assert sum(unit.results for unit in metrics.units) == 10
    assert sum(unit.tuples for unit in metrics.units) >= 100
    latency = metrics.latency
    assert latency.rows == 10
    assert 0 < latency.p50 <= latency.p99 <= latency.max


def test_a_reader_may_come_before_the_first_event() -> None:
    query = pf.Query(W.tumbling(10), SUM, time="t")
    with query.open() as stream:
        before = time.monotonic()
        assert list(stream.results(0.05)) == []
        assert time.monotonic() - before >= 0.05
        got: list[dict[str, Any]] = []
        reader = threading.Thread(target=lambda: got.extend(rows_of(stream, PATIENCE)))
        reader.start()
        stream.push([{"t": 1, "v": 1}])
        stream.finish()
        reader.join()
    assert [row["sum"] for row in got] == [1]


@pytest.mark.filterwarnings("ignore:.*plain Python")
def test_a_function_over_text_can_be_opened_for_several_workers() -> None:
    longest = A.define(
        lift=lambda s: len(s),
        combine=lambda a, b: max(a, b),
        lower=lambda n: n,
        identity=0,
        commutative=True,
        samples=("a", "bcd"),
    )
    query = pf.Query(W.tumbling(10), {"n": longest("s")}, time="t")
    with query.open(workers=2) as stream:
        stream.push([{"t": 1, "s": "ab"}, {"t": 2, "s": "abc"}])
        stream.finish()
        assert [row["n"] for row in rows_of(stream)] == [3]


def test_a_stream_without_events_gives_no_rows() -> None:
    query = pf.Query(W.tumbling(10), SUM, time="t")
    with query.open() as stream:
        stream.finish()
        assert rows_of(stream) == []
        assert stream.metrics().pushed == 0


@pytest.mark.parametrize(
    ("window", "aggregate", "workers", "strategy"),
    [
        (W.sliding(4, 2), A.sum("v"), 1, "single"),
        (W.sliding(4, 2), A.sum("v"), 4, "slices"),
        (W.sliding(4, 2), A.define(*ADDED, commutative=True)("v"), 4, "single"),
        (W.count(4, 2), A.define(*ADDED, commutative=True)("v"), 4, "pane_line"),
        (W.count(4, 2), A.sum("v"), 4, "single"),
        (W.sliding(4, 2), A.collect("v"), 4, "single"),
        (W.sliding(4, 2), A.bloom_filter("v"), 4, "single"),
        (W.sliding(4, 2), A.var("v"), 4, "slices"),
        (W.punctuation("m"), A.sum("v"), 4, "single"),
        (W.session(4), A.sum("v"), 4, "single"),
        (W.slide_by_tuple(4, 2), A.apply(np.median, "v"), 4, "single"),
    ],
    ids=str,
)
def test_windows_and_aggregates_decide_who_answers(
    window: W.Window, aggregate: A.Aggregate, workers: int, strategy: str
) -> None:
    query = pf.Query(window, {"a": aggregate}, key="k", time="t")
    with query.open(workers=workers) as stream:
        assert stream.plan.strategy == strategy
        assert "because" in str(stream.plan)


def test_a_plan_says_by_what_windows_are_merged_once_types_are_known() -> None:
    windows = {"fine": W.sliding(60, 1), "coarse": W.tumbling(60)}
    query = pf.Query(windows, {"n": A.count(), "sum": A.sum("v"), "top": A.max("v")}, time="t")
    with query.open() as stream:
        assert "fine is merged by daba for sum, top: " in str(stream.plan)
        stream.push([{"t": 1, "v": 5}])
        plan = str(stream.plan)
    assert "fine is merged by subtract for n, sum: " in plan
    assert "fine is merged by daba for top: " in plan
    assert "coarse is merged by recalculate for n, sum, top: " in plan


def test_active_workers_have_fewer_windows_that_overlap() -> None:
    query = pf.Query(W.sliding(60, 15), {"top": A.max("v")}, time="t")
    for workers, name in ((1, "daba"), (2, "recalculate")):
        with query.open(workers=workers, strategy="active") as stream:
            assert f" is merged by {name} for top: " in str(stream.plan)
