"""Over a finite DataFrame Spark gives the oracle's rows, and lets only slices into Python."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from examples.threshold_window import Threshold
from paneflow import aggregates as A, windows as W
from tests.properties.cases import (
    AGGREGATES,
    MERGEABLE,
    SHARED,
    WINDOWS,
    Case,
    draw_case,
    draw_table,
    seeded_aggregate,
    spread,
)
from tests.spark.support import assert_same_set, frame_of

EXHAUSTIVE = int(os.environ.get("PANEFLOW_SPARK_QUERIES", "500"))

DAYS: tuple[Callable[[random.Random], W.Window], ...] = (
    lambda r: W.tumbling(f"{r.randint(1, 4)} days", offset="1 day"),
    lambda r: W.sliding(f"{r.randint(1, 9)} days", f"{r.randint(1, 4)} days"),
    lambda r: W.session(f"{r.randint(1, 3)} days"),
    lambda r: W.slide_by_time(r.randint(1, 5), "2 days"),
    lambda r: W.slide_by_tuple("3 days", r.randint(1, 4)),
    lambda r: W.count(r.randint(1, 4)),
)


def draw(r: random.Random) -> Case:
    """A question and a table that Spark can hold, with times of every kind it has."""
    kinds: Any = r.choice([tuple(WINDOWS), MERGEABLE])
    case = draw_case(r, windows=kinds)
    time = case.table["t"]
    if pa.types.is_timestamp(time.type):
        if r.random() < 0.5:
            case = replace(case, table=with_time(case.table, time.cast(pa.timestamp("us"))))
    elif r.random() < 0.3:
        query = pf.Query(
            {f"w{k}": r.choice(DAYS)(r) for k in range(r.randint(1, 2))},
            case.query.aggregates,
            key=case.query.key,
            time="t",
        )
        days = time.cast(pa.int32()).cast(pa.date32())
        case = Case(query, with_time(case.table, days))
    return case


def with_time(table: pa.Table, time: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index("t"), "t", time)


def check(spark: Any, case: Case) -> None:
    expected = case.query.over(case.table, engine="oracle")
    rows = case.query.over(frame_of(spark, case.table))
    assert_same_set(case.query, rows.toArrow(), expected)


@pytest.mark.parametrize("seed", range(5))
def test_any_query_over_any_table(spark: Any, seed: int) -> None:
    check(spark, draw(random.Random(f"batch {seed}")))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5, 25))
def test_any_query_over_any_types(spark: Any, seed: int) -> None:
    check(spark, draw(random.Random(f"batch {seed}")))


@pytest.mark.exhaustive
def test_five_hundred_random_queries(spark: Any) -> None:
    for seed in range(EXHAUSTIVE):
        case = draw(random.Random(seed))
        try:
            check(spark, case)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {case!r}") from error
    print(f"{EXHAUSTIVE} random queries on Spark compared with the oracle")


def asked(windows: Any, *names: str) -> Case:
    """All the named aggregates of a busy table with several keys."""
    r = random.Random(0)
    aggregates = {name: seeded_aggregate(name, SHARED[0]) for name in names}
    query = pf.Query(windows, aggregates, key=["k", "h"], time="t")
    return Case(query, draw_table(r, 60, stamped=True))


NATIVE = (
    "count",
    "sum",
    "min",
    "max",
    "mean",
    "var",
    "std",
    "var_pop",
    "std_pop",
    "geometric_mean",
    "product",
    "first",
    "last",
    "arg_min",
    "arg_max",
    "collect",
    "concat",
    "linear_regression",
)
IN_PARCELS = (
    "exact_sum",
    "median",
    "quantile",
    "quantiles",
    "mode",
    "distinct",
    "top_k",
    "bloom_filter",
    "moment_sketch",
    "approx_distinct",
    "approx_quantile",
    "define_commutative",
)
SLICED = {"long": W.sliding("11 s", "2 s", offset="1 us"), "short": W.tumbling("3 s")}


def test_every_aggregate_is_tried_in_one_of_the_three_ways() -> None:
    assert {*NATIVE, *IN_PARCELS, "apply", "define_ordered"} == set(AGGREGATES)


def test_aggregates_that_spark_folds_itself(spark: Any) -> None:
    check(spark, asked(SLICED, *NATIVE))


@pytest.mark.parametrize("windows", [SLICED, SLICED | {"rest": W.session("2 s")}], ids=list)
def test_aggregates_that_are_folded_in_python(spark: Any, windows: Any) -> None:
    check(spark, asked(windows, *IN_PARCELS))


def test_aggregates_and_windows_that_need_every_event(spark: Any) -> None:
    windows = {
        "count": W.count(5, 3, partial=True),
        "by_tuple": W.slide_by_tuple("6 s", 4),
        "by_time": W.slide_by_time(3, "4 s"),
        "delta": W.delta("grows", 8, 3),
        "punctuation": W.punctuation("b"),
        "threshold": Threshold("x", 0.0),
        "rest": W.session("2 s"),
        "sliding": W.sliding("6 s", "2 s"),
    }
    check(spark, asked(windows, "define_ordered", "median", "collect", "max"))


def test_functions_of_whole_windows(spark: Any) -> None:
    case = asked(SLICED, "count")
    query = pf.Query(SLICED, {"spread": A.apply(spread, "x"), "n": A.count()}, key="k", time="t")
    check(spark, replace(case, query=query))


@pytest.mark.parametrize("overlap", [1, 60])
def test_one_key_over_many_blocks_of_time(spark: Any, overlap: int) -> None:
    rng = np.random.default_rng(overlap)
    n = 3000
    table = pa.table(
        {
            "k": pa.array(np.where(rng.random(n) < 0.9, "hot", "cold")),
            "t": rng.integers(-30_000, 30_000, n),
            "i": rng.integers(-9, 9, n),
        }
    )
    query = pf.Query(
        W.sliding(60, 60 // overlap),
        {"most": A.max("i"), "sum": A.sum("i"), "first": A.first("i")},
        key="k",
        time="t",
    )
    rows = query.over(frame_of(spark, table))
    assert_same_set(query, rows.toArrow(), query.over(table))


# Spark's own windows.


def readings(n: int = 4000) -> pa.Table:
    """Readings of some keys within 200 seconds, 7 of them without a key."""
    rng = np.random.default_rng(5)
    keys = np.array([f"k{k}" for k in rng.integers(0, 4, n)])
    start = 1_700_000_000_000_000
    return pa.table(
        {
            "k": pa.array(keys, mask=np.arange(n) < 7),
            "ts": pa.array(start + rng.integers(0, 200_000_000, n), pa.timestamp("us", "UTC")),
            "v": pa.array(rng.integers(-100, 100, n), mask=rng.random(n) < 0.1),
        }
    )


def sparks_own(frame: Any, window: Any) -> list[tuple[Any, ...]]:
    from pyspark.sql import functions as F

    total = [F.sum("v").alias("sum"), F.max("v").alias("most"), F.count("*").alias("n")]
    rows = frame.groupBy("k", window.alias("w")).agg(*total)
    return sorted_rows(rows.select("k", "w.start", "w.end", "sum", "most", "n"))


def sorted_rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.mark.parametrize("slide", [3, 5, 10])
def test_sparks_window_gives_the_same_rows(spark: Any, slide: int) -> None:
    from pyspark.sql import functions as F

    frame = frame_of(spark, readings())
    query = pf.Query(
        W.sliding("10 s", f"{slide} s"),
        {"sum": A.sum("v"), "most": A.max("v"), "n": A.count()},
        key="k",
    )
    mine = query.over(frame).select("k", "start", "end", "sum", "most", "n")
    assert sorted_rows(mine) == sparks_own(frame, F.window("ts", "10 seconds", f"{slide} seconds"))


def test_sparks_session_window_gives_the_same_rows(spark: Any) -> None:
    from pyspark.sql import functions as F

    frame = frame_of(spark, readings())
    query = pf.Query(
        W.session("150 ms"), {"sum": A.sum("v"), "most": A.max("v"), "n": A.count()}, key="k"
    )
    mine = query.over(frame).select("k", "start", "end", "sum", "most", "n")
    theirs = sparks_own(frame, F.session_window("ts", "150 milliseconds"))
    assert len(theirs) > 500
    assert sorted_rows(mine) == theirs


# What crosses into Python.


@dataclass(frozen=True)
class Counted:
    """A function of Arrow batches that tells how many rows it was given."""

    function: Any
    rows: Any

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        def seen() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                self.rows.add(batch.num_rows)
                yield batch

        yield from self.function(seen())


@pytest.fixture
def crossings(spark: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """For each step in Python that a query takes, the number of rows it is given."""
    counts: list[Any] = []
    kind = type(spark.range(1))
    original = kind.mapInArrow

    def counting(frame: Any, function: Any, *rest: Any, **options: Any) -> Any:
        counts.append(spark.sparkContext.accumulator(0))
        return original(frame, Counted(function, counts[-1]), *rest, **options)

    monkeypatch.setattr(kind, "mapInArrow", counting)
    return counts


def test_slices_cross_into_python_and_events_do_not(spark: Any, crossings: list[Any]) -> None:
    events, keys, seconds = 40_000, 5, 100
    frame = spark.range(events).selectExpr(
        f"id % {keys} AS k", f"timestamp_seconds(id % {seconds}) AS ts", "id AS v"
    )
    query = pf.Query(
        W.sliding("60 s", "1 s"), {"most": A.max("v"), "mean": A.mean("v"), "n": A.count()}, "k"
    )
    assert query.over(frame).count() > 0
    pairs = frame.select("k", "ts").distinct().count()
    # All slices, and all windows that need them, lie in one block of eight ranges.
    assert [c.value for c in crossings] == [pairs]
    assert pairs * 50 < events


def test_overlapping_blocks_repeat_few_slices(spark: Any, crossings: list[Any]) -> None:
    events = 30_000
    frame = spark.range(events).selectExpr("id AS t", "id AS v")
    query = pf.Query(W.sliding(60, 10), {"most": A.max("v")}, time="t")
    assert query.over(frame).count() == events // 10 + 5
    slices = events // 10
    (crossed,) = crossings
    assert slices <= crossed.value <= slices * 1.2


def test_shuffled_parcels_are_few(spark: Any, crossings: list[Any]) -> None:
    frame = spark.range(20_000, numPartitions=2).selectExpr("id % 7 AS k", "id AS t", "id AS v")
    query = pf.Query(W.tumbling(1000), {"middle": A.median("v")}, "k", time="t")
    assert query.over(frame).count() == 7 * 20
    before, behind = (c.value for c in crossings)
    assert before == 20_000
    assert behind <= 2 * 64
