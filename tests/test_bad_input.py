"""What is refused, and in which words: every message names what was given and what to do.

Questions without a meaning are `QueryError`s, data that does not fit is an `InputError`, and a
meaningful request that cannot be answered is an `UnsupportedError`. Nothing else may come out: a
traceback from NumPy, Arrow or Numba tells a user nothing about their question.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates import Aggregate
from paneflow.windows import CLOSE_AFTER, KEEP, OPEN, Custom, Window, WindowClass

ADVICE = re.compile(
    r"\b(must be|has to be|is needed|expected|call|cast|choose|compute|correct|cut|drop|fill|give|"
    r"leave|make|name|pass|rename|round|state|use)\b"
)
# What may be passed by a user who has no type checker.
Query: Any = pf.Query
COUNT = {"n": A.count()}
TABLE = pa.table({"t": [1, 2], "v": [1, 2], "s": ["a", "b"]})


@pytest.fixture(params=["oracle", "table"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def shown(value: Any) -> str:
    """A test's id: functions by name, since their addresses differ between processes."""
    return getattr(value, "__name__", str(value))


def refused(error: type[pf.PaneflowError], ask: Callable[[], object], *given: str) -> str:
    """The message of an error, which names everything given and says what to do."""
    with pytest.raises(pf.PaneflowError) as caught:
        ask()
    message = str(caught.value)
    assert type(caught.value) is error, message
    for part in given:
        assert part in message, f"{part!r} is not in: {message}"
    assert ADVICE.search(message), f"no advice in: {message}"
    return message


def over(
    table: Any,
    *,
    engine: str = "auto",
    window: Window | None = None,
    aggregate: Aggregate | None = None,
    key: str | None = None,
) -> Callable[[], Any]:
    """Ask a small question of a table."""
    query = pf.Query(window or W.tumbling(5), {"n": aggregate or A.count()}, key=key, time="t")
    return lambda: query.over(table, engine=engine)


# A question without a meaning.


@pytest.mark.parametrize("windows", [[], {}])
def test_no_windows(windows: Any) -> None:
    refused(pf.QueryError, partial(Query, windows, COUNT), "no window")


@pytest.mark.parametrize("windows", ["tumbling(5)", 5, None, W.sliding], ids=shown)
def test_windows_that_are_none(windows: Any) -> None:
    refused(pf.QueryError, partial(Query, windows, COUNT), repr(windows), "sliding(")


def test_a_window_that_is_none_among_windows() -> None:
    refused(pf.QueryError, partial(Query, [W.tumbling(5), "5 s"], COUNT), "'5 s'")
    refused(pf.QueryError, partial(Query, {"hour": "1 h"}, COUNT), "'hour'", "'1 h'")


def test_a_window_given_twice() -> None:
    twice = [W.tumbling("90 s"), W.count(3), W.tumbling("1 min 30 s")]
    refused(pf.QueryError, partial(Query, twice, COUNT), "tumbling(1m30s)", "dict of labels")
    labelled = dict(zip("abc", twice, strict=True))
    assert list(pf.Query(labelled, COUNT).windows) == ["a", "b", "c"]


def test_a_label_that_is_no_text() -> None:
    refused(pf.QueryError, partial(Query, {1: W.tumbling(5)}, COUNT), "label", "1")


@pytest.mark.parametrize("aggregates", [{}, None, [A.count()], A.count()], ids=str)
def test_aggregates_that_are_no_dict(aggregates: Any) -> None:
    ask = partial(Query, W.tumbling(5), aggregates)
    refused(pf.QueryError, ask, repr(aggregates), "aggregates.max(")


@pytest.mark.parametrize("aggregate", ["max", A.count, sum, 3], ids=shown)
def test_an_aggregate_that_is_none(aggregate: Any) -> None:
    ask = partial(Query, W.tumbling(5), {"peak": aggregate})
    refused(pf.QueryError, ask, "'peak'", repr(aggregate), 'max("load")')


@pytest.mark.parametrize("name", [1, "", None])
def test_the_name_of_an_aggregate_that_is_no_text(name: Any) -> None:
    refused(pf.QueryError, partial(Query, W.tumbling(5), {name: A.count()}), repr(name))


def test_a_definition_that_was_not_called() -> None:
    total = A.define(
        lambda x: x, lambda a, b: a + b, lambda p: p, 0.0, commutative=True, name="total"
    )
    refused(pf.QueryError, partial(Query, W.tumbling(5), {"all": total}), "'all'", "call it")
    refused(pf.QueryError, total, "total", "columns")
    refused(pf.QueryError, lambda: total(3), "3")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["window", "seq", "start", "end", "house"])
def test_a_result_named_like_another_column(name: str) -> None:
    ask = partial(Query, W.tumbling(5), {name: A.count()}, key="house")
    refused(pf.QueryError, ask, repr(name), "another name")


@pytest.mark.parametrize("name", ["window", "seq", "start", "end"])
def test_a_key_named_like_a_result_column(name: str) -> None:
    refused(pf.QueryError, partial(Query, W.tumbling(5), COUNT, key=name), repr(name), "rename")


def test_a_key_named_twice() -> None:
    refused(pf.QueryError, partial(Query, W.tumbling(5), COUNT, key=["k", "h", "k"]), "k, h, k")


@pytest.mark.parametrize("key", [5, "", [1], [None], ["k", ""]], ids=str)
def test_a_key_that_is_no_name(key: Any) -> None:
    bad = key[-1] if isinstance(key, list) else key
    refused(pf.QueryError, partial(Query, W.tumbling(5), COUNT, key=key), repr(bad), "name")


def test_a_time_that_is_also_a_key() -> None:
    ask = partial(Query, W.tumbling(5), COUNT, key=["k", "ts"], time="ts")
    refused(pf.QueryError, ask, "'ts'", "leave it out")


@pytest.mark.parametrize("time", [None, "", ["t"], 3], ids=str)
def test_a_time_that_is_no_name(time: Any) -> None:
    refused(pf.QueryError, partial(Query, W.tumbling(5), COUNT, time=time), repr(time))


@pytest.mark.parametrize("lateness", ["soon", -1, "-5 s", 1.5, None], ids=str)
def test_lateness_that_is_no_duration(lateness: object) -> None:
    ask = partial(Query, W.tumbling(5), COUNT, lateness=lateness)
    refused(pf.QueryError, ask, "lateness", repr(lateness))


@pytest.mark.parametrize("name", ["spark", "Table", None, 3], ids=str)
def test_an_unknown_engine(name: Any) -> None:
    query = pf.Query(W.tumbling(5), COUNT, time="t")
    for ask in (lambda: query.over(TABLE, engine=name), lambda: query.explain(engine=name)):
        refused(pf.QueryError, ask, f"engine={name!r}", "'table'", "'oracle'")


@pytest.mark.parametrize("name", ["bubble", "SBA", None, 3], ids=str)
def test_an_unknown_merge(name: Any, engine: str) -> None:
    query = pf.Query(W.tumbling(5), COUNT, time="t")
    slices = query.slice(TABLE)
    for ask in (
        lambda: query.over(TABLE, engine=engine, merge=name),
        lambda: query.explain(engine=engine, merge=name),
        lambda: query.finish(slices, merge=name),
    ):
        refused(pf.QueryError, ask, f"merge={name!r}", "'sba'", "'flat_fat'")


# Windows and aggregates without a meaning.


@pytest.mark.parametrize(
    ("state", "given"),
    [
        (lambda: W.sliding("1 hour", 0), "0"),
        (lambda: W.sliding("1 hour", "0 s"), "'0 s'"),
        (lambda: W.sliding(0, 1), "0"),
        (lambda: W.tumbling("an hour"), "'an hour'"),
        (lambda: W.tumbling(1.5), "1.5"),
        (lambda: W.tumbling(dt.date(2024, 1, 1)), "2024"),
        (lambda: W.session("-5 s"), "'-5 s'"),
        (lambda: W.count(0), "0"),
        (lambda: W.slide_by_tuple("1 h", 2.0), "2.0"),  # type: ignore[arg-type]
        (lambda: W.slide_by_time(5, "0 s"), "'0 s'"),
        (lambda: W.delta("km", 0, 1), "0"),
        (lambda: W.punctuation(3), "3"),  # type: ignore[arg-type]
    ],
)
def test_windows_without_a_meaning(state: Callable[[], object], given: str) -> None:
    refused(pf.QueryError, state, given)


@pytest.mark.parametrize("size", [2**63, 2**64])
@pytest.mark.parametrize(
    "state",
    [W.count, lambda n: W.count(1, n), lambda n: W.slide_by_tuple(1, n), W.slide_by_time],
    ids=["count", "slide", "slide_by_tuple", "slide_by_time"],
)
def test_numbers_of_events_beyond_int64(state: Callable[..., Window], size: int) -> None:
    arguments = (size, 1) if state is W.slide_by_time else (size,)
    refused(pf.QueryError, lambda: state(*arguments), str(size))


@pytest.mark.parametrize(
    ("state", "given"),
    [
        (lambda: A.max(""), "''"),
        (lambda: A.sum(3), "3"),  # type: ignore[arg-type]
        (lambda: A.count(["v"]), "['v']"),  # type: ignore[arg-type]
        (lambda: A.arg_max("v", by=None), "None"),  # type: ignore[arg-type]
        (lambda: A.quantile("v", 1.5), "1.5"),
        (lambda: A.quantile("v", True), "True"),
        (lambda: A.quantile("v", math.nan), "nan"),
        (lambda: A.quantiles("v", []), "no shares"),
        (lambda: A.quantiles("v", [0.5, 50]), "50"),
        (lambda: A.top_k("v", 0), "0"),
        (lambda: A.top_k("v", 2.0), "2.0"),  # type: ignore[arg-type]
        (lambda: A.concat("s", separator=3), "3"),  # type: ignore[arg-type]
        (lambda: A.bloom_filter("v", bits=100), "100"),
        (lambda: A.bloom_filter("v", hashes=0), "0"),
        (lambda: A.moment_sketch("v", q=2), "2"),
        (lambda: A.moment_sketch("v", k=1), "1"),
        (lambda: A.approx_distinct("v", lg_k=99), "99"),
        (lambda: A.approx_quantile("v", 0.5, k=1), "1"),
        (lambda: A.approx_quantile("v", -0.1), "-0.1"),
        (lambda: A.apply("fit", "v"), "'fit'"),  # type: ignore[arg-type]
        (lambda: A.apply(len), "columns"),
        (lambda: A.apply(len, 3), "3"),  # type: ignore[arg-type]
        (lambda: A.apply(len, "v", returns="float"), "'float'"),
    ],
)
def test_aggregates_without_a_meaning(state: Callable[[], object], given: str) -> None:
    refused(pf.QueryError, state, given)


# Tables that cannot be read.


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        (None, "NoneType"),
        (3, "int"),
        ("events.csv", "str"),
        ({"t": [1], "v": [1]}, "dict"),
        ([(1, 2)], "list"),
        (({"t": 1},), "tuple"),
        (np.zeros((2, 2)), "ndarray"),
        (pa.array([1]), "Int64Array"),
        (pd.Series([1]), "Series"),
        (pl.Series([1]), "Series"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_table(table: Any, kind: str) -> None:
    query = pf.Query(W.tumbling(5), COUNT, time="t")
    for ask in (query.over, query.slice, query.explain):
        if ask == query.explain and table is None:
            continue  # no table is given
        refused(pf.InputError, partial(ask, table), kind, "list of dicts")


@pytest.mark.parametrize(
    "values",
    [[1, "a"], [True, 2], [[1], 2], [{"x": 1}, 2], [1, Decimal, 2]],
    ids=["number and text", "truth and number", "list and number", "dict and number", "a class"],
)
def test_a_column_of_several_types(values: list[Any]) -> None:
    times = list(range(len(values)))
    rows = [{"t": t, "v": value} for t, value in zip(times, values, strict=True)]
    read = A.count("v")
    refused(pf.InputError, over(rows, aggregate=read), "'v'", "one type")
    frame = pd.DataFrame({"t": times, "v": values})
    refused(pf.InputError, over(frame, aggregate=read), "'v'", "one type")


def test_a_column_of_numbers_that_are_too_large() -> None:
    refused(pf.InputError, over([{"t": 1, "v": 2**70}], aggregate=A.count("v")), "'v'", "int64")


ODD = [object(), 2**70, 1j, "text", [1], None]
ODD_TABLES: dict[str, Any] = {
    "dicts": [{"t": t, "v": value, 2: 3, None: 4, "": 5} for t, value in enumerate(ODD)],
    "pandas, objects": pd.DataFrame({"t": range(6), "v": ODD, 2: ODD}),
    "pandas, twice": pd.DataFrame([[1, 2, 3]], columns=["t", "v", "v"]),
    "pandas, complex": pd.DataFrame({"t": [1], "v": [1j]}),
    "polars, Int128": pl.DataFrame(
        {"t": [1], "v": [2**100]}, schema={"t": pl.Int64, "v": pl.Int128}
    ),
    "polars, Object": pl.DataFrame(
        {"t": [1], "v": [object()]}, schema={"t": pl.Int64, "v": pl.Object}
    ),
    "polars, failing": pl.LazyFrame({"t": [1], "v": ["x"]}).with_columns(pl.col("v").cast(pl.Int8)),
    "pyarrow, twice": pa.table([[1], [2], [3]], names=["t", "v", "v"]),
}


@pytest.mark.parametrize("kind", ODD_TABLES)
def test_columns_that_a_query_does_not_read_are_not_looked_at(kind: str) -> None:
    query = pf.Query(W.tumbling(50), COUNT, time="t")
    rows = query.over(ODD_TABLES[kind])
    assert len(rows.collect() if isinstance(rows, pl.LazyFrame) else rows) == 1
    with query.open() as stream:
        stream.push(ODD_TABLES[kind])
        stream.finish()
        assert sum(rows.num_rows for rows in stream.results()) == 1


@pytest.mark.parametrize("kind", ODD_TABLES)
def test_columns_that_a_query_does_read_are_refused_if_odd(kind: str) -> None:
    refused(pf.InputError, over(ODD_TABLES[kind], aggregate=A.sum("v")), "v")


def test_a_missing_column(engine: str) -> None:
    cases: list[tuple[Callable[[], object], str]] = [
        (over(TABLE.drop_columns("t"), engine=engine), "the time"),
        (over(TABLE, engine=engine, key="house"), "a key"),
        (over(TABLE, engine=engine, aggregate=A.arg_max("v", "house")), "'n'"),
        (over(TABLE, engine=engine, window=W.delta("house", 1, 1)), "delta(house, 1, 1)"),
        (over(TABLE, engine=engine, window=W.punctuation("house")), "punctuation(house)"),
    ]
    for ask, purpose in cases:
        wanted = "'t'" if purpose == "the time" else "'house'"
        refused(pf.InputError, ask, wanted, purpose, "'v', 's'", "existing column")


def test_explain_and_slice_check_the_columns_too() -> None:
    query = pf.Query(W.tumbling(5), {"x": A.sum("load")}, time="t")
    refused(pf.InputError, lambda: query.explain(TABLE), "'load'", "existing column")
    refused(pf.InputError, lambda: query.slice(TABLE), "'load'", "existing column")


def test_a_column_that_occurs_twice(engine: str) -> None:
    twice = pa.table([[1], [2], [3]], names=["t", "v", "v"])
    refused(pf.InputError, over(twice, engine=engine, aggregate=A.sum("v")), "'v'", "2", "rename")
    assert over(twice, engine=engine)()  # it does no harm where nobody asks for it
    frame = pd.DataFrame([[1, 2, 3]], columns=["t", "v", "v"])
    refused(pf.InputError, over(frame, engine=engine, aggregate=A.sum("v")), "'v'", "rename")


# Times.


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


LONG = 2**62


@pytest.mark.parametrize(
    ("t", "state"),
    [
        (-(2**61), lambda: W.sliding(LONG, LONG, offset=LONG)),
        (2**61, lambda: W.sliding(LONG, LONG, offset=-LONG)),
        (2**61, lambda: W.slide_by_time(1, LONG, offset=LONG)),
        (-(2**61), lambda: W.slide_by_tuple(LONG, 1)),
        (2**61, lambda: W.session(LONG)),
    ],
    ids=["sliding after", "sliding before", "slide_by_time", "slide_by_tuple", "session"],
)
def test_the_longest_windows(t: int, state: Callable[[], Window]) -> None:
    """Refused, or right: a bound that leaves int64 must not wrap around and lose rows."""
    try:
        window = state()
        found = over(pa.table({"t": [t]}), window=window, engine="table")()
    except pf.PaneflowError as error:
        assert str(LONG) in str(error)
    else:
        assert found == over(pa.table({"t": [t]}), window=window, engine="oracle")()


# Keys.


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1.5]),
        pa.array([1.5], pa.float32()),
        pa.array([1.5]).dictionary_encode(),
        pa.array([[1]]),
        pa.array([{"x": 1}]),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    ],
    ids=lambda values: str(values.type),
)
def test_keys_that_cannot_be_told_apart(values: pa.Array, engine: str) -> None:
    type_ = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    table = pa.table({"t": [1], "k": values})
    refused(pf.InputError, over(table, engine=engine, key="k"), "'k'", str(type_), "cast")


# Kinds of values.

COLUMNS = pa.table(
    {
        "t": [1, 2],
        "integer": [1, 2],
        "float": [1.0, 2.0],
        "boolean": [True, False],
        "text": ["a", "b"],
        "temporal": pa.array([1, 2], pa.timestamp("ms")),
    }
)
ADDED: list[Callable[[str], Aggregate]] = [A.sum, A.mean, A.var, A.std, A.var_pop, A.std_pop]
"""Booleans can be added up, as 0 and 1."""
NUMERIC: list[Callable[[str], Aggregate]] = [
    A.product,
    A.geometric_mean,
    A.median,
    A.moment_sketch,
    lambda c: A.quantile(c, 0.5),
    lambda c: A.quantiles(c, [0.5]),
    lambda c: A.approx_quantile(c, 0.5),
    lambda c: A.linear_regression(c, "integer"),
    lambda c: A.linear_regression("integer", c),
]


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        *((make, kind) for make in NUMERIC for kind in ("boolean", "text", "temporal")),
        *((make, kind) for make in ADDED for kind in ("text", "temporal")),
    ],
    ids=lambda given: given if isinstance(given, str) else str(given("x")),
)
def test_numbers_are_needed(make: Callable[[str], Aggregate], kind: str, engine: str) -> None:
    aggregate, type_ = make(kind), str(COLUMNS.schema.field(kind).type)
    ask = over(COLUMNS, engine=engine, aggregate=aggregate)
    refused(pf.InputError, ask, str(aggregate), repr(kind), type_, "integer or float", "cast")


@pytest.mark.parametrize("kind", ["integer", "float", "boolean", "temporal"])
def test_text_is_needed(kind: str, engine: str) -> None:
    ask = over(COLUMNS, engine=engine, aggregate=A.concat(kind))
    refused(pf.InputError, ask, f"concat({kind})", repr(kind), "kind text", "cast")


@pytest.mark.parametrize("make", [A.bloom_filter, A.approx_distinct], ids=["bloom", "hll"])
def test_times_have_no_hash(make: Callable[[str], Aggregate], engine: str) -> None:
    ask = over(COLUMNS, engine=engine, aggregate=make("temporal"))
    refused(pf.InputError, ask, "'temporal'", "timestamp[ms]", "cast")


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1]]),
        pa.array([{"x": 1}]),
        pa.array([b"ab"], pa.binary(2)),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    ],
    ids=lambda values: str(values.type),
)
@pytest.mark.parametrize("make", [A.count, A.max, A.collect], ids=lambda make: make.__name__)
def test_types_that_no_aggregate_reads(
    make: Callable[[str], Aggregate], values: pa.Array, engine: str
) -> None:
    table = pa.table({"t": [1], "v": values})
    refused(pf.InputError, over(table, engine=engine, aggregate=make("v")), "'v'", str(values.type))


def test_integers_beyond_int64(engine: str) -> None:
    table = pa.table({"t": [1], "v": pa.array([2**63], pa.uint64())})
    for aggregate in (A.sum("v"), A.max("v"), A.median("v")):
        ask = over(table, engine=engine, aggregate=aggregate)
        refused(pf.InputError, ask, "'v'", "int64", "cast")


def test_bytes_that_are_no_text(engine: str) -> None:
    table = pa.table({"t": [1], "v": pa.array([b"\xff"])})
    refused(pf.InputError, over(table, engine=engine, aggregate=A.concat("v")), "'v'", "cast")


def test_more_values_are_asked_for_than_there_are(engine: str) -> None:
    """Room is needed for what a window holds, not for what was asked."""
    rows = over(TABLE, engine=engine, aggregate=A.top_k("v", 10**12))()
    assert rows["n"].to_pylist() == [[2, 1]]


# Sums of integers.


@pytest.mark.parametrize(
    ("values", "total"),
    [([2**62, 2**62], 2**63), ([-(2**63), -1], -(2**63) - 1), ([2**63 - 1] * 4, 2**65 - 4)],
)
def test_a_sum_beyond_int64(values: list[int], total: int, engine: str) -> None:
    table = pa.table({"t": range(len(values)), "v": values})
    for exact in (False, True):
        ask = over(table, engine=engine, aggregate=A.sum("v", exact=exact))
        refused(pf.InputError, ask, str(A.sum("v", exact=exact)), str(total), "int64", "cast")


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([2**63 - 1, 2**63 - 1, -(2**63), -(2**63)], -2),
        ([-(2**63), -(2**63), 2**63 - 1, 2**63 - 1], -2),
        ([2**63 - 1, 1, -1], 2**63 - 1),
        ([-(2**63), 0, 0], -(2**63)),
    ],
)
@pytest.mark.parametrize("merge", ["auto", "sba", "flat_fat"])
def test_a_sum_that_comes_back_into_int64(
    values: list[int], total: int, merge: str, engine: str
) -> None:
    """On its way the sum leaves int64; only what a window adds up to counts."""
    table = pa.table({"t": range(len(values)), "v": values})
    # The windows of one event cut every event into a slice, so that merging must add them up.
    windows = {"all": W.tumbling(10), "each": W.count(1)}
    query = pf.Query(windows, {"sum": A.sum("v"), "mean": A.mean("v")}, time="t")
    rows = query.over(table, engine=engine, merge=merge).to_pylist()
    (whole,) = (row for row in rows if row["window"] == "all")
    assert (whole["sum"], whole["mean"]) == (total, float(total) / len(values))
    assert [row["sum"] for row in rows if row["window"] == "each"] == values


def test_only_the_windows_that_are_asked_for_can_overflow(engine: str) -> None:
    table = pa.table({"t": [0, 1, 5, 6], "v": [2**62, 2**62 - 1, 2**62, 2**62 - 1]})
    rows = over(table, engine=engine, aggregate=A.sum("v"))()
    assert rows.column("n").to_pylist() == [2**63 - 1] * 2
    ask = over(table, engine=engine, window=W.session(4), aggregate=A.sum("v"))
    refused(pf.InputError, ask, str(2**64 - 2), "int64")


@pytest.mark.parametrize("values", [[2**63 - 1, 1], [-(2**63), -1]])
def test_a_sum_one_beyond_int64_is_refused(values: list[int], engine: str) -> None:
    ask = over(pa.table({"t": [0, 1], "v": values}), engine=engine, aggregate=A.sum("v"))
    refused(pf.InputError, ask, str(sum(values)), "int64")


def test_a_mean_of_integers_cannot_overflow(engine: str) -> None:
    table = pa.table({"t": [0, 1], "v": [2**63 - 1, 2**63 - 1]})
    rows = over(table, engine=engine, aggregate=A.mean("v"))()
    assert rows.column("n").to_pylist() == [float(2**64 - 2) / 2]


# Columns that windows read.


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
    """Refused, or right: a difference must not wrap around and lose rows."""
    try:
        window = state()
        found = over(growing(values), window=window, engine="table")()
    except pf.PaneflowError as error:
        assert "delta" in str(error)
    else:
        assert found == over(growing(values), window=window, engine="oracle")()


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


# Functions of the user's that give something else than they promised.


def test_a_function_that_returns_another_type(engine: str) -> None:
    ask = over(TABLE, engine=engine, aggregate=A.apply(lambda values: "high", "v"))
    refused(pf.InputError, ask, "apply(", "double", "returns")


# Slices.


def test_what_cannot_be_finished() -> None:
    query = pf.Query(W.tumbling(5), COUNT, time="t")
    others: list[Any] = [TABLE, [{"t": 1}], None]
    for given in others:
        refused(pf.InputError, partial(query.finish, given), type(given).__name__, "query.slice")


def test_what_cannot_be_merged() -> None:
    slices = pf.Query(W.tumbling(5), COUNT, time="t").slice(TABLE)
    message = refused(pf.InputError, lambda: slices.merge(TABLE), "Table", "query.slice")
    assert len(message) < 200  # and not the whole table


def test_slices_of_tables_with_other_types() -> None:
    query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
    whole = query.slice(TABLE)
    parts = query.slice(TABLE.set_column(1, "v", pa.array([0.5, 1.5])))
    refused(pf.InputError, lambda: whole.merge(parts), "int64", "double", "same")


def test_errors_are_value_errors_too() -> None:
    assert issubclass(pf.QueryError, ValueError)
    assert issubclass(pf.InputError, ValueError)
    assert not issubclass(pf.UnsupportedError, ValueError)


def test_a_key_that_cannot_be_put_in_order(engine: str) -> None:
    ids = pa.array([uuid.UUID(int=5), uuid.UUID(int=6)])
    table = TABLE.append_column("id", ids)
    refused(pf.InputError, over(table, engine=engine, key="id"), "'id'", "uuid", "cast")


def test_streams_pass_over_partial_however_a_custom_window_states_it() -> None:
    @dataclass(frozen=True)
    class Marked(Custom):
        window_class = WindowClass.FCF
        columns = ("b",)
        initial = (0,)

        @property
        def partial(self) -> bool:
            return True

        @staticmethod
        def step(state: tuple[int, ...], t: int, b: int) -> tuple[tuple[int, ...], int]:
            return (1,), (OPEN if state[0] == 0 else KEEP) + (CLOSE_AFTER if b else KEEP)

    table = pa.table({"t": [1, 2, 3], "b": [False, True, False]})
    with pf.Query(Marked(), COUNT, time="t").open() as stream:
        stream.push(table)
        stream.finish()
        assert [row["n"] for rows in stream.results() for row in rows.to_pylist()] == [2]
