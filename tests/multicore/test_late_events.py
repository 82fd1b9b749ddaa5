"""Events that came too late as an output: which they are, as they were pushed, and in order."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.tuning import tuning
from tests.bad_input.refusing import refused
from tests.waiting import PATIENCE, wait_until

QUERY = pf.Query(W.tumbling(10), {"sum": A.sum("v")}, time="t")


def events(*times: int, **further: Any) -> pa.Table:
    """Events whose values are their times."""
    return pa.table({"t": times, "v": times, **{n: [v] * len(times) for n, v in further.items()}})


def gathered(tables: Any) -> list[Any]:
    return [event for table in tables for event in table.to_pylist()]


def test_late_events_come_with_all_their_columns_in_the_order_of_arrival() -> None:
    with QUERY.open(late=True) as stream:
        stream.push(events(3, 25, note="first"))
        stream.push(events(12, 21, 4, note="second"))
        stream.finish()
        assert gathered(stream.late()) == [
            {"t": 12, "v": 12, "note": "second"},
            {"t": 4, "v": 4, "note": "second"},
        ]
        assert [row["sum"] for row in gathered(stream.results())] == [3, 46]
        assert stream.metrics().late == 2


def test_an_event_that_is_late_for_some_windows_only_is_not_late() -> None:
    query = pf.Query([W.tumbling(10), W.count(2)], {"sum": A.sum("v")}, time="t")
    with query.open(late=True) as stream:
        stream.push(events(1, 15, 12, 2))  # 12: its position is final, its time window open
        stream.finish()
        assert [event["t"] for event in gathered(stream.late())] == [2]


def test_an_event_between_windows_is_not_late() -> None:
    query = pf.Query(W.sliding(2, 10), {"sum": A.sum("v")}, time="t")
    with query.open(late=True) as stream:
        stream.push(events(1, 25, 5, 11))
        stream.finish()
        assert [event["t"] for event in gathered(stream.late())] == [11]


def test_late_events_can_be_read_while_the_stream_goes_on() -> None:
    with QUERY.open(late=True) as stream:
        assert list(stream.late()) == []
        stream.push(events(30))
        stream.push(events(1))
        assert next(stream.late(wait=PATIENCE)).to_pylist() == [{"t": 1, "v": 1}]
        stream.push(events(2))
        stream.finish()
        assert gathered(stream.late()) == [{"t": 2, "v": 2}]
        assert list(stream.late()) == []


def test_late_events_can_be_read_behind_the_end_of_the_block() -> None:
    with QUERY.open(late=True) as stream:
        stream.push(events(30, 1))
    assert gathered(stream.late()) == [{"t": 1, "v": 1}]


def test_events_without_a_time_are_not_among_the_late_ones() -> None:
    with QUERY.open(late=True) as stream:
        stream.push(pa.table({"t": [30, None, 1], "v": [1, 2, 3], "note": ["a", "b", "c"]}))
        stream.push(pa.table({"t": [None, 2], "v": [4, 5], "note": ["d", "e"]}))
        stream.finish()
        assert [event["note"] for event in gathered(stream.late())] == ["c", "e"]
        assert stream.metrics().timeless == 2


@pytest.mark.parametrize(
    "kind", [pd.DataFrame, pl.DataFrame, pa.table, lambda columns: pa.table(columns).to_pylist()]
)
def test_every_kind_of_table_keeps_its_further_columns(kind: Any) -> None:
    with QUERY.open(late=True) as stream:
        for first in (30, 1, 2):
            stream.push(kind({"t": [first], "v": [1], "note": [f"n{first}"]}))
        stream.finish()
        assert [event["note"] for event in gathered(stream.late())] == ["n1", "n2"]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.string_view(), "x"),
        (pa.list_(pa.string_view()), ["x"]),
        (pa.run_end_encoded(pa.int32(), pa.int64()), 7),
        (pa.dictionary(pa.int8(), pa.string()), "x"),
        (pa.struct({"a": pa.int64()}), {"a": 1}),
        (pa.null(), None),
    ],
    ids=str,
)
def test_further_columns_may_have_any_type(type_: pa.DataType, value: Any) -> None:
    def table(*times: int | None) -> pa.Table:
        odd = pa.array([value] * len(times), type_)
        return pa.table({"t": pa.array(times, pa.int64()), "v": [1] * len(times), "odd": odd})

    with QUERY.open(late=True) as stream:
        for times in ([30, None], [1, 31, 2], [32, None, 3]):
            stream.push(table(*times))
        stream.finish()
        late = pa.concat_tables(stream.late())
    assert late["t"].to_pylist() == [1, 2, 3]
    assert late["odd"].to_pylist() == [value] * 3
    assert late.schema.field("odd").type == type_


def test_pushes_with_other_columns_come_in_tables_of_their_own() -> None:
    with QUERY.open(late=True) as stream:
        stream.push(events(30))
        stream.push(events(1, note="a"))
        stream.push(events(2, note="b"))
        stream.push(events(3, other=1.5))
        stream.finish()
        late = list(stream.late())
    assert gathered(late) == [
        {"t": 1, "v": 1, "note": "a"},
        {"t": 2, "v": 2, "note": "b"},
        {"t": 3, "v": 3, "other": 1.5},
    ]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_long_push_keeps_its_late_events_apart(workers: int) -> None:
    times = [n if n % 3 else 0 for n in range(20, 50_020)]
    table = pa.table({"t": times, "v": [1] * len(times), "n": range(len(times))})
    with QUERY.open(workers, late=True) as stream:
        stream.push(table)
        stream.finish()
        late = gathered(stream.late())
    assert [event["n"] for event in late] == [n for n, t in enumerate(times) if t == 0]


def test_late_events_must_be_asked_for() -> None:
    with QUERY.open() as stream:
        refused(pf.QueryError, stream.late, "late=True", "metrics().late")
    refused(pf.QueryError, partial(QUERY.open, late="yes"), "late='yes'")


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that stops at few unread events, and says so at once."""
    monkeypatch.setattr(tuning, "most_unread", 4)
    monkeypatch.setattr(tuning, "stuck_look", 0.01)
    monkeypatch.setattr(tuning, "most_waiting", 4)
    monkeypatch.setattr(tuning, "patience", 0.0)


def test_a_push_does_not_wait_forever_for_late_events_to_be_read(little_room: None) -> None:
    with QUERY.open(late=True) as stream:
        stream.push(events(30))

        def push_late_events() -> None:
            for n in range(1000):
                stream.push(events(*[n % 10] * 5))

        refused(pf.UnsupportedError, push_late_events, "late events", "stream.late()")
        stream.finish()
        read = gathered(stream.late())
        assert len(read) == stream.metrics().late >= 5


def test_a_thread_that_reads_late_events_lets_pushes_go_on(
    little_room: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "patience", PATIENCE)
    read: list[Any] = []
    with QUERY.open(late=True) as stream:
        stream.push(events(30))
        reader = threading.Thread(target=lambda: read.extend(gathered(stream.late(PATIENCE))))
        reader.start()
        for _ in range(200):
            stream.push(events(1, 2, 3))
        stream.finish()
        reader.join()
        assert len(read) == stream.metrics().late == 600


def test_rows_can_be_read_to_the_end_before_late_events(little_room: None) -> None:
    with QUERY.open(late=True) as stream:
        stream.push(events(30, *range(10), 31))
        stream.finish()
        assert [row["sum"] for row in gathered(stream.results())] == [61]
        assert len(gathered(stream.late())) == 10


def test_late_events_are_not_awaited_forever_behind_unread_rows(little_room: None) -> None:
    with QUERY.open(late=True) as stream:
        stream.push(events(*range(0, 100, 10)))
        wait_until(lambda: stream.metrics().unread >= 4)
        stream.push(events(1, 100))
        stream.finish()
        refused(pf.UnsupportedError, lambda: list(stream.late()), "rows", "results() to its end")
