"""Rows are counted before any is made: too many are refused, and odd windows are warned of."""

from __future__ import annotations

import random
import re
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.spark.finite.pieces import spans, without_sessions
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds import find_ranges
from paneflow.slicing.events import read_events
from paneflow.windows.many_rows import MAX_ROWS
from tests.properties.cases import draw_case
from tests.spark.support import plain

COUNT = {"n": A.count()}
TEN = pa.table(
    {
        "t": pa.array(np.arange(10) * 3_600_000_000, pa.timestamp("us", "UTC")),
        "k": ["a", "b"] * 5,
        "v": np.arange(10.0),
    }
)
FINE = pf.Query({"w": W.sliding("30 days", "1 ms")}, COUNT, "k", time="t")
"""Five hours apart at most, each key has 30 days of windows and 8 hours more."""
ROWS = 2 * (30 * 86_400_000 + 8 * 3_600_000)


def pushed(query: pf.Query, table: pa.Table, workers: int = 1, **options: Any) -> pa.Table:
    with query.open(workers=workers, **options) as stream:
        stream.push(table)
        stream.finish()
        return pa.concat_tables(stream.results())


WAYS: dict[str, Callable[..., Any]] = {
    "table": lambda query, table, **options: query.over(table, **options),
    "oracle": lambda query, table, **options: query.over(table, engine="oracle", **options),
    "slices": lambda query, table, **options: query.finish(query.slice(table), **options),
    "stream": pushed,
    "two workers": lambda query, table, **options: pushed(query, table, 2, **options),
}


@pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS)
def test_rows_beyond_what_fits_are_refused(ask: Callable[..., Any]) -> None:
    near = TEN.set_column(0, "t", pa.array(np.arange(10) * 1_000_000, TEN.schema.field("t").type))
    with pytest.raises(pf.UnsupportedError) as refusal:
        ask(FINE, near)
    said = str(refusal.value)
    assert f"max_rows={MAX_ROWS:,}" in said and "'w'" in said
    assert "2,592,000,000 slides long" in said
    assert "10 events" in said and "2 keys" in said
    assert "longer slide" in said and "max_rows" in said


@pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS)
def test_the_limit_can_be_moved(ask: Callable[..., Any]) -> None:
    query = pf.Query({"w": W.sliding("1 hour", "10 s")}, COUNT, "k", time="t")
    rows = query.over(TEN).num_rows
    assert rows == 10 * 360
    with pytest.raises(pf.UnsupportedError, match=r"max_rows=300: .*'w'"):
        ask(query, TEN, max_rows=300)
    for limit in (rows, MAX_ROWS, None):
        assert ask(query, TEN, max_rows=limit).num_rows == rows


@pytest.mark.parametrize("engine", ["table", "oracle"])
def test_the_count_is_exact(engine: str) -> None:
    query = pf.Query({"w": W.sliding("1 hour", "10 s")}, COUNT, "k", time="t")
    query.over(TEN, engine=engine, max_rows=3600)
    with pytest.raises(pf.UnsupportedError, match="3,600 rows of 10 events of 2 keys"):
        query.over(TEN, engine=engine, max_rows=3599)


@pytest.mark.parametrize("limit", [-1, 1.5, "many", True])
def test_a_limit_that_is_none(limit: Any) -> None:
    for ask in (FINE.over, FINE.finish):
        given = TEN if ask == FINE.over else FINE.slice(TEN)
        with pytest.raises(pf.QueryError, match=re.escape(f"max_rows is {limit!r}")):
            ask(given, max_rows=limit)  # type: ignore[operator]
    with pytest.raises(pf.QueryError, match="max_rows"):
        FINE.open(max_rows=limit)


def test_slices_are_finished_span_by_span_where_all_at_once_is_too_much() -> None:
    query = pf.Query({"w": W.sliding("1 hour", "10 s")}, COUNT, "k", time="t")
    cut = query.slice(TEN)
    hour = 3_600_000_000
    spans = [(k * hour, (k + 1) * hour) for k in range(11)]
    parts = [query.finish(cut, after=a, until=b, max_rows=800) for a, b in spans]
    assert pa.concat_tables(parts).num_rows == 3600


def test_no_room_is_made_for_windows_that_events_share() -> None:
    """A thousand events in one moment and one far away have few windows together."""
    t = np.append(np.arange(1000), 10**9)
    query = pf.Query(W.sliding(10**5, 1), {"all": A.collect("t")}, time="t")
    (part,) = read_events(pa.table({"t": t}), (), "t").parts(1)
    tracemalloc.start()
    found = find_ranges(list(query.windows.values()), part, Arranged(part.events, {}))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.ranges) == 2 * 10**5 + 999
    assert most < 10 * 32 * len(found.ranges)


@pytest.mark.parametrize("seed", range(20))
def test_pieces_by_time_are_the_whole(seed: int) -> None:
    """What a task of Spark does with slices that are in many windows."""
    r = random.Random(seed)
    windows = {"w": W.sliding(r.randint(1, 300), r.randint(1, 9), r.randint(0, 5))}
    if seed % 2:
        windows |= {"v": W.sliding(r.randint(1, 30), r.randint(1, 9)), "rest": W.session(4)}
    query = pf.Query(windows, COUNT, "k", time="t")
    rows = {
        "t": [r.randint(-50, 200) for _ in range(60)],
        "k": [r.choice("abc") for _ in range(60)],
    }
    cut = query.slice(pa.table(rows))
    whole = query.finish(cut)
    parts = []
    for number, (after, until) in enumerate(spans(query, cut.table, None, 40)):
        part = query.finish(cut, after=after, until=until)
        part = without_sessions(query, part) if number else part
        sliding = without_sessions(query, part)
        assert len(sliding) <= 40 or until - after == 1
        parts.append(part)
    assert len(parts) > 1
    together = pa.concat_tables(parts)
    key = [("window", "ascending"), ("k", "ascending"), ("seq", "ascending")]
    assert plain(together).sort_by(key).equals(plain(whole).sort_by(key))
    with pytest.raises(pf.UnsupportedError, match="max_rows=40"):
        list(spans(query, cut.table, 40, 40))


def test_explain_shows_how_many_rows_there_will_be() -> None:
    plan = FINE.explain(TEN)
    assert plan.rows is not None and plan.rows.total == ROWS
    assert f"rows: {ROWS:,} rows of 10 events of 2 keys" in str(plan)
    mixed = pf.Query([W.tumbling("1 day"), W.count(3)], COUNT, time="t").explain(TEN)
    assert "rows: at most 11 rows of 10 events" in str(mixed)
    assert FINE.explain().rows is None


def test_every_drawn_query_has_as_many_rows_as_counted() -> None:
    for seed in range(200):
        case = draw_case(random.Random(seed))
        count = case.query.explain(case.table).rows
        rows = case.query.over(case.table)
        assert count is not None
        for label, window in case.query.windows.items():
            found = rows["window"].to_pylist().count(label)
            if isinstance(window, W.Sliding):
                assert count.rows[label] == found, (seed, label)
            assert count.rows[label] >= found, (seed, label)


def test_a_window_longer_than_the_data_with_a_tiny_slide_is_warned_of() -> None:
    query = pf.Query({"w": W.sliding("2 days", "100 ms")}, COUNT, time="t")
    with pytest.warns(pf.ManyRowsWarning, match=r"'w' is longer than the data.* 10 events") as said:
        query.over(TEN)
    assert said[0].filename == __file__


@pytest.mark.parametrize(
    "window",
    [
        W.sliding("2 days", "10 minutes"),  # longer than the data, with few rows
        W.sliding("1 hour", "10 ms"),  # many rows, but not longer
        W.tumbling("30 days"),
    ],
    ids=str,
)
def test_other_windows_are_not_warned_of(window: W.Window) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pf.Query(window, COUNT, time="t").over(TEN)


def test_a_stream_that_goes_on_evenly_may_give_any_number_of_rows() -> None:
    """Each push closes few windows; all of them together are more than the limit."""
    query = pf.Query({"w": W.sliding(1000, 1)}, {"sum": A.sum("v")}, "k", time="t")
    n = 20_000
    with query.open(max_rows=5000) as stream:
        rows = 0
        for start in range(0, n, 500):
            t = np.arange(start, start + 500)
            stream.push(pa.table({"t": t, "k": t % 2, "v": t}))
            rows += sum(len(part) for part in stream.results())
        stream.finish()
        rows += sum(len(part) for part in stream.results())
    assert rows == 2 * (n + 998)


def test_a_stream_of_keys_that_are_gone_is_not_refused() -> None:
    """Keys that were not seen for a range have nothing open: at the end they count for nothing."""
    query = pf.Query({"w": W.sliding(1000, 1)}, {"sum": A.sum("v")}, "k", time="t")
    times = np.arange(0, 100_000, 250)
    with query.open(max_rows=5000) as stream:
        for t in np.split(times, 100):
            stream.push(pa.table({"t": t, "k": t, "v": t}))
        stream.finish()
        assert sum(len(part) for part in stream.results()) == 1000 * len(times)


def test_what_a_stream_refuses_does_not_depend_on_how_events_were_cut() -> None:
    query = pf.Query({"w": W.sliding(1000, 1)}, {"sum": A.sum("v")}, "k", time="t")
    r = random.Random(5)
    refused = 0
    for limit in [2000, 6000] * 8:
        steps = [r.choice([1, 1, 2, 10, 700]) for _ in range(60)]
        t = np.cumsum(steps)
        table = pa.table({"t": t, "k": [r.randrange(5) for _ in t], "v": t})
        found = set()
        for size in (1, 7, 60):
            with query.open(max_rows=limit) as stream:
                try:
                    for start in range(0, 60, size):
                        stream.push(table.slice(start, size))
                    stream.finish()
                    found.add(sum(len(rows) for rows in stream.results()))
                except pf.UnsupportedError as error:
                    assert f"max_rows={limit}" in str(error).replace(",", "")
                    found.add(-1)
        assert len(found) == 1
        refused += -1 in found
    assert 0 < refused < 16
