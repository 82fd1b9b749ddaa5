"""The contestants: each states the same query in its own way.

The query: for every key, every window of `overlap` seconds that starts at a full second and holds
an event, with its largest value, its mean and its number of events. `rows` tells if a contestant
answers only a part of it. Each contestant gets the table in its own form before the clock starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

import paneflow as pf
from bench.data import SPAN
from paneflow import aggregates as A, windows as W

ALL = "all"
WITH_EVENTS = "only windows whose last second has an event"


@dataclass(frozen=True)
class Contestant:
    """A way to answer; `prepare` is not timed, `run` is."""

    name: str
    prepare: Callable[[pa.Table], Any]
    run: Callable[[Any, int], Any]
    arrow: Callable[[Any], pa.Table]
    """A result as Arrow: key, start, peak, mean, events, in any order and with other columns."""
    rows: str = ALL
    overlaps: Callable[[int], bool] = lambda overlap: True


def _paneflow(table: pa.Table, overlap: int) -> pa.Table:
    query = pf.Query(
        W.sliding(f"{overlap} s", "1 s"),
        {"peak": A.max("v"), "mean": A.mean("v"), "events": A.count()},
        key="key",
        time="ts",
    )
    rows: pa.Table = query.over(table)
    return rows


def _sorted_by_time(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(pl.col("ts").set_sorted())


PEAK = pl.col("v").max().alias("peak")
MEAN = pl.col("v").mean().alias("mean")
EVENTS = pl.len().alias("events")


def _windows(overlap: int) -> dict[str, Any]:
    # Without the offset polars would start with the window at the first event, and leave out
    # the earlier windows that contain it.
    return {
        "every": "1s",
        "period": f"{overlap}s",
        "offset": f"-{overlap - 1}s",
        "closed": "left",
        "group_by": "key",
    }


def _polars(frame: pl.DataFrame, overlap: int) -> pl.DataFrame:
    return frame.group_by_dynamic("ts", **_windows(overlap)).agg(PEAK, MEAN, EVENTS)


def _polars_sorted(frame: pl.DataFrame, overlap: int) -> pl.DataFrame:
    return _polars(frame.sort("key", maintain_order=True), overlap)


def _polars_seconds(frame: pl.DataFrame, overlap: int) -> pl.DataFrame:
    """Slicing by hand: one row per second and key, then windows over these rows."""
    by = ["key", pl.col("ts").dt.truncate("1s")]
    if overlap == 1:
        return frame.group_by(by).agg(PEAK, MEAN, EVENTS)
    total = pl.col("v").sum().alias("total")
    seconds = frame.group_by(by).agg(PEAK, total, EVENTS).sort("key", "ts")
    mean = (pl.col("total").sum() / pl.col("events").sum()).alias("mean")
    return seconds.group_by_dynamic("ts", **_windows(overlap)).agg(
        pl.col("peak").max(), mean, pl.col("events").sum()
    )


def _frame_as_arrow(frame: pl.DataFrame) -> pa.Table:
    return frame.rename({"ts": "start"}).to_arrow()


@dataclass(frozen=True)
class Loaded:
    """Events in a DuckDB table, and how many keys they have."""

    connection: duckdb.DuckDBPyConnection
    events: int
    keys: int


def _load(table: pa.Table) -> Loaded:
    connection = duckdb.connect()
    # The rows need not be in the order of the table.
    connection.execute("SET preserve_insertion_order = false")
    connection.register("given", table)
    connection.execute("CREATE TABLE events AS SELECT * FROM given")
    connection.unregister("given")
    return Loaded(connection, table.num_rows, len(table.column("key").unique()))


SECONDS = """
    SELECT key, time_bucket(INTERVAL 1 SECOND, ts) AS s,
        max(v) AS peak, sum(v) AS total, count(*) AS events
    FROM events GROUP BY ALL
"""
MERGED = """
    max(peak) {over} AS peak, sum(total) {over} / sum(events) {over} AS mean,
    (sum(events) {over})::BIGINT AS events
"""
MERGED_OVER = MERGED.format(over="OVER range_of")
MERGED_ROWS = MERGED.format(over="")


def _duckdb(loaded: Loaded, overlap: int) -> pa.Table:
    if overlap == 1:
        text = """
            SELECT key, time_bucket(INTERVAL 1 SECOND, ts) AS start,
                max(v) AS peak, avg(v) AS mean, count(*) AS events
            FROM events GROUP BY ALL
        """
    else:
        text = f"""
            WITH seconds AS ({SECONDS})
            SELECT key, s - INTERVAL {overlap - 1} SECOND AS start, {MERGED_OVER} FROM seconds
            WINDOW range_of AS (
                PARTITION BY key ORDER BY s
                RANGE BETWEEN INTERVAL {overlap - 1} SECOND PRECEDING AND CURRENT ROW
            )
        """
    return loaded.connection.sql(text).to_arrow_table()


DENSE = 4
"""With so many times more pairs of second and window than places in the series, it is cheaper to
fill the series. Both ways took as long around here."""


def _duckdb_all(loaded: Loaded, overlap: int) -> pa.Table:
    """Also emits windows that end at a second without an event, in one of two ways."""
    pairs = min(loaded.events, loaded.keys * SPAN) * overlap
    if pairs < DENSE * loaded.keys * (SPAN + overlap):
        text = f"""
            WITH seconds AS ({SECONDS})
            SELECT key, s - to_seconds(back) AS start, {MERGED_ROWS}
            FROM seconds, range({overlap}) AS every(back) GROUP BY key, start
        """
    else:
        text = f"""
            WITH seconds AS ({SECONDS}),
            series AS (
                SELECT unnest(generate_series(
                    min(s), max(s) + INTERVAL {overlap - 1} SECOND, INTERVAL 1 SECOND)) AS s
                FROM seconds
            ),
            places AS (SELECT key, s FROM (SELECT DISTINCT key FROM events), series),
            filled AS (SELECT * FROM places LEFT JOIN seconds USING (key, s)),
            merged AS (
                SELECT key, s - INTERVAL {overlap - 1} SECOND AS start, {MERGED_OVER} FROM filled
                WINDOW range_of AS (
                    PARTITION BY key ORDER BY s
                    ROWS BETWEEN {overlap - 1} PRECEDING AND CURRENT ROW
                )
            )
            SELECT * FROM merged WHERE events > 0
        """
    return loaded.connection.sql(text).to_arrow_table()


def _same(given: pa.Table) -> pa.Table:
    return given


def _overlapping(overlap: int) -> bool:
    return overlap > 1


_polars_like = partial(Contestant, prepare=_sorted_by_time, arrow=_frame_as_arrow)
_duckdb_like = partial(Contestant, prepare=_load, arrow=_same)

CONTESTANTS = {
    contestant.name: contestant
    for contestant in (
        Contestant("paneflow", _same, _paneflow, _same),
        _polars_like("polars", run=_polars),
        _polars_like("polars, keys sorted", run=_polars_sorted),
        _polars_like("polars, seconds first", run=_polars_seconds),
        _duckdb_like("duckdb", run=_duckdb, rows=WITH_EVENTS),
        _duckdb_like("duckdb, all rows", run=_duckdb_all, overlaps=_overlapping),
    )
}
