"""Columns that windows read: growing, marked, or handed to a function of the user."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.windows import CLOSE_AFTER, KEEP, OPEN, Custom, Window, WindowClass
from tests.bad_input.refusing import COLUMNS, over, refused


def growing(values: Any) -> pa.Table:
    return pa.table({"t": range(len(values)), "d": values})


def test_a_delta_column_that_falls(engine: str) -> None:
    ask = over(growing([1, 5, 3]), engine=engine, window=W.delta("d", 4, 1))
    refused(pf.InputError, ask, "delta(d, 4, 1)", "'d'", "from 5", "3", "row 2", "correct")


def test_a_delta_column_falls_in_order_of_time_and_within_a_key(engine: str) -> None:
    table = pa.table({"t": [3, 1, 2, 1], "k": ["a", "a", "a", "b"], "d": [7, 9, 8, 1]})
    ask = over(table, engine=engine, window=W.delta("d", 4, 1), key="k")
    refused(pf.InputError, ask, "from 9", "8", "row 2")


def test_a_null_in_a_delta_column(engine: str) -> None:
    ask = over(growing([1, None, 3]), engine=engine, window=W.delta("d", 4, 1))
    refused(pf.InputError, ask, "delta(d, 4, 1)", "'d'", "null", "row 1", "fill")


NAN = math.nan


@pytest.mark.parametrize(
    ("values", "row"),
    [([1.0, NAN, 3.0], 1), ([NAN, 1.0, 3.0], 0), ([1.0, NAN], 1), ([NAN], 0)],
    ids=["inside", "first", "last", "only"],
)
def test_a_nan_in_a_delta_column(values: list[float], row: int, engine: str) -> None:
    ask = over(growing(values), engine=engine, window=W.delta("d", 4, 1))
    refused(pf.InputError, ask, "delta(d, 4, 1)", "'d'", f"row {row}")


@pytest.mark.parametrize("keys", [["a", "a", "b"], ["a", "b", "c"]])
def test_a_nan_in_a_delta_column_of_the_last_key(keys: list[str], engine: str) -> None:
    table = pa.table({"t": [1, 2, 3], "k": keys, "d": [1.0, 2.0, NAN]})
    ask = over(table, engine=engine, window=W.delta("d", 4, 1), key="k")
    refused(pf.InputError, ask, "'d'", "row 2")


def test_infinities_in_a_delta_column_are_values(engine: str) -> None:
    table = growing([-math.inf, 1.0, 2.0, 3.5, math.inf])
    rows = over(table, engine=engine, window=W.delta("d", 2, 1), aggregate=A.collect("d"))()
    #  triggers: -inf, 1.0 (seq 1), 3.5 (seq 2: 1.5 <= d < 3.5), inf (seq 3: nothing is near it)
    assert rows.select(["seq", "n"]).to_pylist() == [{"seq": 2, "n": [2.0]}]


@pytest.mark.parametrize("values", [[True, False], ["a", "b"]], ids=["bool", "string"])
def test_a_delta_column_that_holds_no_amounts(values: list[Any], engine: str) -> None:
    table = growing(values)
    ask = over(table, engine=engine, window=W.delta("d", 4, 1))
    type_ = str(table.schema.field("d").type)
    refused(pf.InputError, ask, "delta(d, 4, 1)", "'d'", type_, "numbers")


def test_a_delta_by_durations_over_numbers(engine: str) -> None:
    ask = over(growing([1, 2]), engine=engine, window=W.delta("d", "4 s", "1 s"))
    refused(pf.InputError, ask, "delta(d, 4s, 1s)", "'d'", "int64", "numbers")


@pytest.mark.parametrize(
    ("state", "values"),
    [
        (lambda: W.delta("d", 10, 1), [-(2**62) - 5, 2**62 + 5, 2**62 + 8]),
        (lambda: W.delta("d", 10, 1), [-(2**63), -(2**63) + 5, -(2**63) + 8]),
        (lambda: W.delta("d", 2**70, 1), [1, 5]),
        (lambda: W.delta("d", "1000000 days", "0 s"), pa.array([1, 9000], pa.timestamp("ns"))),
        (lambda: W.delta("d", "9 s", "1 s"), pa.array([2**60, 2**60 + 5], pa.timestamp("s"))),
    ],
    ids=["far apart", "least", "long range", "long duration", "far away"],
)
def test_differences_of_a_delta_column_beyond_int64(
    state: Callable[[], Window], values: Any
) -> None:
    """A difference must not wrap around and lose rows."""
    rows = over(growing(values), window=state(), engine="table")()
    assert rows == over(growing(values), window=state(), engine="oracle")()
    assert rows.num_rows


@pytest.mark.parametrize("values", [[1, 0], ["yes", "no"], [1.0, 0.0]], ids=["int", "str", "float"])
def test_a_punctuation_column_that_is_not_boolean(values: list[Any], engine: str) -> None:
    table = growing(values)
    ask = over(table, engine=engine, window=W.punctuation("d"))
    refused(
        pf.InputError, ask, "punctuation(d)", "'d'", str(table.schema.field("d").type), "boolean"
    )


@pytest.mark.parametrize(
    ("window", "type_", "why"),
    [
        (W.punctuation("d"), pa.int64(), "boolean"),
        (W.delta("d", 5, 1), pa.string(), "numbers or times"),
        (W.delta("d", "5 s", "1 s"), pa.int64(), "duration"),
        (W.delta("d", 2**53 + 1, 1), pa.float64(), "give it as a float"),
    ],
)
def test_the_types_of_windows_columns_are_checked_before_any_event_comes(
    window: W.Window, type_: pa.DataType, why: str, engine: str
) -> None:
    empty = pa.schema({"t": pa.int64(), "d": type_}).empty_table()
    with pytest.raises(pf.InputError, match=why):
        pf.Query(window, {"n": A.count()}, time="t").over(empty, engine=engine)


def test_a_punctuation_column_of_nothing_but_nulls_has_no_mark(engine: str) -> None:
    events = pa.table({"t": [1, 2], "d": pa.nulls(2)})
    query = pf.Query(W.punctuation("d", partial=True), {"n": A.count()}, time="t")
    assert query.over(events, engine=engine)["n"].to_pylist() == [2]


def test_dictionaries_of_numbers_and_booleans_are_read(engine: str) -> None:
    numbers = growing(pa.array([1, 2, 5]).dictionary_encode())
    rows = over(numbers, engine=engine, window=W.delta("d", 3, 1))()
    assert rows.num_rows == 1
    marks = growing(pa.array([False, True, True]).dictionary_encode())
    rows = over(marks, engine=engine, window=W.punctuation("d"))()
    assert rows.num_rows == 2


@dataclass(frozen=True)
class Since(Custom):
    """One window from the first event on; reads a column only to be given one."""

    window_class: ClassVar[WindowClass] = WindowClass.FCF

    column: str
    partial: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def initial(self) -> tuple[Any, ...]:
        return (False,)

    @staticmethod
    def step(state: tuple[Any, ...], t: int, value: float) -> tuple[tuple[Any, ...], int]:
        return (True,), KEEP if state[0] else OPEN


def test_a_custom_window_reads_no_times(engine: str) -> None:
    ask = over(COLUMNS, engine=engine, window=Since("temporal"))
    refused(pf.InputError, ask, "Since(temporal, True)", "'temporal'", "cast")


@dataclass(frozen=True)
class Jumps(Custom):
    """A window of one event wherever the value grows by more than a half at once."""

    window_class: ClassVar[WindowClass] = WindowClass.FCF
    columns: ClassVar[tuple[str, ...]] = ("x",)
    initial: ClassVar[tuple[Any, ...]] = (0,)

    @staticmethod
    def step(state: tuple[Any, ...], t: int, x: float) -> tuple[tuple[Any, ...], int]:
        (before,) = state
        return (x,), OPEN + CLOSE_AFTER if x - before > 0.5 else KEEP


def test_the_state_of_a_custom_window_changes_its_type(engine: str) -> None:
    """It begins with an integer, and a float must not be cut to one."""
    table = pa.table({"t": [1, 2, 3, 4], "x": [1.2, 1.6, 1.9, 2.8]})
    ask = over(table, window=Jumps(), engine=engine)
    refused(pf.InputError, ask, "Jumps()", "initial", "1.2")
