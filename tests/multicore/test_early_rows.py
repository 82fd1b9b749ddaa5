"""Rows before they are final: as events so far make them, and never behind the final one."""

from __future__ import annotations

import math
import random
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.live.stream_options import StreamOptions
from paneflow.engines.multicore.choosing import BY_NAME
from paneflow.engines.multicore.stream import Stream
from tests.bad_input.refusing import refused
from tests.multicore.hand_clock import hand_clock
from tests.multicore.straggler_model import SCHEMA, Case, Model, pushes, with_pauses
from tests.multicore.test_stragglers import drawn, little_room
from tests.properties.compare import assert_same_rows
from tests.waiting import PATIENCE

QUERY = pf.Query(W.sliding(10, 5), {"sum": A.sum("v")}, "k", "t", lateness=5)
Row = dict[str, Any]


def event(t: int, v: int, k: str = "a") -> Row:
    return {"t": t, "v": v, "k": k}


def shown(stream: Stream, *more: Row) -> list[tuple[Any, ...]]:
    """What the next rows show, after some events."""
    stream.push(list(more))
    rows = next(stream.results(wait=PATIENCE)).to_pylist()
    return [(row["k"], row["end"], row["sum"], row["final"]) for row in rows]


def test_a_row_comes_whenever_it_changes_and_once_more_when_it_is_final() -> None:
    with QUERY.open(emit="updates") as stream:
        assert shown(stream, event(1, 1)) == [("a", 5, 1, False), ("a", 10, 1, False)]
        assert shown(stream, event(6, 2)) == [("a", 10, 3, False), ("a", 15, 2, False)]
        assert shown(stream, event(7, 4, "b")) == [("b", 10, 4, False), ("b", 15, 4, False)]
        assert shown(stream, event(2, 8)) == [("a", 5, 9, False), ("a", 10, 11, False)]
        stream.finish()
        rows = pa.concat_tables(stream.results())
    assert all(rows["final"].to_pylist())
    assert rows["sum"].to_pylist() == [9, 11, 4, 2, 4]


def test_the_columns_are_those_of_the_query_and_final() -> None:
    with QUERY.open(emit="updates") as stream:
        stream.push([event(1, 1)])
        table = next(stream.results(wait=PATIENCE))
    expected = QUERY.over(pa.Table.from_pylist([event(1, 1)])).schema
    assert table.schema.equals(expected.append(pa.field("final", pa.bool_())))


def test_windows_by_positions_are_shown_as_if_all_events_were_in_order() -> None:
    query = pf.Query(W.count(2), {"all": A.collect("v")}, time="t", lateness=100)
    with query.open(emit="updates") as stream:
        for events, expected in (
            ([(5, 1), (9, 2)], [[1, 2]]),
            ([(7, 3), (1, 4)], [[4, 1], [3, 2]]),
        ):
            stream.push([{"t": t, "v": v} for t, v in events])
            assert next(stream.results(wait=PATIENCE))["all"].to_pylist() == expected


def test_text_that_comes_in_views_is_returned_in_views() -> None:
    key = pa.array(["a", "b"], pa.string_view())
    with QUERY.open(emit="updates") as stream:
        stream.push(pa.table({"k": key, "t": [1, 2], "v": [1, 2]}))
        table = next(stream.results(wait=PATIENCE))
    assert table.schema.field("k").type == pa.string_view()
    assert table.column_names[-1] == "final"


def test_too_many_open_windows_are_refused_before_they_are_shown() -> None:
    query = pf.Query({"w": W.sliding(10**6, 1)}, {"sum": A.sum("v")}, time="t", lateness=10**9)
    with query.open(emit="updates", max_rows=1000) as stream:
        stream.push([{"t": 1, "v": 1}])
        refused(pf.UnsupportedError, lambda: list(stream.results(PATIENCE)), "max_rows", "'w'")


def test_a_function_that_fails_on_an_open_window_ends_the_stream() -> None:
    def fails(values: Any) -> int:
        if 13 in values:
            raise ValueError("an unlucky number")
        return len(values)

    query = pf.Query(W.tumbling(10), {"n": A.apply(fails, "v", returns=pa.int64())}, time="t")
    with query.open(emit="updates") as stream:
        stream.push([{"t": 1, "v": 1}, {"t": 12, "v": 2}])
        stream.push([{"t": 13, "v": 13}])
        stream.finish()
        rows: list[pa.Table] = []
        with pytest.raises(pf.PaneflowError, match="unlucky"):
            rows.extend(stream.results())
    final = [row["n"] for table in rows for row in table.to_pylist() if row["final"]]
    assert final == [1]


@pytest.mark.parametrize("strategy", sorted(set(BY_NAME) - {"single"}))
def test_strategies_of_several_workers_refuse(strategy: str) -> None:
    ask = partial(QUERY.open, 2, strategy, emit="updates")
    refused(pf.UnsupportedError, ask, strategy, "'updates'", "'single'")


def test_auto_chooses_one_worker_and_says_why() -> None:
    with QUERY.open(workers=4, emit="updates") as stream:
        assert stream.plan.strategy == "single"
        assert "emit='updates'" in str(stream.plan)


def test_what_cannot_be_asked() -> None:
    refused(pf.QueryError, partial(QUERY.open, emit="often"), "'often'", "'updates'")
    taken = pf.Query(W.tumbling(5), {"final": A.count()}, time="t")
    refused(pf.QueryError, partial(taken.open, emit="updates"), "'final'", "another name")


def identity(row: Row) -> tuple[Any, ...]:
    return row["window"], row.get("k"), row["seq"]


def rows_of(case: Case, r: random.Random, idle: int, finished: bool) -> list[Row]:
    """All rows of a stream that is finished, or only closed."""
    options = StreamOptions.of(emit="updates", idle=f"{idle} s" if idle else None)
    got: list[pa.Table] = []
    with (
        pytest.MonkeyPatch.context() as patch,
        Stream(case.query, sources=case.sources, options=options) as stream,
    ):
        clock = hand_clock(patch)
        for after, source, events in pushes(r, case):
            clock.pass_by(after)
            if events is None:
                stream.end_source(source)
            else:
                stream.push(events, source)
            if r.random() < 0.5:
                got += stream.results(r.choice([0, 0.001]))
        if finished:
            stream.finish()
            got += stream.results()
    got += stream.results()
    return [row for table in got for row in table.to_pylist()]


def check(seed: object) -> None:
    r = random.Random(f"early {seed}")
    case = drawn(r, "single")
    idle = r.choice([0, 4])
    case = with_pauses(r, case) if idle else case
    model = Model(case.query, case.sources, idle or math.inf)
    model.replay(case.arrivals)
    expected = model.rows()
    finished = r.random() < 0.5
    with little_room(r):
        rows = rows_of(case, r, idle, finished)
    newest: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        before = newest.get(identity(row))
        assert before is None or not before["final"], f"behind the final row comes {row}"
        newest[identity(row)] = row
    if finished:
        final = [row for row in rows if row.pop("final")]
        made = pa.Table.from_pylist(final, schema=case.query.result_schema(SCHEMA))
        assert_same_rows(case.query, made, expected)
    else:
        assert_shown(newest, expected, model.reached)


def assert_shown(newest: dict[tuple[Any, ...], Row], expected: pa.Table, reached: float) -> None:
    """The newest rows hold all that ends beyond the watermark; the others, what is final."""
    for row in expected.to_pylist():
        found = newest.get(identity(row))
        # Up to the watermark a final row may wait for others that may come before it.
        if row["end"] > reached or (found is not None and found["final"]):
            assert found is not None, f"{row} was never shown"
            assert {name: found[name] for name in row} == row


@pytest.mark.parametrize("some", range(4))
def test_the_newest_rows_are_those_of_the_events_so_far(some: int) -> None:
    for seed in range(some * 12, some * 12 + 12):
        try:
            check(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


@pytest.mark.exhaustive
def test_the_newest_rows_of_hundreds_of_streams() -> None:
    for seed in range(600):
        try:
            check(f"many {seed}")
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
