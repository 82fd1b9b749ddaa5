"""Streams without an engine: batches and a watermark in, the oracle's rows out, each once."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from examples.threshold_window import Threshold
from paneflow import aggregates as A, windows as W
from paneflow.engines.live.open_windows import Held, OpenWindows

END = 10**6


def stream_of(random: np.random.Generator, disorder: int) -> pa.Table:
    """Events in the order they arrive, out of order by no more than `disorder`."""
    n = int(random.integers(1, 120))
    times = np.cumsum(random.integers(0, 4, n))
    arrival = np.argsort(times + random.integers(0, disorder + 1, n), kind="stable")
    events = pa.table(
        {
            "t": times,
            "v": random.integers(0, 9, n),
            "grown": times * 2,
            "mark": random.random(n) < 0.2,
            "k": pa.array(random.integers(0, 3, n), mask=random.random(n) < 0.1),
        }
    )
    return events.take(pa.array(arrival))


def windows_of(random: np.random.Generator) -> list[W.Window]:
    def some(low: int, high: int) -> int:
        return int(random.integers(low, high))

    every = [
        W.sliding(some(1, 30), some(1, 30), offset=some(0, 5)),
        W.tumbling(7),
        W.session(some(0, 6)),
        W.count(some(1, 6), some(1, 9)),
        W.slide_by_tuple(some(1, 15), some(1, 6)),
        W.slide_by_time(some(1, 6), some(1, 9)),
        W.delta("grown", some(1, 12), some(0, 8)),
        W.punctuation("mark"),
    ]
    chosen = random.permutation(len(every))[: some(1, 4)]
    return [every[i] for i in chosen]


def run(query: pf.Query, batches: list[pa.Table], lateness: int) -> tuple[list[Any], int, Held]:
    """All rows of a stream, how many events were late, and what is remembered at its end."""
    source = batches[0].schema
    windows = OpenWindows(query, source)
    held = Held(windows.layout.empty_table(), source.empty_table(), None)
    rows: list[Any] = []
    late, latest, before = 0, -END, None
    for batch in [*batches, None]:
        sent = [] if batch is None else [windows.sent(batch)]
        slices, events = windows.received(sent)
        if batch is not None:
            latest = max(latest, max(batch["t"].to_pylist()))
        watermark = END if batch is None else latest - lateness
        made, held, missed = windows.advance(held, slices, events, before, watermark)
        before, late = watermark, late + missed
        rows += made.to_pylist()
    return rows, late, held


def expected(query: pf.Query, events: pa.Table) -> list[Any]:
    rows = query.over(events, engine="oracle").to_pylist()
    for row in rows:
        if row["window"].startswith("session"):
            row["seq"] = None
    return rows


def ordered(rows: list[Any]) -> list[str]:
    return sorted(repr(sorted(row.items(), key=str)) for row in rows)


def check(seed: int, commutative: bool = True) -> None:
    random = np.random.default_rng(seed)
    disorder = int(random.integers(0, 12))
    events = stream_of(random, disorder)
    aggregates: dict[str, Any] = {"sum": A.sum("v"), "all": A.collect("v"), "m": A.median("v")}
    if not commutative:
        aggregates["latest"] = latest_but_zero("v")
    key = "k" if random.random() < 0.8 else None
    query = pf.Query(windows_of(random), aggregates, key=key, time="t")
    cuts = np.sort(random.integers(1, len(events) + 1, int(random.integers(0, 12))))
    edges = [0, *np.unique(cuts).tolist(), len(events)]
    batches = [events.slice(a, b - a) for a, b in itertools.pairwise(edges) if b > a]
    rows, late, _ = run(query, batches, disorder)
    assert late == 0
    assert ordered(rows) == ordered(expected(query, events)), query


latest_but_zero = A.define(
    lift=lambda x: x,
    combine=lambda a, b: b if b != 0 else a,
    lower=lambda a: a,
    identity=0,
    commutative=False,
)


@pytest.mark.parametrize("seed", range(60))
def test_a_stream_in_any_batches_gives_the_rows_of_the_oracle(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", range(60, 70))
def test_a_stream_keeps_the_order_that_a_combine_needs(seed: int) -> None:
    check(seed, commutative=False)


@pytest.mark.exhaustive
def test_many_streams_give_the_rows_of_the_oracle() -> None:
    for seed in range(1000, 4000):
        check(seed)


def test_a_late_event_is_counted_and_changes_no_emitted_row() -> None:
    query = pf.Query([W.tumbling(10), W.count(2)], {"sum": A.sum("v")}, time="t")
    early = pa.table({"t": [1, 5, 25], "v": [1, 2, 4]})
    stray = pa.table({"t": [3], "v": [100]})
    rows, late, _ = run(query, [early, stray], 0)
    assert late == 1
    assert ordered(rows) == ordered(expected(query, early))


def test_an_event_is_late_once_the_watermark_has_reached_the_end_of_its_window() -> None:
    query = pf.Query(W.tumbling(10), {"sum": A.sum("v")}, time="t")
    batches = [pa.table({"t": [1, 10], "v": [1, 2]}), pa.table({"t": [3], "v": [4]})]
    rows, late, _ = run(query, batches, 0)
    assert (late, [row["sum"] for row in rows]) == (1, [1, 2])


def test_an_event_that_is_late_for_some_windows_only_is_not_counted() -> None:
    query = pf.Query([W.tumbling(10), W.session(30)], {"sum": A.sum("v")}, time="t")
    batches = [pa.table({"t": [1, 25], "v": [1, 2]}), pa.table({"t": [3], "v": [4]})]
    rows, late, _ = run(query, batches, 0)
    assert late == 0
    assert {row["window"]: row["sum"] for row in rows}["session(30)"] == 7


def test_an_event_that_is_late_for_all_windows_is_counted_once() -> None:
    query = pf.Query([W.tumbling(10), W.session(2), W.session(3)], {"sum": A.sum("v")}, time="t")
    batches = [pa.table({"t": [1, 99], "v": [1, 2]}), pa.table({"t": [30], "v": [4]})]
    assert run(query, batches, 0)[1] == 1


def test_an_event_behind_the_watermark_is_not_late_while_its_window_is_open() -> None:
    query = pf.Query(W.tumbling(10), {"sum": A.sum("v")}, time="t")
    batches = [pa.table({"t": [1, 8], "v": [1, 2]}), pa.table({"t": [3], "v": [4]})]
    rows, late, _ = run(query, batches, 0)
    assert (late, [row["sum"] for row in rows]) == (0, [7])


def test_state_without_marks_of_closed_sessions_is_taken_up() -> None:
    windows = [W.session(2), W.sliding(30, 30), W.count(3), Threshold("v", 1.0)]
    query = pf.Query(windows, {"latest": latest_but_zero("v")}, time="t")
    events = pa.table({"t": [1, 2, 9, 10, 20, 26], "v": [1, 2, 3, 0, 5, 6]})
    source = events.schema
    open_ = OpenWindows(query, source)
    held = Held(open_.layout.empty_table(), source.empty_table(), None)
    rows: list[Any] = []
    before = None
    for at, watermark in ((0, 9), (3, 20), (5, END)):
        batch = events.slice(at, {0: 3, 3: 2, 5: 1}[at])
        given = open_.received([open_.sent(batch)])
        made, held, _ = open_.advance(held, *given, before, watermark)
        before = watermark
        rows += made.to_pylist()
        marks = [c for c in held.events.column_names if c.startswith("paneflow:mark")]
        held = Held(held.slices, held.events.select([*source.names, *marks]), held.marks)
    assert ordered(rows) == ordered(expected(query, events))


@pytest.mark.parametrize(
    "window",
    [
        W.sliding(20, 5),
        W.session(1),
        W.count(4, 2),
        W.slide_by_tuple(9, 3),
        W.slide_by_time(5, 4),
        W.delta("grown", 6, 2),
        W.punctuation("mark"),
    ],
    ids=str,
)
def test_what_is_remembered_does_not_grow_with_the_stream(window: W.Window) -> None:
    t = np.arange(4000) * 2
    events = pa.table({"t": t, "v": t % 7, "grown": t, "mark": t % 10 == 0})
    query = pf.Query(window, {"sum": A.sum("v")}, time="t")
    batches = [events.slice(k, 100) for k in range(0, 4000, 100)]
    source = events.schema
    windows = OpenWindows(query, source)
    held = Held(windows.layout.empty_table(), source.empty_table(), None)
    before = None
    for batch in batches:
        latest = int(batch["t"].to_numpy().max())
        _, held, _ = windows.advance(held, *windows.received([windows.sent(batch)]), before, latest)
        before = latest
    assert held.slices.num_rows + held.events.num_rows < 60
