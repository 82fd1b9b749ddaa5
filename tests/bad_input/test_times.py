"""Columns that hold no times, and times that are too far away or too fine."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import windows as W
from paneflow.windows import Window
from tests.bad_input.refusing import COUNT, TABLE, over, refused


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1.0]),
        pa.array(["2024-01-01"]),
        pa.array([True]),
        pa.array([1], pa.time64("us")),
        pa.array([1], pa.duration("us")),
        pa.array([Decimal(1)]),
        pa.array([[1]]),
        pa.array([None]),
    ],
    ids=lambda values: str(values.type),
)
def test_a_time_column_that_holds_no_times(values: pa.Array, engine: str) -> None:
    table = pa.table({"t": values})
    refused(pf.InputError, over(table, engine=engine), "'t'", str(values.type), "timestamp", "cast")


@pytest.mark.parametrize("type_", [pa.int64(), pa.timestamp("ms", "UTC"), pa.date32()], ids=str)
def test_a_null_time(type_: pa.DataType, engine: str) -> None:
    table = pa.table({"t": pa.array([1, None, 3], type_)})
    window = W.tumbling(5 if type_ == pa.int64() else "5 s")
    ask = over(table, engine=engine, window=window)
    refused(pf.InputError, ask, "'t'", "null", "row 1", "fill")


@pytest.mark.parametrize("t", [2**61 + 1, -(2**61) - 1, -(2**63)])
def test_a_time_too_far_from_zero(t: int, engine: str) -> None:
    table = pa.table({"t": [1, t]})
    refused(pf.InputError, over(table, engine=engine), "'t'", str(t), "2**61", "coarser unit")


@pytest.mark.parametrize("t", [2**61, -(2**61)])
def test_the_farthest_time_is_near_enough(t: int, engine: str) -> None:
    (row,) = over([{"t": t}], engine=engine)()
    assert row["start"] == t - t % 5 and row["end"] == row["start"] + 5


def test_times_beyond_int64(engine: str) -> None:
    table = pa.table({"t": pa.array([2**63], pa.uint64())})
    refused(pf.InputError, over(table, engine=engine), "'t'", "int64")


def test_times_finer_than_a_microsecond(engine: str) -> None:
    table = pa.table({"t": pa.array([1_000, 1_001], pa.timestamp("ns"))})
    window = W.tumbling("5 s")
    ask = over(table, engine=engine, window=window)
    refused(pf.InputError, ask, "'t'", "timestamp[ns]", "round")
    assert over(table.slice(0, 1), engine=engine, window=window)()  # whole microseconds are welcome


def test_times_beyond_what_microseconds_can_hold(engine: str) -> None:
    table = pa.table({"t": pa.array([2**60], pa.timestamp("s"))})
    ask = over(table, engine=engine, window=W.tumbling("5 s"))
    refused(pf.InputError, ask, "'t'", "timestamp[s]")


@pytest.mark.parametrize(
    "window",
    [
        W.tumbling("5 s"),
        W.sliding(10, dt.timedelta(seconds=5)),
        W.tumbling(5, offset="1 s"),
        W.session("5 s"),
        W.slide_by_tuple("5 s", 2),
        W.slide_by_time(2, "5 s"),
    ],
    ids=str,
)
def test_units_of_time_over_an_integer_time_column(window: Window, engine: str) -> None:
    ask = over(TABLE, engine=engine, window=window)
    refused(pf.InputError, ask, str(window), "'t'", "int64", "whole numbers", "cast")


def test_lateness_in_units_of_time_over_an_integer_time_column(engine: str) -> None:
    query = pf.Query(W.tumbling(5), COUNT, time="t", lateness="10 s")
    refused(pf.InputError, lambda: query.over(TABLE, engine=engine), "10s", "'t'", "int64")


LONGEST = 2**60


@pytest.mark.parametrize(
    ("t", "state"),
    [
        (-(2**61), lambda n: W.sliding(n, n, offset=n)),
        (2**61, lambda n: W.sliding(n, n, offset=-n)),
        (2**61, lambda n: W.slide_by_time(1, n, offset=n)),
        (-(2**61), lambda n: W.slide_by_tuple(n, 1)),
        (2**61, lambda n: W.session(n)),
    ],
    ids=["sliding after", "sliding before", "slide_by_time", "slide_by_tuple", "session"],
)
def test_the_longest_windows(t: int, state: Callable[[int], Window]) -> None:
    """At the farthest times, no bound may leave int64, wrap around and lose rows."""
    table, window = pa.table({"t": [t]}), state(LONGEST)
    assert over(table, window=window)() == over(table, window=window, engine="oracle")()
    refused(pf.QueryError, lambda: state(LONGEST + 1), str(LONGEST + 1), "2**60")
