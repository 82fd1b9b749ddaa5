"""Times with and without a zone, in sessions whose zone is not UTC: the same rows everywhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.spark import progress
from tests.spark.support import (
    assert_same_set,
    frame_of,
    plain,
    ran,
    read_files,
    rows_of,
    write_files,
)

SECOND = 1_000_000
GAP = 1_710_037_800 * SECOND
"""2024-03-10 02:30: no clock in New York has shown it, and without a zone it is just a time."""
TWICE = 1_730_597_400 * SECOND
"""2024-11-03 01:30: clocks in New York have shown it twice."""
TIMES = [GAP, GAP + 4 * SECOND + 1, GAP + 11 * SECOND, TWICE, TWICE + 3600 * SECOND]
ZONES = ["America/New_York", "Etc/UTC"]
AGGREGATES = {"n": A.count(), "last": A.arg_max("ts", "v"), "latest": A.max("ts")}


@pytest.fixture(params=ZONES)
def zoned(spark: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The session, in another zone."""
    name = "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    spark.conf.set(name, request.param)
    yield spark
    spark.conf.set(name, before)


def events(zone: str | None, times: list[int]) -> pa.Table:
    stamps = pa.array(times, pa.int64()).cast(pa.timestamp("us", zone))
    return pa.table({"k": ["a"] * len(times), "ts": stamps, "v": range(len(times))})


def in_utc(rows: pa.Table) -> pa.Table:
    """The same instants: Spark marks them with the zone of the session."""
    fields = []
    for field in rows.schema:
        stamped = pa.types.is_timestamp(field.type) and field.type.tz is not None
        fields.append(field.with_type(pa.timestamp("us", "UTC")) if stamped else field)
    return rows.cast(pa.schema(fields))


@pytest.mark.parametrize("zone", ["UTC", None])
@pytest.mark.parametrize(
    "window",
    [
        W.tumbling("10 s"),
        W.sliding("10 s", "5 s"),
        W.session("5 s"),
        W.slide_by_tuple("5 s", 1),
        W.count(2),
    ],
    ids=str,
)
def test_finite_frames(zoned: Any, window: W.Window, zone: str | None) -> None:
    given = events(zone, TIMES)
    query = pf.Query(window, AGGREGATES, "k")
    rows = query.over(frame_of(zoned, given)).toArrow()
    assert_same_set(query, in_utc(rows), query.over(given, engine="oracle"))


@pytest.mark.parametrize("zone", [pytest.param("UTC", marks=pytest.mark.long), None])
@pytest.mark.parametrize(
    "zoned", [ZONES[0], pytest.param(ZONES[1], marks=pytest.mark.long)], indirect=True
)
def test_streams(zoned: Any, tmp_path: Path, zone: str | None) -> None:
    given = events(zone, TIMES)
    query = pf.Query(W.sliding("10 s", "5 s"), AGGREGATES, "k")
    write_files([given.slice(0, 2), given.slice(2)], tmp_path / "in")
    frame = read_files(zoned, tmp_path / "in", given.schema)
    rows = query.over(frame)
    ran(rows, tmp_path)
    into = query.write_stream(frame, tmp_path / "sink", tmp_path / "c", availableNow=True)
    into.awaitTermination()
    latest = pa.scalar(max(TIMES), pa.int64()).cast(given["ts"].type)
    expected = plain(query.over(given, engine="oracle"))
    expected = expected.filter(pc.less_equal(expected["end"], latest))
    assert_same_set(query, in_utc(rows_of(rows, tmp_path)), expected)
    assert_same_set(query, pq.read_table(tmp_path / "sink"), expected)


def test_what_is_ahead_of_the_clock_without_a_zone(zoned: Any, tmp_path: Path) -> None:
    now = int(time.time()) * SECOND
    given = events(None, [now - 60 * SECOND, now - 30 * SECOND, now + 7200 * SECOND])
    query = pf.Query(W.tumbling("10 s"), {"n": A.count()})
    write_files([given], tmp_path / "in")
    frame = read_files(zoned, tmp_path / "in", given.schema)
    query.write_stream(
        frame, tmp_path / "sink", tmp_path / "c", max_ahead="1 h", availableNow=True
    ).awaitTermination()
    assert progress(tmp_path / "c").dropped == 1
