"""On Spark, too: integers at the ends of their types, zeros without a sign, times too far away."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from tests.properties.test_extremes_of_types import AGGREGATES, INTEGERS, WINDOWS, integers
from tests.spark.support import assert_same_set, frame_of

SIGNED = [name for name in INTEGERS if name.startswith("int")]
LARGEST = 2**63 - 1


both_windows = pytest.mark.parametrize(
    "window",
    [pytest.param(W.tumbling(10), marks=pytest.mark.long), W.sliding(10, 5)],
    ids=str,
)


@pytest.mark.parametrize("kind", ["tumbling", "long", "delta"])
def test_integers_at_the_ends_of_their_types(spark: Any, kind: str) -> None:
    r = random.Random(kind)
    type_ = INTEGERS[r.choice(SIGNED)]
    n = 20
    grows = sorted(x for x in integers(r, type_, n) if x is not None)
    table = pa.table(
        {
            "t": sorted(r.randint(-20, 20) for _ in range(n)),
            "k": pa.array(integers(r, type_, n, 0.2), type_),
            "v": pa.array(integers(r, type_, n, 0.2), type_),
            "w": pa.array(integers(r, type_, n, 0.2), type_),
            "grows": pa.array(grows, type_),
        }
    )
    wanted = {name: made(r) for name, made in AGGREGATES.items() if "sum" not in name}
    query = pf.Query(WINDOWS[kind](r), wanted, key="k", time="t")
    expected = query.over(table, engine="oracle")
    assert_same_set(query, query.over(frame_of(spark, table)).toArrow(), expected)


@both_windows
def test_a_sum_that_is_too_large_only_in_between_is_none(spark: Any, window: W.Window) -> None:
    table = pa.table({"t": [0, 1, 2, 3], "v": [LARGEST, LARGEST, -LARGEST, -5]})
    query = pf.Query(window, {"sum": A.sum("v"), "mean": A.mean("v")}, time="t")
    assert_same_set(
        query, query.over(frame_of(spark, table)).toArrow(), query.over(table, engine="oracle")
    )


@both_windows
def test_a_sum_beyond_int64_stops_the_job(spark: Any, window: W.Window) -> None:
    from pyspark.errors import PySparkException

    frame = frame_of(spark, pa.table({"t": [0, 1], "v": [LARGEST, 1]}))
    with pytest.raises(PySparkException, match="fit into int64"):
        pf.Query(window, {"sum": A.sum("v")}, time="t").over(frame).collect()


@both_windows
def test_zeros_come_out_without_a_sign(spark: Any, window: W.Window) -> None:
    table = pa.table({"t": [0, 1, 10, 11], "v": [-0.0, 0.0, 0.0, -0.0]})
    wanted = {"low": A.min("v"), "high": A.max("v"), "mode": A.mode("v"), "mid": A.median("v")}
    for aggregates in (wanted, {name: wanted[name] for name in ("low", "high")}):
        rows = pf.Query(window, aggregates, time="t").over(frame_of(spark, table)).toArrow()
        for name in aggregates:
            assert {math.copysign(1.0, value) for value in rows[name].to_pylist()} == {1.0}


@pytest.mark.parametrize("t", [2**61 + 1, pytest.param(-LARGEST, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "window", [W.tumbling(10), W.sliding(10, 5), W.session(3), W.count(1)], ids=str
)
def test_times_too_far_away_stop_the_job(spark: Any, window: W.Window, t: int) -> None:
    from pyspark.errors import PySparkException

    frame = frame_of(spark, pa.table({"t": [0, t], "v": [1, 2]}))
    with pytest.raises(PySparkException, match="too far from zero"):
        pf.Query(window, {"most": A.max("v")}, time="t").over(frame).collect()
