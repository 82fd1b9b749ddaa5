"""Batches that workers share: the same rows to the bit, for any number of workers and any clock."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.intake import unordered_front
from paneflow.engines.multicore.intake.front import Arrival
from paneflow.engines.multicore.intake.unordered_front import UnorderedFront
from paneflow.engines.multicore.intake.unread import Unread
from paneflow.engines.multicore.stream import Stream
from paneflow.engines.multicore.threads.unit import Crew
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.engines.multicore.tuning import tuning
from paneflow.engines.multicore.workers.farm import Gathering
from tests.multicore.support import random_pauses
from tests.properties.compare import assert_same_rows
from tests.waiting import PATIENCE, wait_until

WINDOWS = [W.sliding(300, 7), W.sliding(50, 25), W.tumbling(40), W.sliding(500, 1, offset=3)]
FLOATS = {"sum": A.sum("v"), "mean": A.mean("v"), "var": A.var("v")}


def events(n: int, seed: int = 3) -> pa.Table:
    """Numbers of very different sizes, so that every grouping of them has a sum of its own."""
    r = np.random.default_rng(seed)
    return pa.table(
        {
            "t": np.sort(r.integers(0, n // 4, n)),
            "k": r.integers(0, 5, n),
            "v": r.normal(size=n) * 10.0 ** r.integers(-9, 9, n),
        }
    )


def answered(
    query: pf.Query, pushes: list[pa.Table], workers: int, seed: int = 0, **given: Any
) -> pa.Table:
    """The rows of pushes that a strategy takes one by one or many at once, as luck will have it."""
    r = random.Random(seed)
    pauses = random_pauses(seed) if seed else None
    got: list[pa.Table] = []
    with Stream(query, workers, "slices", pauses=pauses, **given) as stream:
        for push in pushes:
            stream.push(push)
            if r.random() < 0.3:
                got += stream.results(r.choice([0, 0.001]))
        stream.finish()
        got += stream.results()
    return pa.concat_tables(got)


@pytest.fixture(params=[(2**15, 2**18), (1, 2**18), (200, 1), (700, 500)], ids=str)
def luck(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """How much is cut at once, and how much merged before windows close: the clock decides both."""
    cut, close = request.param
    monkeypatch.setattr(tuning, "dealt_at_once", cut)
    monkeypatch.setattr(tuning, "dealt_least", min(cut, tuning.dealt_least))
    monkeypatch.setattr(tuning, "close_together", close)
    yield


FIRST: dict[str, list[dict[str, Any]]] = {}
"""The rows of the first answer to each question, with which later ones are compared."""


@pytest.mark.usefixtures("luck")
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_float_sums_are_the_same_to_the_bit(window: W.Window, workers: int) -> None:
    query = pf.Query(window, FLOATS, key="k", time="t")
    table = events(3000)
    pushes = [table.slice(at, 90) for at in range(0, len(table), 90)]
    for seed in range(3):
        rows = answered(query, pushes, workers, seed).to_pylist()
        assert rows == FIRST.setdefault(str(window), rows)


def test_floats_are_added_in_the_order_of_events_however_they_are_pushed() -> None:
    query = pf.Query(W.tumbling(10), {"sum": A.sum("v")}, time="t")
    large, small = 1e16, 1.0
    table = pa.table({"t": [1, 1, 1], "v": [large, small, small]})
    assert large + small + small != large + (small + small)
    for pushes in (
        [table],
        [table.slice(0, 1), table.slice(1)],
        [table.slice(k, 1) for k in range(3)],
    ):
        assert answered(query, pushes, 2)["sum"].to_pylist() == [large + small + small]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_events_of_one_key_are_added_as_they_are_among_others(
    window: W.Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "deal_here", 0)
    query = pf.Query(window, FLOATS | {"n": A.count("v"), "all": A.count()}, key="k", time="t")
    table = events(3000).set_column(1, "k", pa.array(np.arange(3000) // 100 % 5))
    v = pa.array(table["v"].to_numpy(), mask=np.arange(3000) % 7 == 0)
    table = table.set_column(2, "v", v)
    alone = [table.slice(at, 100) for at in range(0, len(table), 100)]
    rows = answered(query, [table], 2)
    for pushes in (alone, [table.slice(at, 70) for at in range(0, len(table), 70)]):
        got = []
        with Stream(query, 2, "slices") as stream:
            for push in pushes:
                stream.push(push)
                wait_until(lambda: stream.metrics().waiting == 0)
            stream.finish()
            got += stream.results()
        assert pa.concat_tables(got).equals(rows)
    assert_same_rows(query, rows, query.over(table, engine="oracle"))


@pytest.mark.parametrize("all_count", [False, True])
def test_events_without_a_value_join_slices_but_do_not_count(all_count: bool) -> None:
    aggregates = {"with": A.count("v"), "sum": A.sum("v"), "mean": A.mean("w")}
    if all_count:
        aggregates["n"] = A.count()
    query = pf.Query(W.sliding(40, 20), aggregates, key="k", time="t")
    r = np.random.default_rng(1)
    n = 400
    v, w = (pa.array(r.integers(0, 9, n), mask=r.random(n) < 0.4) for _ in range(2))
    table = pa.table({"t": np.arange(n) // 2, "k": r.integers(0, 5, n), "v": v, "w": w})
    pushes = [table.slice(at, 30) for at in range(0, n, 30)]
    assert_same_rows(query, answered(query, pushes, 2), query.over(table, engine="oracle"))


def test_a_long_push_is_taken_in_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("pushed_piece", 50), ("first_step", 100), ("dealt_least", 50)):
        monkeypatch.setattr(tuning, name, value)
    monkeypatch.setattr(tuning, "unknown_step", 100)
    query = pf.Query(W.sliding(40, 20), {"n": A.count(), "sum": A.sum("v")}, key="k", time="t")
    table = pa.table({"t": np.arange(1000) // 2, "k": np.arange(1000) % 5, "v": np.arange(1000)})
    rows = answered(query, [table], 2)
    assert_same_rows(query, rows, query.over(table, engine="oracle"))


@pytest.mark.parametrize(
    "window",
    # Kernels that merge many overlapping windows take seconds to compile.
    [pytest.param(w, marks=pytest.mark.long if w.slide.value < 10 else ()) for w in WINDOWS],
    ids=str,
)
def test_stragglers_of_some_keys_leave_the_sums_of_others_as_they_are(window: W.Window) -> None:
    """Windows that stragglers fall into are built again, in all shards or in none."""
    query = pf.Query(window, FLOATS, key="k", time="t")
    table = events(1500)
    late = np.arange(1500) % 100 == 99
    t = np.where(late, np.maximum(table["t"].to_numpy() - 30, 0), table["t"].to_numpy())
    table = table.set_column(0, "t", pa.array(t))
    pushes = [table.slice(at, 10) for at in range(0, len(table), 10)]
    rows = [answered(query, pushes, workers).to_pylist() for workers in (1, 2, 4)]
    assert len(rows[0]) >= 50
    assert rows[0] == rows[1] == rows[2]


def test_a_stream_that_falls_silent_for_long_goes_on_with_windows_of_its_own() -> None:
    query = pf.Query(W.sliding(40, 5), FLOATS, key="k", time="t")
    table = events(400)
    later = table.set_column(0, "t", pa.array(table["t"].to_numpy() + 10**12))
    both = pa.concat_tables([table, later])
    rows = answered(query, [both.slice(at, 30) for at in range(0, len(both), 30)], 2)
    assert_same_rows(query, rows, query.over(both, engine="oracle"))


@pytest.mark.parametrize("stuck", [0, 1])
def test_a_worker_that_is_stuck_does_not_hold_up_the_others(stuck: int) -> None:
    query = pf.Query(W.tumbling(1000), {"n": A.count()}, time="t")
    free = threading.Event()
    n = 4 * tuning.deal_here
    with Stream(query, 2, "slices", pauses=lambda rank: _wait(free, rank == stuck)) as stream:
        try:
            for start in range(0, 5 * n, n):
                stream.push(pa.table({"t": np.arange(start, start + n)}))
            got = 0
            while got < 5 * n // 1000 - 1:
                got += next(stream.results(PATIENCE)).num_rows
            units = stream.metrics().units
        finally:
            free.set()
    assert [unit.tuples for unit in units if unit.rank != stuck] == [5 * n]


def _wait(free: threading.Event, stuck: bool) -> None:
    if stuck:
        free.wait(PATIENCE)


def test_sources_that_push_side_by_side_need_no_order() -> None:
    query = pf.Query(
        [W.sliding(60, 20), W.tumbling(35)],
        {"n": A.count(), "top": A.max("v"), "first": A.first("v"), "last": A.last("v")},
        key="k",
        time="t",
    )
    sources = [events(2000, seed) for seed in range(3)]
    rows: list[pa.Table] = []
    with query.open(workers=2, sources=3) as stream:
        assert stream.plan.strategy == "slices"

        def push(source: int) -> None:
            for at in range(0, 2000, 70):
                stream.push(sources[source].slice(at, 70), source)
            stream.end_source(source)

        threads = [threading.Thread(target=push, args=(source,)) for source in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert stream.metrics().held == 0
        stream.finish()
        rows += stream.results()
    expected = query.over(pa.concat_tables(sources), engine="oracle")
    assert_same_rows(query, pa.concat_tables(rows), expected)


def test_events_wait_for_nothing_where_order_does_not_matter() -> None:
    query = pf.Query(W.tumbling(10), {"sum": A.sum("v")}, time="t", lateness=100)
    pushes = [pa.table({"t": [50 - k, 60 + k], "v": [1, 1]}) for k in range(40)]
    with query.open(workers=2, strategy="slices") as stream:
        for push in pushes:
            stream.push(push)
        stream.finish()
        rows = pa.concat_tables(stream.results())
        assert stream.metrics().held == stream.metrics().late == 0
    assert rows.equals(query.over(pa.concat_tables(pushes)))


def test_the_times_of_short_pushes_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    look = unordered_front.is_sorted
    monkeypatch.setattr(unordered_front, "is_sorted", lambda t: looked.append(len(t)) or look(t))
    monkeypatch.setattr(tuning, "looked_at_together", 50)
    query = pf.Query(W.tumbling(10), {"n": A.count()}, time="t")
    lengths = [10] * 10 + [100] * 3
    ends = np.cumsum(lengths)
    pushes = [
        pa.record_batch({"t": np.arange(e - n, e)}) for n, e in zip(lengths, ends, strict=True)
    ]
    front = UnorderedFront(query, pushes[0].schema, sources=1, workers=2)
    arrivals = [Arrival(0, each, None, len(each), 0.0, True) for each in pushes]
    known = [
        a._replace(span=(int(e) - 100, int(e) - 1))
        for a, e in zip(arrivals[10:], ends[10:], strict=True)
    ]
    steps = front.take_unread(arrivals[:10] + known)
    assert looked == [50, 50], "those that are known to be in order are not looked at again"
    assert sum(len(step) for step in steps if isinstance(step, Unread)) == sum(lengths)


def tripled(x: int) -> int:
    total = 0
    for _ in range(3):
        total += x
    return total


def total_of(lift: Callable[[int], int]) -> A.Definition:
    return A.define(
        lift=lift,
        combine=lambda a, b: a + b,
        lower=lambda p: p,
        identity=0,
        commutative=True,
        samples=[1, 2],
    )


cheap, slow = total_of(lambda x: 2 * x), total_of(tripled)


@pytest.mark.parametrize(
    ("windows", "aggregates", "strategy"),
    [
        ([W.sliding(60, 20)], {"sum": A.sum("v")}, "slices"),
        ([W.sliding(60, 20), W.session(2)], {"sum": A.sum("v")}, "single"),
        ([W.sliding(60, 20)], {"a": cheap("v"), "sum": A.sum("v")}, "single"),
        ([W.sliding(60, 20)], {"a": slow("v"), "sum": A.sum("v")}, "slices"),
        ([W.sliding(60, 20), W.session(2)], {"a": slow("v")}, "slices"),
        ([W.sliding(60, 20)], {"a": total_of(lambda x: tripled(x) + 1)("v")}, "slices"),
        ([W.session(2)], {"a": slow("v")}, "single"),
    ],
)
def test_auto_shares_batches_where_that_pays(
    windows: list[W.Window], aggregates: dict[str, A.Aggregate], strategy: str
) -> None:
    query = pf.Query(windows, aggregates, key="k", time="t")
    with query.open(workers=2) as stream:
        stream.push(pa.table({"t": [1, 2], "v": [1, 2], "k": [0, 0]}))
        assert stream.plan.strategy == strategy


def test_without_a_key_there_is_nothing_to_share() -> None:
    query = pf.Query(W.sliding(60, 20), {"sum": A.sum("v")}, time="t")
    with query.open(workers=2) as stream:
        stream.push(pa.table({"t": [1, 2], "v": [1, 2]}))
        assert stream.plan.strategy == "single"


def test_rows_are_complete_though_shards_close_windows_after_different_batches() -> None:
    crew = Crew("slices")
    gathering = Gathering(crew)
    told = []
    for number, closing in enumerate(["left", "right", "left", "both"], 1):
        seq = gathering.expect(2, 0.0, passed=10 * number)
        for part, name in enumerate(["left", "right"]):
            gathering.put(seq, [] if closing in (name, "both") else None, part)
        told += [rows.passed for rows in crew.output]
        crew.output.clear()
    assert told == [BEFORE_ALL, 10, 20, 40]


def test_a_session_does_not_keep_a_sliding_window_from_being_shared() -> None:
    windows = {"fine": W.sliding(60, 20), "visit": W.session(2), "pair": W.count(2)}
    aggregates = {"sum": A.sum("v"), "n": A.count(), "slow": slow("v")}
    query = pf.Query(windows, aggregates, key="k", time="t")
    with query.open(workers=2) as stream:
        assert stream.plan.strategy == "slices"
        assert "visit, pair: not made of slices" in str(stream.plan)
        table = events(600).set_column(2, "v", pa.array(np.arange(600)))
        for at in range(0, 600, 50):
            stream.push(table.slice(at, 50))
        stream.finish()
        rows = pa.concat_tables(stream.results())
    assert_same_rows(query, rows, query.over(table, engine="oracle"))


def test_too_many_rows_are_refused_by_workers_as_by_one() -> None:
    query = pf.Query({"w": W.sliding(1000, 1)}, {"n": A.count()}, key="k", time="t")
    said = []
    for workers in (1, 2):
        with query.open(workers=workers, max_rows=900) as stream:
            stream.push(pa.table({"t": [0, 5, 5000], "k": [1, 1, 1]}))
            stream.finish()
            with pytest.raises(pf.UnsupportedError, match="'w'") as refusal:
                list(stream.results())
        said.append(str(refusal.value))
    assert said[0] == said[1]
