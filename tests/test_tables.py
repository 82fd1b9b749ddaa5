"""Tables of every kind: the result is of the same kind, and columns keep their types."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W

QUERY = pf.Query(
    W.tumbling(5),
    {"n": A.count(), "peak": A.max("v"), "all": A.collect("s"), "mean": A.mean("v")},
    key="k",
    time="t",
)
ROWS: list[dict[str, Any]] = [
    {"t": 1, "k": "a", "v": 1.5, "s": "x"},
    {"t": 7, "k": None, "v": 4.0, "s": "y"},
    {"t": 4, "k": "a", "v": None, "s": None},
    {"t": 2, "k": "b", "v": 3.0, "s": "z"},
]
TABLE = pa.Table.from_pylist(ROWS)
COLUMNS = ["window", "k", "seq", "start", "end", "n", "peak", "all", "mean"]
EXPECTED: list[dict[str, Any]] = [
    dict(zip(COLUMNS, ["tumbling(5)", *row], strict=True))
    for row in (
        ["a", 0, 0, 5, 2, 1.5, ["x"], 1.5],
        ["b", 0, 0, 5, 1, 3.0, ["z"], 3.0],
        [None, 1, 5, 10, 1, 4.0, ["y"], 4.0],
    )
]


@pytest.fixture(params=["oracle", "table"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# The same kind out as in.


def test_pyarrow(engine: str) -> None:
    rows = QUERY.over(TABLE, engine=engine)
    assert isinstance(rows, pa.Table)
    assert rows.column_names == COLUMNS
    assert rows.to_pylist() == EXPECTED


def test_a_record_batch_gives_a_table(engine: str) -> None:
    (batch,) = TABLE.to_batches()
    assert QUERY.over(batch, engine=engine).equals(QUERY.over(TABLE, engine=engine))


def test_lists_of_dicts(engine: str) -> None:
    assert QUERY.over(ROWS, engine=engine) == EXPECTED


def test_dicts_may_leave_out_what_is_null(engine: str) -> None:
    sparse = [{name: value for name, value in row.items() if value is not None} for row in ROWS]
    assert QUERY.over(sparse, engine=engine) == EXPECTED


def test_the_first_dict_may_leave_out_what_is_null(engine: str) -> None:
    query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, key="k", time="t")
    rows = query.over([{"t": 1}, {"t": 2, "k": "a", "v": 5}], engine=engine)
    assert [(row["k"], row["peak"]) for row in rows] == [(None, None), ("a", 5)]


def test_pandas(engine: str) -> None:
    frame = TABLE.to_pandas()
    rows = QUERY.over(frame, engine=engine)
    assert isinstance(rows, pd.DataFrame)
    assert pa.Table.from_pandas(rows, preserve_index=False).select(COLUMNS[1:]).to_pylist() == [
        {name: row[name] for name in COLUMNS[1:]} for row in EXPECTED
    ]
    assert rows["window"].tolist() == ["tumbling(5)"] * 3


def test_the_index_of_a_pandas_frame_is_no_column() -> None:
    frame = TABLE.to_pandas()
    indexed = frame.set_index(pd.Index([9, 8, 7, 6], name="t"))
    rows = QUERY.over(indexed)
    assert list(rows.columns) == COLUMNS
    assert rows.index.tolist() == [0, 1, 2]


def test_a_nan_of_pandas_is_a_missing_value() -> None:
    frame = pd.DataFrame({"t": [1, 2], "v": [float("nan"), 1.0]})
    rows = pf.Query(W.tumbling(5), {"n": A.count("v"), "peak": A.max("v")}, time="t").over(frame)
    assert rows[["n", "peak"]].to_dict("records") == [{"n": 1, "peak": 1.0}]


def test_missing_integers_of_pandas_stay_integers() -> None:
    """A float could not hold the number."""
    large = 2**53 + 1
    frame = pd.DataFrame(
        {"t": [1, 2], "k": ["a", "b"], "v": pd.array([large, None], dtype="Int64")}
    )
    rows = pf.Query(W.tumbling(5), {"peak": A.max("v")}, key="k", time="t").over(frame)
    assert int(rows["peak"][0]) == large
    assert rows["peak"].isna().tolist() == [False, True]


def test_polars(engine: str) -> None:
    rows = QUERY.over(pl.DataFrame(TABLE), engine=engine)
    assert isinstance(rows, pl.DataFrame)
    assert rows.columns == COLUMNS
    assert rows.with_columns(pl.col("window").cast(pl.String)).to_dicts() == EXPECTED


def test_lazy_polars(engine: str) -> None:
    rows = QUERY.over(pl.DataFrame(TABLE).lazy(), engine=engine)
    assert isinstance(rows, pl.LazyFrame)
    assert rows.with_columns(pl.col("window").cast(pl.String)).collect().to_dicts() == EXPECTED


@pytest.mark.parametrize("kind", [list, pd.DataFrame, pl.DataFrame], ids=lambda k: k.__module__)
def test_slice_and_explain_take_every_kind(kind: Any) -> None:
    given: Any = {list: TABLE.to_pylist, pd.DataFrame: TABLE.to_pandas}.get(
        kind, lambda: pl.DataFrame(TABLE)
    )()
    assert isinstance(given, kind)
    assert QUERY.finish(QUERY.slice(given)).to_pylist() == EXPECTED
    assert QUERY.explain(given) == QUERY.explain(TABLE)


@pytest.mark.processes
def test_optional_libraries_are_not_imported_for_others() -> None:
    """pandas is left out here, since pyarrow itself looks for it."""
    script = (
        "import sys, paneflow as pf; from paneflow import windows as W, aggregates as A;"
        "pf.Query(W.tumbling(5), {'n': A.count()}, time='t').over([{'t': 1}]);"
        "print([name for name in ('polars', 'datasketches', 'matplotlib') if name in sys.modules])"
    )
    source = Path(__file__).resolve().parent.parent / "src"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr


# Types.

HELD = ["low", "high", "first", "last", "mode", "at_low"]
LISTS = ["top", "all"]
TYPES = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64()),
    *(pa.bool_(), pa.string(), pa.large_string(), pa.string_view()),
    *(pa.binary(), pa.large_binary()),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp("s"), pa.timestamp("ns", "Asia/Tokyo"), pa.duration("ms"), pa.duration("ns")),
]


def column(type_: pa.DataType) -> pa.Array:
    """Two values, the second one greater, and a null."""
    if pa.types.is_boolean(type_):
        return pa.array([False, True, None], type_)
    if pa.types.is_date64(type_):
        return pa.array([0, 86_400_000, None], type_)
    if pa.types.is_temporal(type_):
        return pa.array([1, 2, None], type_)
    numbers = pa.array([1, 2, None], pa.int8())
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return numbers.cast(type_)
    return pa.array(["", "ä", None]).cast(type_)


def pick(values: pa.Array, *rows: int) -> pa.Array:
    """Some values of a column; `take` does not know every type."""
    return pa.concat_arrays([values.slice(row, 1) for row in rows])


def held(values: pa.Array, engine: str) -> pa.Table:
    """Aggregates that give values of the column; over windows with values and with none."""
    table = pa.table({"t": [1, 2, 3], "v": values})
    query = pf.Query(
        W.tumbling(3),
        {
            "low": A.min("v"),
            "high": A.max("v"),
            "first": A.first("v"),
            "last": A.last("v"),
            "mode": A.mode("v"),
            "at_low": A.arg_min("v", "v"),
            "top": A.top_k("v", 2),
            "all": A.collect("v"),
            "n": A.count("v"),
            "kinds": A.distinct("v"),
        },
        time="t",
    )
    return query.over(table, engine=engine)


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_values_keep_their_type(type_: pa.DataType, engine: str) -> None:
    values = column(type_)
    rows = held(values, engine)
    for name in HELD:
        assert rows.schema.field(name).type == type_
        greater = name in ("high", "last")
        assert rows[name].combine_chunks().equals(pick(values, 1 if greater else 0, 2)), name
    for name in LISTS:
        assert rows.schema.field(name).type == pa.list_(type_)
        (filled, empty) = rows[name].combine_chunks()
        assert filled.values.equals(pick(values, 1, 0) if name == "top" else pick(values, 0, 1))
        assert not empty.is_valid
    assert rows["n"].to_pylist() == rows["kinds"].to_pylist() == [2, 0]


@pytest.mark.parametrize(
    "type_", [pa.string(), pa.large_string(), pa.int16(), pa.float64(), pa.date32()], ids=str
)
def test_dictionaries_are_decoded(type_: pa.DataType, engine: str) -> None:
    assert held(column(type_).dictionary_encode(), engine).equals(held(column(type_), engine))


def test_computed_types(engine: str) -> None:
    table = pa.table({"t": [1], "i": pa.array([3], pa.int8()), "x": pa.array([3], pa.float32())})
    query = pf.Query(
        W.tumbling(5),
        {
            "sum i": A.sum("i"),
            "sum x": A.sum("x"),
            "mean": A.mean("i"),
            "product": A.product("i"),
            "median": A.median("x"),
            "quantiles": A.quantiles("i", [0.5]),
            "count": A.count(),
            "line": A.linear_regression("x", "i"),
            "bits": A.bloom_filter("i", 64),
        },
        time="t",
    )
    types = {
        "sum i": pa.int64(),
        "sum x": pa.float64(),
        "mean": pa.float64(),
        "product": pa.float64(),
        "median": pa.float64(),
        "quantiles": pa.list_(pa.float64()),
        "count": pa.int64(),
        "line": pa.struct([("slope", pa.float64()), ("intercept", pa.float64())]),
        "bits": pa.binary(),
    }
    rows = query.over(table, engine=engine)
    assert {name: rows.schema.field(name).type for name in types} == types


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (pa.int8(), pa.int64()),
        (pa.uint32(), pa.int64()),
        (pa.int64(), pa.int64()),
        (pa.timestamp("s"), pa.timestamp("us")),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "Europe/Berlin")),
        (pa.timestamp("ns", "+05:30"), pa.timestamp("us", "+05:30")),
        (pa.date32(), pa.timestamp("us")),
        (pa.date64(), pa.timestamp("us")),
    ],
    ids=str,
)
def test_times_keep_their_zone(given: pa.DataType, kept: pa.DataType, engine: str) -> None:
    at = 86_400_000 if given == pa.date64() else 0
    table = pa.table({"t": pa.array([0, at], given)})
    window = W.tumbling(7 if pa.types.is_integer(given) else "7 us")
    rows = pf.Query(window, {"n": A.count()}, time="t").over(table, engine=engine)
    assert rows.schema.field("start").type == rows.schema.field("end").type == kept
    assert rows["start"].cast(pa.int64())[0].as_py() == 0
    assert rows["end"].cast(pa.int64())[0].as_py() == 7


def test_a_day_is_its_midnight(engine: str) -> None:
    days = [dt.date(2024, 2, 28), dt.date(2024, 2, 29), dt.date(2024, 3, 1)]
    table = pa.table({"t": days})
    rows = pf.Query(W.tumbling("2 days"), {"n": A.count()}, time="t").over(table, engine=engine)
    assert rows.select(["start", "end", "n"]).to_pylist() == [
        {"start": dt.datetime(2024, 2, 27), "end": dt.datetime(2024, 2, 29), "n": 1},
        {"start": dt.datetime(2024, 2, 29), "end": dt.datetime(2024, 3, 2), "n": 2},
    ]


KEYS = [t for t in TYPES if not pa.types.is_floating(t)]


@pytest.mark.parametrize(
    "type_", [*KEYS, pa.binary_view(), pa.null(), pa.decimal128(5, 2)], ids=str
)
def test_keys_keep_their_type(type_: pa.DataType, engine: str) -> None:
    if pa.types.is_decimal(type_):
        keys = pa.array([Decimal(1), Decimal(2), None], type_)
    elif pa.types.is_null(type_):
        keys = pa.nulls(3)
    else:
        keys = column(type_)
    table = pa.table({"t": [1, 1, 1], "k": keys})
    rows = pf.Query(W.tumbling(5), {"n": A.count()}, key="k", time="t").over(table, engine=engine)
    assert rows.schema.field("k").type == type_
    expected = pick(keys, 2) if pa.types.is_null(type_) else pick(keys, 2, 0, 1)
    assert rows["k"].combine_chunks().equals(expected)  # null first


def test_dictionary_keys_are_decoded(engine: str) -> None:
    keys = pa.chunked_array(
        [pa.array(["b", "a"]).dictionary_encode(), pa.array(["c"]).dictionary_encode()]
    )
    table = pa.table({"t": pa.chunked_array([[1, 1], [1]]), "k": keys})
    rows = pf.Query(W.tumbling(5), {"n": A.count()}, key="k", time="t").over(table, engine=engine)
    assert rows.schema.field("k").type == pa.string()
    assert rows["k"].to_pylist() == ["a", "b", "c"]


def test_the_result_schema_is_known_beforehand(engine: str) -> None:
    for given in (TABLE, TABLE.slice(0, 0)):
        assert QUERY.over(given, engine=engine).schema.equals(QUERY.result_schema(given.schema))


# Shapes.


def test_chunks_do_not_matter(engine: str) -> None:
    whole = QUERY.over(TABLE, engine=engine)
    empty = TABLE.slice(0, 0)
    for parts in (
        [TABLE.slice(0, 1), TABLE.slice(1)],
        [TABLE.slice(i, 1) for i in range(4)],
        [empty, TABLE.slice(0, 3), empty, TABLE.slice(3), empty],
    ):
        chunked = pa.concat_tables(parts)
        assert chunked["t"].num_chunks == len(parts)
        assert QUERY.over(chunked, engine=engine).equals(whole)
    crossed = pa.table(
        {
            name: pa.chunked_array([values.slice(0, cut), values.slice(cut)])
            for cut, (name, values) in enumerate(
                (name, TABLE[name].combine_chunks()) for name in TABLE.column_names
            )
        }
    )
    assert QUERY.over(crossed, engine=engine).equals(whole)


def test_a_slice_of_a_table_is_only_that_slice(engine: str) -> None:
    around = pa.concat_tables([TABLE, TABLE, TABLE])
    assert QUERY.over(around.slice(4, 4), engine=engine).to_pylist() == EXPECTED


def test_a_column_without_any_chunk(engine: str) -> None:
    table = pa.table({f.name: pa.chunked_array([], f.type) for f in TABLE.schema})
    assert QUERY.over(table, engine=engine).equals(QUERY.over(TABLE.slice(0, 0), engine=engine))


def test_other_columns_are_left_alone(engine: str) -> None:
    more = TABLE.append_column("odd", pa.array([[{"x": 1}]] * 4))
    assert QUERY.over(more, engine=engine).to_pylist() == EXPECTED


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_no_events(type_: pa.DataType, engine: str) -> None:
    table = pa.table({"t": pa.array([], pa.int64()), "v": pa.array([], type_)})
    aggregates = {"high": A.max("v"), "all": A.collect("v"), "n": A.count()}
    for window in (W.tumbling(5), W.count(2), W.session(1)):
        rows = pf.Query(window, aggregates, time="t").over(table, engine=engine)
        assert rows.num_rows == 0
        assert rows.schema.field("high").type == type_
        assert rows.schema.field("all").type == pa.list_(type_)


def test_events_without_a_window(engine: str) -> None:
    """No window is complete, so there are no rows; the columns are there all the same."""
    query = pf.Query(W.count(9), QUERY.aggregates, key="k", time="t")
    rows = query.over(TABLE, engine=engine)
    assert rows.num_rows == 0
    assert rows.schema.equals(query.result_schema(TABLE.schema))


def test_no_events_of_other_kinds(engine: str) -> None:
    frames: list[Any] = [pl.DataFrame(TABLE).head(0), TABLE.to_pandas().head(0)]
    for frame in frames:
        rows = QUERY.over(frame, engine=engine)
        assert type(rows) is type(frame)
        assert len(rows) == 0
        assert list(rows.columns) == COLUMNS
    assert QUERY.over(pl.DataFrame(TABLE).head(0), engine=engine).schema["peak"] == pl.Float64


def test_no_events_in_a_list(engine: str) -> None:
    assert QUERY.over([], engine=engine) == []


def test_a_column_of_nothing_but_nulls(engine: str) -> None:
    """Where nothing says what the column would hold, as in a list of dicts or in pandas."""
    rows = [{"t": 1, "k": "a", "v": None, "s": None}]
    (row,) = QUERY.over(rows, engine=engine)
    assert (row["n"], row["peak"], row["mean"], row["all"]) == (1, None, None, None)
    frame = QUERY.over(pd.DataFrame(rows), engine=engine)
    assert frame["n"].tolist() == [1]
    assert frame[["peak", "mean", "all"]].isna().all(axis=None)
