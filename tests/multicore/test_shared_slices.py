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
from paneflow.engines.multicore.stream import Stream
from paneflow.engines.multicore.tuning import tuning
from tests.multicore.support import random_pauses
from tests.properties.compare import assert_same_rows
from tests.waiting import PATIENCE

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
    monkeypatch.setattr(tuning, "cut_at_once", cut)
    monkeypatch.setattr(tuning, "cut_least", min(cut, tuning.cut_least))
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


def test_a_push_is_a_group_of_floats_of_its_own() -> None:
    query = pf.Query(W.tumbling(10), {"sum": A.sum("v")}, time="t")
    large, small = 1e16, 1.0
    each = [pa.table({"t": [1], "v": [v]}) for v in (large, small, small)]
    alone = answered(query, each, 2)["sum"].to_pylist()
    assert alone == [large + small + small] != [large + (small + small)]
    last = pa.concat_tables(each[1:])
    assert answered(query, [each[0], last], 2)["sum"].to_pylist() == [large + (small + small)]


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
    n = 4 * tuning.cut_here
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
    with query.open(workers=2) as stream:
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
    starts = np.cumsum([0, *lengths[:-1]])
    pushes = [
        pa.table({"t": np.arange(start, start + n)})
        for start, n in zip(starts, lengths, strict=True)
    ]
    rows = answered(query, pushes, 2)
    assert sum(looked) == sum(lengths) and max(looked[:-3]) <= 50 and looked[-3:] == [100] * 3
    assert rows["n"].to_pylist() == [10] * 40


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
    query = pf.Query({"w": W.sliding(1000, 1)}, {"n": A.count()}, time="t")
    said = []
    for workers in (1, 2):
        with query.open(workers=workers, max_rows=900) as stream:
            stream.push(pa.table({"t": [0, 5, 5000]}))
            stream.finish()
            with pytest.raises(pf.UnsupportedError, match="'w'") as refusal:
                list(stream.results())
        said.append(str(refusal.value))
    assert said[0] == said[1]
