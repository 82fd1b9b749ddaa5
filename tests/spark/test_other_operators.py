"""Operators of Spark with state, before and after a stream of paneflow: one watermark for all."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.spark import observed
from tests.bad_input.refusing import refused
from tests.spark.support import assert_same_set, plain, ran, read_files, rows_of, write_files

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
TYPE = pa.timestamp("us", "UTC")
COUNTS = pf.Query(W.tumbling("10 s"), {"n": A.count(), "sum": A.sum("v")}, "k", lateness="5 s")


def events(*given: tuple[int, int]) -> pa.Table:
    times = pa.array([START + t * SECOND for t, _ in given], TYPE)
    return pa.table({"k": ["a"] * len(given), "ts": times, "v": [v for _, v in given]})


UNIQUE = events((0, 1), (2, 2), (31, 3), (92, 4), (91, 6), (100, 5), (140, 9), (200, 1))
FILES = [
    pa.concat_tables([UNIQUE.slice(0, 4), events((0, 1))]),
    pa.concat_tables([UNIQUE.slice(4, 2), events((92, 4))]),
    pa.concat_tables([UNIQUE.slice(6, 1), events((140, 9))]),
    UNIQUE.slice(7),
]
"""The same events, some of them twice."""


def closed(query: pf.Query, given: pa.Table, watermark: int) -> pa.Table:
    """The oracle's rows of windows that a watermark has passed."""
    rows = plain(query.over(given, engine="oracle"))
    limit = pa.scalar(START + watermark * SECOND, TYPE)
    return rows.filter(pc.less_equal(rows["end"], limit))


@pytest.fixture
def stream(spark: Any, tmp_path: Path) -> Any:
    write_files(FILES, tmp_path / "in")
    return read_files(spark, tmp_path / "in", UNIQUE.schema)


# Before.


@pytest.mark.long
@pytest.mark.parametrize(
    "method",
    ["dropDuplicates", "dropDuplicatesWithinWatermark"],
)
def test_duplicates_dropped_before(stream: Any, tmp_path: Path, method: str) -> None:
    known = stream.withWatermark("ts", "20 seconds")
    rows = COUNTS.over(getattr(known, method)(["k", "ts", "v"]))
    query = ran(rows, tmp_path)
    assert_same_set(COUNTS, rows_of(rows, tmp_path), closed(COUNTS, UNIQUE, 180))
    assert sum(r.late for p in query.recentProgress for r in observed(p).values()) == 0


@pytest.mark.long
def test_an_aggregation_before(stream: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    window = F.window("ts", "10 seconds").alias("w")
    counted = stream.withWatermark("ts", "5 seconds").groupBy("k", window).count()
    query = pf.Query(W.tumbling("50 s"), {"n": A.sum("count")}, "k", time="e")
    rows = query.over(counted.select("k", F.window_time("w").alias("e"), "count"))
    ran(rows, tmp_path)
    # Spark's time of a window is its last microsecond.
    assert_same_set(query, rows_of(rows, tmp_path), closed(query, ends(10 * SECOND - 1), 190))


def ends(after: int) -> pa.Table:
    """How many events, with those that came twice, each ten seconds have, and their time."""
    given = pa.concat_tables(FILES)
    begin = [t // (10 * SECOND) * 10 * SECOND for t in given["ts"].cast(pa.int64()).to_pylist()]
    times = sorted(set(begin))
    return pa.table(
        {
            "k": ["a"] * len(times),
            "e": pa.array([t + after for t in times], TYPE),
            "count": [begin.count(t) for t in times],
        }
    ).filter(pc.less(pa.array(times), START + 190 * SECOND))


def test_a_watermark_that_is_too_short_or_elsewhere_is_refused(stream: Any) -> None:
    from pyspark.sql import functions as F

    known = stream.withWatermark("ts", "4 seconds")
    refused(pf.QueryError, partial(COUNTS.over, known), "5s", "4000 ms", "withWatermark")
    other = stream.withColumn("other", F.col("ts")).withWatermark("other", "1 minute")
    refused(pf.UnsupportedError, partial(COUNTS.over, other), "'ts'", "withWatermark")


# After.


@pytest.fixture
def once(spark: Any, tmp_path: Path) -> Any:
    write_files([UNIQUE.slice(0, 4), UNIQUE.slice(4, 2), UNIQUE.slice(6)], tmp_path / "once")
    return read_files(spark, tmp_path / "once", UNIQUE.schema)


@pytest.mark.long
def test_an_aggregation_after(once: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    window = F.window("end", "50 seconds").alias("w")
    sums = COUNTS.over(once).groupBy(window).agg(F.sum("n").alias("n"))
    rows = sums.select("w.start", "n")
    ran(rows, tmp_path)
    again = pf.Query(W.tumbling("50 s"), {"n": A.sum("n")}, time="end")
    expected = closed(again, closed(COUNTS, UNIQUE, 195), 195).select(["start", "n"])
    assert rows_of(rows, tmp_path).sort_by("start").to_pylist() == expected.to_pylist()


@pytest.mark.long
def test_paneflow_after(once: Any, tmp_path: Path) -> None:
    again = pf.Query(W.sliding("50 s", "10 s"), {"n": A.sum("n")}, "k", time="end")
    rows = again.over(COUNTS.over(once))
    ran(rows, tmp_path)
    expected = closed(again, closed(COUNTS, UNIQUE, 195), 195)
    assert_same_set(again, rows_of(rows, tmp_path), expected)


@pytest.mark.long
def test_an_outer_join_after(once: Any, tmp_path: Path) -> None:
    peaks = pf.Query(W.tumbling("10 s"), {"peak": A.max("v")}, "k", lateness="5 s")
    few = once.filter("v <> 9")
    columns = ["k", "end", "n", "peak"]
    joined = COUNTS.over(once).join(peaks.over(few), ["k", "end"], "leftOuter").select(columns)
    ran(joined, tmp_path)
    found = {row["end"]: row for row in closed(peaks, UNIQUE, 195).to_pylist()}
    found = {end: row for end, row in found.items() if row["peak"] != 9}
    expected = [
        {name: row[name] for name in columns[:3]} | {"peak": found.get(row["end"], {}).get("peak")}
        for row in closed(COUNTS, UNIQUE, 195).to_pylist()
    ]
    assert rows_of(joined, tmp_path).sort_by("end").to_pylist() == expected
