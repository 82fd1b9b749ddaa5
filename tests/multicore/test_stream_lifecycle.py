"""How streams end: finished, closed, failed, abandoned; and what a slow reader does to a writer."""

from __future__ import annotations

import gc
import itertools
import os
import re
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.choosing import BY_NAME
from paneflow.engines.multicore.one_worker.single import Single
from paneflow.engines.multicore.stream import Stream
from paneflow.engines.multicore.tuning import tuning
from tests.waiting import PATIENCE, comes_to_rest, wait_until

STRATEGIES = ["auto", *BY_NAME]
QUERY = pf.Query(W.tumbling(10), {"sum": A.sum("v")}, key="k", time="t")


def events(start: int, end: int) -> pa.Table:
    t = np.arange(start, end)
    return pa.table({"t": t, "v": t % 7, "k": t % 3})


def ours() -> list[str]:
    return sorted(
        t.name
        for t in threading.enumerate()
        if t.name.startswith("paneflow-") and not t.name.startswith("paneflow-scatter")
    )


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = ours()
    yield
    wait_until(lambda: ours() == before or (gc.collect() and False))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_closed_stream_keeps_the_rows_that_were_final(strategy: str) -> None:
    with QUERY.open(workers=3, strategy=strategy) as stream:
        for start in range(0, 1000, 50):
            stream.push(events(start, start + 50))
    got = pa.concat_tables(stream.results())
    assert got.equals(QUERY.over(events(0, 990)).slice(0, got.num_rows))
    assert got["end"].to_pylist()[-1] == 990


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_finished_stream_that_is_closed_keeps_all_rows(strategy: str) -> None:
    with QUERY.open(workers=2, strategy=strategy) as stream:
        stream.push(events(0, 1000))
        stream.finish()
    assert pa.concat_tables(stream.results()).equals(QUERY.over(events(0, 1000)))
    assert list(stream.results()) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_abandoned_stream_ends_its_threads(strategy: str) -> None:
    stream = QUERY.open(workers=3, strategy=strategy)
    stream.push(events(0, 1000))
    assert "paneflow-stream" in ours()
    del stream


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_held_in_order_is_freed_with_the_stream(strategy: str) -> None:
    """At once: the garbage collector seldom looks at the few objects that hold many events."""
    with QUERY.open(workers=2, strategy=strategy) as stream:
        stream.push(events(0, 1000))
        stream.finish()
        list(stream.results())
    assert stream._core is not None
    pipeline = stream._core.shared.pipeline
    held = [weakref.ref(part) for part in (pipeline.front, pipeline.strategy, pipeline.collector)]
    gc.disable()
    try:
        del stream, pipeline
        assert [part() for part in held] == [None, None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_error_in_the_block_ends_the_threads(strategy: str) -> None:
    with pytest.raises(ZeroDivisionError), QUERY.open(workers=2, strategy=strategy) as stream:
        stream.push(events(0, 1000))
        raise ZeroDivisionError


@pytest.mark.parametrize("end", ["finish", "close"])
def test_pushing_after_the_end_is_an_error(end: str) -> None:
    with QUERY.open() as stream:
        stream.push(events(0, 10))
        getattr(stream, end)()
        with pytest.raises(pf.PaneflowError, match=f"push on a stream that is {end[:5]}.*open"):
            stream.push(events(10, 20))
        getattr(stream, end)()  # a second time it does nothing


def test_a_stream_may_be_closed_before_anything_was_pushed() -> None:
    with QUERY.open() as stream:
        pass
    with pytest.raises(pf.PaneflowError, match="closed"):
        stream.push(events(0, 10))


TOLD = "processing unit|the function raised"


def brittle(values: Any) -> float:
    if values.max() >= 500:
        raise ArithmeticError("no windows beyond 500, please")
    return float(values.sum())


@pytest.mark.parametrize("strategy", ["auto", "active", "agnostic"])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_failing_function_shows_its_traceback_and_keeps_final_rows(
    strategy: str, workers: int
) -> None:
    query = pf.Query(W.tumbling(10), {"a": A.apply(brittle, "t")}, time="t")
    rows: list[int] = []
    with query.open(workers=workers, strategy=strategy) as stream:
        stream.push(events(0, 300))
        while not rows or rows[-1] < 290:
            rows += [end for t in stream.results(0.01) for end in t["end"].to_pylist()]
        with pytest.raises(pf.PaneflowError) as caught:
            for start in range(300, 2000, 10):
                stream.push(events(start, start + 10))
                rows += [end for t in stream.results(0.001) for end in t["end"].to_pylist()]
            stream.finish()
            rows += [end for t in stream.results() for end in t["end"].to_pylist()]
        shown = "".join(traceback.format_exception(caught.value))
        assert re.search(TOLD, str(caught.value))
        assert "in brittle" in shown
        assert "no windows beyond 500, please" in shown
        with pytest.raises(pf.PaneflowError, match=TOLD):
            stream.push(events(2000, 2010))
        with pytest.raises(pf.PaneflowError, match=TOLD):
            for table in stream.results():
                rows += table["end"].to_pylist()
    assert rows == list(range(10, rows[-1] + 1, 10))
    assert rows[-1] <= 500


def test_a_failure_is_told_to_readers_while_threads_are_still_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    let_end = threading.Event()
    monkeypatch.setattr(Single, "stop", lambda self: let_end.wait(PATIENCE))
    query = pf.Query(W.tumbling(10), {"a": A.apply(brittle, "t")}, time="t")
    with query.open() as stream:
        stream.push(events(0, 600))
        with pytest.raises(pf.PaneflowError, match=TOLD):
            for start in itertools.count(600, 10):
                stream.push(events(start, start + 10))
                time.sleep(0.001)
        with pytest.raises(pf.PaneflowError, match=TOLD):
            list(stream.results())
        let_end.set()


def brittle_behind(values: Any) -> float:
    if values.min() >= 500:
        raise ArithmeticError("no windows from 500 on, please")
    return float(values.sum())


AT_ONCE = {
    "when events are folded": (
        W.tumbling(10),
        A.define(
            lift=lambda t: 1 / (t - 505),
            combine=lambda a, b: a + b,
            lower=lambda p: p,
            identity=0.0,
            commutative=True,
            samples=[1.0, 2.0],
        )("t"),
        500,
    ),
    "when a window closes": (W.tumbling(10), A.apply(brittle, "t"), 500),
    "when a session closes": (W.session(5), A.apply(brittle, "t"), 494),
    "at the end": (W.sliding(1000, 100), A.apply(brittle_behind, "t"), 1400),
}


@pytest.mark.parametrize("case", AT_ONCE)
def test_one_worker_gives_every_row_before_a_failure_even_of_the_same_push(case: str) -> None:
    window, aggregate, last = AT_ONCE[case]
    table = events(0, 1000)
    if isinstance(window, W.Session):  # ten events in a row, then none for twenty-two
        table = table.filter(pa.array(table["t"].to_numpy() % 32 < 10))
    query = pf.Query(window, {"a": aggregate}, time="t")
    rows: list[int] = []
    with query.open() as stream, pytest.raises(pf.PaneflowError):
        stream.push(table)
        stream.finish()
        for found in stream.results():
            rows += found["end"].to_pylist()
    ends = pf.Query(window, {"n": A.count()}, time="t").over(table)["end"].to_pylist()
    assert rows == [end for end in ends if end <= last]
    assert rows[-1] == last


def slow_and_brittle(values: Any) -> float:
    time.sleep(0.002)
    return brittle(values)


@pytest.mark.parametrize("strategy", ["active", "agnostic"])
def test_rows_that_were_under_way_before_a_failure_are_given(strategy: str) -> None:
    query = pf.Query(W.tumbling(10), {"a": A.apply(slow_and_brittle, "t")}, time="t")
    rows: list[int] = []
    with query.open(workers=3, strategy=strategy) as stream:
        stream.push(events(0, 400))
        wait_until(lambda: not stream.metrics().waiting)
        stream.push(events(400, 600))
        stream.finish()
        with pytest.raises(pf.PaneflowError, match="processing unit"):
            for table in stream.results():
                rows += table["end"].to_pylist()
    assert rows[:39] == list(range(10, 400, 10))


def brittle_lift(x: float) -> float:
    return 1.0 // (x - 50.0) if x > 49.0 else x


def brittle_combine(a: float, b: float) -> float:
    if b >= 50.0:
        raise ValueError("too much")
    return a + b


def brittle_lower(p: float) -> float:
    return 1.0 // (p - 545.0)  # 50 + 51 + ... + 59


def plain_lift(x: float) -> float:
    return x


def plain_combine(a: float, b: float) -> float:
    return a + b


def plain_lower(p: float) -> float:
    return p


FAILING = [
    *((role, name, W.tumbling(10)) for role in ("lift", "combine", "lower") for name in STRATEGIES),
    *((role, "agnostic", W.count(10)) for role in ("lift", "combine", "lower")),
    *((role, "auto", W.session(0)) for role in ("lift", "combine", "lower")),
    *((role, "auto", W.count(9)) for role in ("lift", "combine")),
]


@pytest.mark.parametrize(("role", "strategy", "window"), FAILING, ids=str)
def test_a_compiled_function_that_fails_shows_its_lines(
    role: str, strategy: str, window: W.Window
) -> None:
    functions = {"lift": plain_lift, "combine": plain_combine, "lower": plain_lower}
    functions[role] = globals()[f"brittle_{role}"]
    user = A.define(**functions, identity=0.0, commutative=True, samples=(1.0, 2.0))
    query = pf.Query(window, {"a": user("v")}, time="t")
    t = np.arange(100)
    t = t // 10 * 10 if isinstance(window, W.Session) else t
    with query.open(workers=2 if strategy != "auto" else 1, strategy=strategy) as stream:
        stream.push(pa.table({"t": t, "v": np.arange(100.0)}))
        with pytest.raises(pf.PaneflowError, match=rf"define\(v\): {role}\(.* raised") as caught:
            stream.finish()
            list(stream.results())
    assert isinstance(caught.value.__cause__, ZeroDivisionError | ValueError)
    assert f"in brittle_{role}" in "".join(traceback.format_exception(caught.value))


def brittle_at_the_end(p: float) -> float:
    return 1.0 // (p - 945.0)  # 90 + 91 + ... + 99


@pytest.mark.parametrize("end", ["finish", "close"])
@pytest.mark.parametrize("lower", [brittle_lower, brittle_at_the_end], ids=["within", "at the end"])
@pytest.mark.parametrize("strategy", BY_NAME)
def test_a_failure_that_slow_units_come_to_after_the_last_push_is_told(
    strategy: str, lower: Callable[[float], float], end: str
) -> None:
    """Then rows are taken for the first time when the stream has been finished."""
    functions = {"lift": plain_lift, "combine": plain_combine, "lower": lower}
    user = A.define(**functions, identity=0.0, commutative=True, samples=(1.0, 2.0))
    query = pf.Query(W.tumbling(10), {"a": user("v")}, time="t")
    slow = Stream(query, 2, strategy, pauses=lambda rank: time.sleep(0.01))
    rows: list[int] = []
    with slow as stream, pytest.raises(pf.PaneflowError, match=r"lower\(.* raised"):
        stream.push(pa.table({"t": np.arange(100), "v": np.arange(100.0)}))
        getattr(stream, end)()
        for table in stream.results():
            rows += table["end"].to_pylist()
    assert rows == list(range(10, 60 if lower is brittle_lower else 100, 10))


def test_a_decreasing_delta_column_fails_the_stream_with_the_reason() -> None:
    query = pf.Query(W.delta("v", 3, 1), {"n": A.count()}, time="t")
    with query.open() as stream:
        stream.push(pa.table({"t": [1, 2, 3], "v": [1, 5, 2]}))
        stream.finish()
        with pytest.raises(pf.InputError, match="must not decrease"):
            list(stream.results())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_idle_stream_uses_no_core(strategy: str) -> None:
    with QUERY.open(workers=3, strategy=strategy) as stream:
        stream.push(events(0, 100))
        rows = 0
        while rows < 27:
            rows += sum(table.num_rows for table in stream.results(0.1))
        assert comes_to_rest()


def most_held(total: int) -> tuple[int, int, int]:
    """Push so many events to a reader that is slow; the most that were held, and the rows."""
    query = pf.Query(W.tumbling(4), {"n": A.count()}, time="t")
    step = 50_000
    t = np.arange(step)
    most = rows = 0
    with query.open() as stream:

        def read() -> None:
            nonlocal rows, most
            while rows < total // 4:
                for table in stream.results(0.1):
                    rows += table.num_rows
                    metrics = stream.metrics()
                    held = metrics.waiting + metrics.held + metrics.withheld + metrics.unread
                    most = max(most, held)
                    time.sleep(0.002)

        reader = threading.Thread(target=read)
        for start in range(0, total, step):
            stream.push(pa.table({"t": t + start}))
            if start == 0:
                reader.start()
            metrics = stream.metrics()
            most = max(most, metrics.waiting + metrics.held + metrics.withheld + metrics.unread)
        stream.finish()
        reader.join()
        pushed = stream.metrics().pushed
    return most, rows, pushed


BOUND = tuning.most_waiting + 2 * tuning.most_unread


def test_a_slow_reader_slows_the_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "most_waiting", 2**16)
    monkeypatch.setattr(tuning, "most_unread", 2**14)
    most, rows, pushed = most_held(2_000_000)
    assert (rows, pushed) == (500_000, 2_000_000)
    assert most <= 2**16 + 2 * 2**14


@pytest.mark.exhaustive
def test_a_hundred_million_events_are_never_held_at_once() -> None:
    total = int(os.environ.get("PANEFLOW_STREAM_EVENTS", "100000000"))
    most, rows, pushed = most_held(total)
    assert (rows, pushed) == (total // 4, total)
    assert most <= BOUND


def test_pushing_without_reading_is_told_apart_from_a_slow_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "most_waiting", 2**14)
    monkeypatch.setattr(tuning, "most_unread", 2**10)
    monkeypatch.setattr(tuning, "patience", 0.2)
    query = pf.Query(W.tumbling(1), {"n": A.count()}, time="t")
    with (
        query.open() as stream,
        pytest.raises(pf.UnsupportedError, match=r"call stream.results\(\)"),
    ):
        for start in range(0, 10**6, 1000):
            stream.push(pa.table({"t": np.arange(start, start + 1000)}))


@pytest.mark.parametrize("strategy", ["single", "slices", "pane_line", "agnostic"])
def test_a_thread_that_reads_between_pushes_never_waits_for_itself(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers finish rows after their events have made room, so both sides may be full at once."""
    monkeypatch.setattr(tuning, "most_waiting", 2**12)
    monkeypatch.setattr(tuning, "most_unread", 2**8)
    monkeypatch.setattr(tuning, "patience", 0.5)
    query = pf.Query(W.sliding(4, 2), {"n": A.count()}, key="k", time="t")
    rows = 0
    with query.open(workers=2, strategy=strategy) as stream:
        for start in range(0, 40_000, 2000):
            events = np.arange(start, start + 2000)
            stream.push(pa.table({"t": events, "k": events % 3}))
            rows += sum(len(some) for some in stream.results())
            metrics = stream.metrics()
            assert metrics.waiting <= 2 * 2**12 + 2000, "one push more than there is room for"
        stream.finish()
        rows += sum(len(some) for some in stream.results())
    expected = query.over(pa.table({"t": np.arange(40_000), "k": np.arange(40_000) % 3}))
    assert rows == len(expected)


def test_several_threads_may_push() -> None:
    query = pf.Query(W.tumbling(10), {"n": A.count()}, time="t")
    with query.open(sources=4) as stream:

        def feed(source: int) -> None:
            for start in range(0, 1000, 20):
                stream.push(pa.table({"t": np.arange(start, start + 20)}), source)

        feeders = [threading.Thread(target=feed, args=(k,)) for k in range(4)]
        for feeder in feeders:
            feeder.start()
        for feeder in feeders:
            feeder.join()
        stream.finish()
        got = pa.concat_tables(stream.results())
    assert got["n"].to_pylist() == [40] * 100
