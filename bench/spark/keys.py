"""Batch DataFrames by their keys: few, many, very many, and skewed; against peers.

The query: the largest value of the last ten minutes, every minute, for every key. Spark's
`window()` copies a row ten times for it. polars and DuckDB are asked in the way that was fastest,
over in-memory tables of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
from pyspark.sql import functions as F

import paneflow as pf
from bench.report import Sheet, console
from bench.spark.setting import best, events, frame
from paneflow import aggregates as A, windows as W

MILLION = 1_000_000
SLIDE, OVERLAP, SPAN = 60, 10, 3600
SETTINGS: tuple[tuple[str, int, float | None], ...] = (
    ("100", 100, None),
    ("10,000", 10_000, None),
    ("100,000", 100_000, None),
    ("10,000 by Zipf's law", 10_000, 1.2),
)


def question() -> pf.Query:
    """Ten minutes sliding by a minute."""
    window = W.sliding(f"{SLIDE * OVERLAP} s", f"{SLIDE} s")
    return pf.Query(window, {"peak": A.max("v")}, key="key", time="ts")


def spark_window(data: Any) -> Any:
    """The same with Spark's own function."""
    window = F.window("ts", f"{SLIDE * OVERLAP} seconds", f"{SLIDE} seconds")
    return data.groupBy("key", window).agg(F.max("v").alias("peak"))


def by_polars(table: pa.Table) -> Callable[[], int]:
    """The same with polars: first one row per minute and key."""
    given = pl.from_arrow(table)
    assert isinstance(given, pl.DataFrame)

    def run() -> int:
        minute = pl.col("ts").dt.truncate(f"{SLIDE}s")
        minutes = given.group_by("key", minute).agg(pl.col("v").max()).sort("key", "ts")
        rows = minutes.group_by_dynamic(
            "ts",
            every=f"{SLIDE}s",
            period=f"{SLIDE * OVERLAP}s",
            offset=f"-{SLIDE * (OVERLAP - 1)}s",
            closed="left",
            group_by="key",
        ).agg(pl.col("v").max())
        return rows.height

    return run


def by_duckdb(table: pa.Table) -> Callable[[], int]:
    """The same with DuckDB: one row per minute and key, which is then in ten windows."""
    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order = false")
    connection.register("given", table)
    connection.execute("CREATE TABLE events AS SELECT * FROM given")
    connection.unregister("given")
    text = f"""
        WITH minutes AS (
            SELECT key, time_bucket(INTERVAL {SLIDE} SECOND, ts) AS s, max(v) AS peak
            FROM events GROUP BY ALL
        )
        SELECT key, s - to_seconds({SLIDE} * back) AS start, max(peak) AS peak
        FROM minutes, range({OVERLAP}) AS every(back) GROUP BY key, start
    """
    return lambda: connection.sql(text).to_arrow_table().num_rows


def in_memory(table: pa.Table) -> Callable[[], int]:
    """The same with paneflow's table engine."""
    return lambda: question().over(table).num_rows


def best_call(call: Callable[[], int], rounds: int) -> tuple[float, int]:
    """The best time of a call, after a first one that does not count, and its rows."""
    rows = call()
    taken = []
    for _ in range(rounds):
        before = time.perf_counter()
        call()
        taken.append(time.perf_counter() - before)
    return min(taken), rows


def run(spark: Any, folder: Path, quick: bool) -> list[Sheet]:
    """Every setting, with every contestant."""
    count, rounds = (MILLION // 10, 1) if quick else (2 * MILLION, 3)
    cells = []
    for name, keys, zipf in SETTINGS:
        table = events(count, keys, SPAN, zipf=zipf)
        data = frame(spark, folder, table, f"keys-{keys}-{zipf}")
        answers = {"paneflow": question().over(data), "window": spark_window(data)}
        taken = best(answers, rounds)
        rows = answers["paneflow"].count()
        peers = [best_call(by(table), rounds) for by in (in_memory, by_polars, by_duckdb)]
        for _, given in peers:
            if given != rows:
                raise SystemExit(f"{name} keys: {given} rows and {rows} of the same question")
        data.unpersist()
        seconds = [taken["paneflow"], taken["window"], *(best_ for best_, _ in peers)]
        cells.append([name, f"{rows:,}", *(f"{s:.2f}" for s in seconds)])
        console.log(f"{name} keys: {cells[-1][1:]}")
    headings = (
        "keys",
        "rows given",
        "paneflow on Spark, s",
        "window(), s",
        "paneflow, one process, s",
        "polars, s",
        "DuckDB, s",
    )
    sheet = Sheet(f"max in 600 s by 60 s over {count:,} rows", headings, [cells])
    sheet.show()
    return [sheet]
