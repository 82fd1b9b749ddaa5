"""Tables that are none, and columns that are missing, odd, or there twice."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from tests.bad_input.refusing import COUNT, TABLE, over, refused


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
    explained = [query.explain] if table is not None else []  # which needs no table
    for ask in (query.over, query.slice, *explained):
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
