"""Columns of pandas and polars come back with the dtypes they had."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W

LARGE = 2**53 + 1
VALUES: dict[str, list[Any]] = {
    "text": ["b", None, "a", "c", "b"],
    "integer": [5, None, LARGE, 7, 5],
    "float": [0.5, None, 2.5, -1.0, 0.5],
    "boolean": [True, None, False, True, True],
}
DTYPES: dict[str, tuple[str, Any]] = {
    "string": ("text", "string[python]"),
    "string[pyarrow]": ("text", "string[pyarrow]"),
    "string of Arrow": ("text", pd.ArrowDtype(pa.string())),
    "large_string of Arrow": ("text", pd.ArrowDtype(pa.large_string())),
    "object": ("text", object),
    "category": ("text", pd.CategoricalDtype(["c", "b", "a", "never"])),
    "ordered category": ("text", pd.CategoricalDtype(["b", "a", "c"], ordered=True)),
    "category of integers": ("integer", pd.CategoricalDtype([LARGE, 7, 5])),
    "Int64": ("integer", "Int64"),
    "UInt64": ("integer", "UInt64"),
    "int64[pyarrow]": ("integer", "int64[pyarrow]"),
    "Float64": ("float", "Float64"),
    "Float32": ("float", "Float32"),
    "double[pyarrow]": ("float", "double[pyarrow]"),
    "boolean": ("boolean", "boolean"),
    "bool[pyarrow]": ("boolean", "bool[pyarrow]"),
}
HELD = {
    "low": A.min("v"),
    "high": A.max("v"),
    "first": A.first("v"),
    "last": A.last("v"),
    "mode": A.mode("v"),
    "at": A.arg_min("v", "t"),
}


def asked(key: str | None) -> pf.Query:
    return pf.Query(W.tumbling(3), HELD | {"n": A.count("v")}, key=key, time="t")


def as_pylist(series: Any) -> list[Any]:
    return [
        None if missing else value for value, missing in zip(series, series.isna(), strict=True)
    ]


@pytest.fixture(params=["oracle", "table"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(("of", "dtype"), DTYPES.values(), ids=DTYPES)
def test_keys_and_values_of_pandas(of: str, dtype: Any, engine: str) -> None:
    values = VALUES[of]
    frame = pd.DataFrame({"t": [1, 2, 3, 4, 9], "v": pd.Series(values, dtype=dtype)})
    key = None if of == "float" else "v"
    plain = asked(key).over(pa.table({"t": frame["t"], "v": pa.array(values)}), engine=engine)
    rows = asked(key).over(frame, engine=engine)
    for name in [*HELD, *([key] if key else [])]:
        assert rows[name].dtype == frame["v"].dtype, name
        assert as_pylist(rows[name]) == plain[name].to_pylist(), name
    assert as_pylist(rows["n"]) == plain["n"].to_pylist()


@pytest.mark.parametrize(
    ("given", "whole", "real"),
    [
        ("int64", "int64", "float64"),
        ("Int32", "Int64", "Float64"),
        ("int32[pyarrow]", "int64[pyarrow]", "double[pyarrow]"),
    ],
)
def test_results_have_the_kind_of_dtype_of_what_they_are_made_of(
    given: str, whole: str, real: str, engine: str
) -> None:
    frame = pd.DataFrame({"t": [1, 2, 8], "v": pd.Series([3, 4, 5], dtype=given)})
    aggregates = {"sum": A.sum("v"), "mean": A.mean("v"), "std": A.std_pop("v"), "n": A.count("v")}
    rows = pf.Query(W.tumbling(5), aggregates, time="t").over(frame, engine=engine)
    assert [str(d) for d in rows[[*aggregates]].dtypes.map(pd.api.types.pandas_dtype)] == [
        str(pd.api.types.pandas_dtype(d)) for d in (whole, real, real, whole)
    ]
    assert rows["sum"].tolist() == [7, 5]
    assert rows["mean"].tolist() == [3.5, 5.0]


def test_times_of_arrow_stay_those_of_arrow(engine: str) -> None:
    dtype = pd.ArrowDtype(pa.timestamp("ms", "Europe/Berlin"))
    frame = pd.DataFrame({"t": pd.Series([0, 4000], dtype="int64[pyarrow]").astype(dtype)})
    rows = pf.Query(W.tumbling("5 s"), {"n": A.count()}, time="t").over(frame, engine=engine)
    kept = pd.ArrowDtype(pa.timestamp("us", "Europe/Berlin"))
    assert rows["start"].dtype == rows["end"].dtype == kept
    assert rows["n"].tolist() == [2]


def test_a_category_without_values(engine: str) -> None:
    frame = pd.DataFrame({"t": [1, 2], "v": pd.Series([None, None], dtype="category")})
    rows = asked("v").over(frame, engine=engine)
    assert rows["v"].dtype == rows["high"].dtype == frame["v"].dtype
    assert rows["v"].isna().all()


def test_no_rows_keep_their_dtypes(engine: str) -> None:
    for of, dtype in DTYPES.values():
        if of != "float":
            frame = pd.DataFrame({"t": [1], "v": pd.Series(VALUES[of][:1], dtype=dtype)}).head(0)
            rows = asked("v").over(frame, engine=engine)
            assert len(rows) == 0
            assert rows["v"].dtype == rows["high"].dtype == frame["v"].dtype


@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
@pytest.mark.parametrize(
    "type_", [pl.Categorical(), pl.Enum(["c", "b", "a", "never"])], ids=["Categorical", "Enum"]
)
def test_categories_of_polars(type_: pl.DataType, lazy: bool, engine: str) -> None:
    table = pa.table({"t": [1, 2, 3, 4, 9], "v": VALUES["text"]})
    frame = pl.DataFrame(table).with_columns(pl.col("v").cast(type_))
    query = pf.Query(
        W.tumbling(3), HELD | {"all": A.collect("v"), "top": A.top_k("v", 2)}, "v", "t"
    )
    rows: Any = query.over(frame.lazy() if lazy else frame, engine=engine)
    rows = rows.collect() if lazy else rows
    assert {rows.schema[name] for name in [*HELD, "v"]} == {type_}
    assert {rows.schema[name] for name in ("all", "top")} == {pl.List(type_)}
    plain = query.over(table, engine=engine)
    for name in [*HELD, "v", "all", "top"]:
        assert rows[name].to_list() == plain[name].to_pylist(), name


def test_categories_are_compared_by_their_values(engine: str) -> None:
    """An order of its own that a category has is not looked at: every engine sees the values."""
    sizes = pd.CategoricalDtype(["small", "large"], ordered=True)
    frame = pd.DataFrame({"t": [1, 2], "v": pd.Series(["small", "large"], dtype=sizes)})
    rows = pf.Query(W.tumbling(5), {"high": A.max("v")}, time="t").over(frame, engine=engine)
    assert rows["high"].tolist() == ["small"]
