"""Columns of any name, spelled as Spark accepts them; fields of structs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.spark import split
from tests.bad_input.refusing import refused
from tests.spark.support import (
    assert_same_set,
    frame_of,
    plain,
    ran,
    read_files,
    rows_of,
    write_files,
)

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
TIMES = [0, 2, 3, 31, 60, 61]
EVENTS = pa.table(
    {
        "k": ["a", "b", "a", "b", "a", "b"],
        "ts": pa.array([START + t * SECOND for t in TIMES], pa.timestamp("us", "UTC")),
        "v": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    }
)
WAYS = {
    "Spark alone": W.tumbling("10 s"),
    "native slices": W.sliding("10 s", "5 s"),
    "parcels of slices": W.session("5 s"),
    "parcels of events": W.slide_by_tuple("5 s", 1),
    "positions": W.count(2),
}
"""A window for each way to answer over a finite frame."""
TWO = ("Spark alone", "parcels of slices")
MOST_UNLIKE = [
    pytest.param(window, id=way, marks=() if way in TWO else pytest.mark.long)
    for way, window in WAYS.items()
]
"""In the first of them Spark reads the columns, in the second Python does."""


def asked(window: W.Window, key: str, time: str, value: str, mark: str = "") -> pf.Query:
    """A question whose results have odd names, too, if there is a mark."""
    aggregates = {f"n{mark}": A.count(), f"peak{mark}": A.max(value), f"0{mark}": A.first(value)}
    return pf.Query(window, aggregates, key, time)


@contextmanager
def setting(spark: Any, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


# Dots, spaces, backticks.


@pytest.mark.parametrize(
    "mark", [*(pytest.param(mark, marks=pytest.mark.long) for mark in (".x", " y", "`")), "`.`z w`"]
)
@pytest.mark.parametrize("window", WAYS.values(), ids=WAYS)
def test_any_character(spark: Any, window: W.Window, mark: str) -> None:
    named = [f"{name}{mark}" for name in EVENTS.column_names]
    events = EVENTS.rename_columns(named)
    query = asked(window, named[0], named[1], named[2], mark)
    rows = query.over(frame_of(spark, events))
    assert_same_set(query, rows.toArrow(), query.over(events, engine="oracle"))
    assert "spark" in str(query.explain(frame_of(spark, events)))


@pytest.mark.long
def test_any_character_in_a_stream(spark: Any, tmp_path: Path) -> None:
    named = ["house.id", "t `s`", "v.`1 x"]
    events = EVENTS.rename_columns(named).append_column("other.`x", pa.array(range(6)))
    query = asked(W.sliding("10 s", "5 s"), named[0], named[1], named[2], " .`")
    late = events.slice(0, 1)
    write_files([events], tmp_path / "in")
    frame = read_files(spark, tmp_path / "in", events.schema)
    for part in (None, late):
        if part is not None:
            write_files([part], tmp_path / "in", first=1)
        rows = query.over(frame, late=True)
        ran(rows, tmp_path / "over")
        into = partial(query.write_stream, frame, tmp_path / "sink", tmp_path / "checkpoint")
        into(late=tmp_path / "late", availableNow=True).awaitTermination()
    expected = plain(query.over(events, engine="oracle"))
    limit = pa.scalar(START + 61 * SECOND, pa.timestamp("us", "UTC"))
    expected = expected.filter(pc.less_equal(expected["end"], limit))
    written = spark.read.schema(rows.schema).parquet(str(tmp_path / "over" / "rows"))
    of_windows, too_late = split(written)
    assert_same_set(query, of_windows.toArrow(), expected)
    assert too_late.toArrow().to_pylist() == late.to_pylist()
    assert_same_set(query, pq.read_table(tmp_path / "sink"), expected)
    assert pq.read_table(tmp_path / "late").to_pylist() == late.to_pylist()


# Upper and lower case.


@pytest.mark.parametrize("window", MOST_UNLIKE)
def test_case_does_not_matter_where_spark_ignores_it(spark: Any, window: W.Window) -> None:
    query = asked(window, "K", "Ts", "V")
    rows = query.over(frame_of(spark, EVENTS))
    expected = query.over(EVENTS.rename_columns(["K", "Ts", "V"]), engine="oracle")
    assert_same_set(query, rows.toArrow(), expected)


def test_names_are_spelled_as_asked_as_spark_does(spark: Any) -> None:
    frame = frame_of(spark, EVENTS)
    assert frame.groupBy("K").count().columns == ["K", "count"]
    assert "K" in asked(W.tumbling("10 s"), "K", "ts", "v").over(frame).columns


def test_case_matters_where_spark_says_so(spark: Any) -> None:
    query = asked(W.tumbling("10 s"), "K", "ts", "v")
    with setting(spark, "spark.sql.caseSensitive", "true"):
        frame = frame_of(spark, EVENTS)
        refused(pf.InputError, partial(query.over, frame), "'K'", "'k', 'ts', 'v'")
        both = EVENTS.append_column("K", pa.array(["x"] * 6))
        rows = query.over(frame_of(spark, both)).toArrow()
    assert_same_set(query, rows, query.over(both, engine="oracle"))


def test_columns_that_spark_cannot_tell_apart(spark: Any) -> None:
    both = EVENTS.append_column("K", pa.array(["x"] * 6))
    query = asked(W.tumbling("10 s"), "k", "ts", "v")
    refused(pf.InputError, partial(query.over, frame_of(spark, both)), "'k'", "caseSensitive")
    # Columns that nobody reads do no harm.
    other = pf.Query(W.tumbling("10 s"), {"n": A.count()})
    rows = other.over(frame_of(spark, both)).toArrow()
    assert_same_set(other, rows, other.over(both, engine="oracle"))


def test_results_that_spark_cannot_tell_apart(spark: Any) -> None:
    query = pf.Query(W.tumbling("10 s"), {"n": A.count(), "N": A.max("v")})
    frame = frame_of(spark, EVENTS)
    refused(pf.QueryError, partial(query.over, frame), "'n'", "'N'", "caseSensitive")


# Fields of structs.


@pytest.mark.parametrize("window", MOST_UNLIKE)
def test_fields_of_structs(spark: Any, window: W.Window) -> None:
    nested = frame_of(spark, EVENTS).selectExpr(
        "struct(k AS id, struct(ts AS at) AS `x.y`) AS House", "struct(v AS `load`) AS m"
    )
    query = asked(window, "house.id", "house.`x.y`.at", "m.load")
    rows = query.over(nested).toArrow()
    named = EVENTS.rename_columns(["house.id", "house.`x.y`.at", "m.load"])
    assert_same_set(query, rows, query.over(named, engine="oracle"))


def test_a_column_goes_before_a_field_of_its_name(spark: Any) -> None:
    frame = frame_of(spark, EVENTS).selectExpr("*", "struct('x' AS k) AS s", "k AS `s.k`")
    query = asked(W.tumbling("10 s"), "s.k", "ts", "v")
    named = EVENTS.rename_columns(["s.k", "ts", "v"])
    assert_same_set(query, query.over(frame).toArrow(), query.over(named, engine="oracle"))


@pytest.mark.parametrize("name", ["s.other", "s.k.more", "k.s", "s.", ".k", "s.`k", "*", "s.*"])
def test_a_path_that_leads_nowhere(spark: Any, name: str) -> None:
    frame = frame_of(spark, EVENTS).selectExpr("*", "struct('x' AS k) AS s")
    query = asked(W.tumbling("10 s"), name, "ts", "v")
    refused(pf.InputError, partial(query.over, frame), repr(name), "'k', 'ts', 'v', 's'")


def test_a_stream_of_structs_in_other_case(spark: Any, tmp_path: Path) -> None:
    write_files([EVENTS], tmp_path / "in")
    frame = read_files(spark, tmp_path / "in", EVENTS.schema).selectExpr("struct(*) AS e")
    query = asked(W.sliding("10 s", "5 s"), "E.K", "e.TS", "e.v")
    rows = query.over(frame)
    ran(rows, tmp_path)
    expected = plain(query.over(EVENTS.rename_columns(["E.K", "e.TS", "e.v"]), engine="oracle"))
    limit = pa.scalar(START + 61 * SECOND, pa.timestamp("us", "UTC"))
    expected = expected.filter(pc.less_equal(expected["end"], limit))
    assert_same_set(query, rows_of(rows, tmp_path), expected)
