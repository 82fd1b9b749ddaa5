"""Decimals and booleans on Spark: whatever Spark computes itself, and whatever Python does."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from tests.spark.support import assert_same_set, frame_of, plain, read_files, write_files

SECOND = 1_000_000
NATIVE: dict[str, A.Aggregate] = {
    "n": A.count("v"),
    "sum": A.sum("v"),
    "mean": A.mean("v"),
    "low": A.min("v"),
    "product": A.product("v"),
    "true": A.sum("b"),
    "share": A.mean("b"),
}
"""What Spark computes alone over tumbling windows."""
PICKED: dict[str, A.Aggregate] = {
    "high": A.max("v"),
    "first": A.first("v"),
    "at": A.arg_max("v", by="b"),
    "all": A.collect("v"),
    "spread": A.std("b"),
}
"""What Spark makes slices of."""
FOLDED: dict[str, A.Aggregate] = {
    "sum": A.sum("v"),
    "var": A.var("v"),
    "median": A.median("v"),
    "top": A.top_k("v", 2),
    "mode": A.mode("v"),
}
"""What Python makes slices of."""


def events(type_: pa.DataType, n: int = 60) -> pa.Table:
    r = random.Random(str(type_))
    most = min(10**type_.precision, 2**63) - 1
    digits = [r.choice([most, -most, 2**53 + 1, 7, 0]) % (most + 1) for _ in range(n)]
    values = [None if r.random() < 0.2 else Decimal(d).scaleb(-type_.scale) for d in digits]
    return pa.table(
        {
            "t": pa.array([SECOND * i for i in range(n)], pa.timestamp("us", "UTC")),
            "k": [r.choice("ab") for _ in range(n)],
            "v": pa.array(values, type_),
            "b": pa.array([r.choice([True, False, None]) for _ in range(n)], pa.bool_()),
        }
    )


@pytest.mark.parametrize(
    "type_",
    [pa.decimal128(9, 2), pytest.param(pa.decimal128(38, 6), marks=pytest.mark.long)],
    ids=str,
)
@pytest.mark.parametrize(
    ("window", "aggregates"),
    [
        (W.tumbling("10 s"), NATIVE),
        (W.sliding("20 s", "5 s"), PICKED),
        (W.sliding("20 s", "5 s"), FOLDED),
        (W.session("3 s"), NATIVE | FOLDED),
    ],
    ids=["rows", "slices", "parcels", "sessions"],
)
def test_finite_frames(
    spark: Any, window: W.Window, aggregates: dict[str, A.Aggregate], type_: pa.DataType
) -> None:
    table = events(type_)
    query = pf.Query(window, aggregates, key="k", time="t")
    rows = query.over(frame_of(spark, table)).toArrow()
    assert_same_set(query, rows, query.over(table, engine="oracle"))


def test_streams_into_files(spark: Any, tmp_path: Path) -> None:
    table = events(pa.decimal128(18, 4))
    end = table.slice(0, 1).set_column(0, "t", pa.array([3600 * SECOND], table["t"].type))
    aggregates = NATIVE | PICKED | FOLDED
    query = pf.Query(W.sliding("20 s", "5 s"), aggregates, key="k", time="t")
    write_files([table.slice(0, 25), table.slice(25), end], tmp_path / "in")
    frame = read_files(spark, tmp_path / "in", table.schema)
    query.write_stream(
        frame, tmp_path / "out", tmp_path / "checkpoint", availableNow=True
    ).awaitTermination()
    assert_same_set(query, pq.read_table(tmp_path / "out"), plain(query.over(table)))
