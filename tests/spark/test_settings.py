"""Rows do not depend on the settings of a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.spark.session import FOR_STATE
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
START = 1_700_000_000 * SECOND
TIMES = [START + t * SECOND for t in (0, 2, 3, 31, 60, 61)]
EVENTS = pa.table(
    {
        "k": ["a", "b", "a", "b", None, "b"],
        "ts": pa.array(TIMES, pa.timestamp("us", "UTC")),
        "i": [2**62, 1, 2**62, 3, -(2**62), 4],
        "v": [1.0, 2.0, 3.0, None, 5.0, 6.0],
    }
)
PEAKS = {"n": A.count(), "peak": A.max("v"), "first": A.first("k"), "i": A.min("i")}
QUERIES = {
    "Spark alone": pf.Query(W.tumbling("10 s"), PEAKS, "k"),
    "native slices": pf.Query(W.sliding("10 s", "5 s"), PEAKS | {"all": A.collect("i")}, "k"),
    "parcels of slices": pf.Query(W.session("5 s"), {"middle": A.median("v")}, "k"),
    "parcels of events": pf.Query(W.slide_by_tuple("5 s", 1), PEAKS, "k"),
    "positions": pf.Query(W.count(2), PEAKS, "k"),
}
SETTINGS = [
    ("spark.sql.adaptive.enabled", "false"),
    ("spark.sql.ansi.enabled", "false"),
    ("spark.sql.execution.arrow.maxBytesPerBatch", "200"),
    ("spark.sql.execution.arrow.maxRecordsPerBatch", "1"),
    ("spark.sql.execution.arrow.pyspark.enabled", "false"),
    ("spark.sql.execution.arrow.useLargeVarTypes", "true"),
    ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
    ("spark.sql.shuffle.partitions", "7"),
    ("spark.sql.timestampType", "TIMESTAMP_NTZ"),
]
WEIGHTY = (
    "spark.sql.ansi.enabled",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.timestampType",
)
"""Settings that change what Spark's operators do, or what Python is given."""
OF_STATE = [
    *((name, "false") for name, value in FOR_STATE.items() if value == "true"),
    ("spark.sql.streaming.stateStore.encodingFormat", "avro"),
]


def with_short_text(rows: pa.Table) -> pa.Table:
    """Rows without Arrow's types for large text, which a user may ask Spark for."""
    large = [pa.types.is_large_string(field.type) for field in rows.schema]
    fields = [
        field.with_type(pa.string()) if long else field
        for field, long in zip(rows.schema, large, strict=True)
    ]
    return rows.cast(pa.schema(fields))


@pytest.fixture
def set_so(spark: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The session, with another setting."""
    name, value = request.param
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    yield spark
    if before is None:
        spark.conf.unset(name)
    else:
        spark.conf.set(name, before)


@pytest.mark.parametrize(
    "set_so",
    [s if s[0] in WEIGHTY else pytest.param(s, marks=pytest.mark.long) for s in SETTINGS],
    indirect=True,
    ids=lambda s: s[0],
)
def test_finite_frames(set_so: Any) -> None:
    frame = frame_of(set_so, EVENTS)
    for query in QUERIES.values():
        expected = query.over(EVENTS, engine="oracle")
        assert_same_set(query, with_short_text(query.over(frame).toArrow()), expected)


@pytest.mark.long
@pytest.mark.parametrize("set_so", SETTINGS + OF_STATE, indirect=True, ids=lambda s: s[0])
def test_streams(set_so: Any, tmp_path: Path) -> None:
    query = QUERIES["native slices"]
    write_files([EVENTS.slice(0, 3), EVENTS.slice(3)], tmp_path / "in")
    frame = read_files(set_so, tmp_path / "in", EVENTS.schema)
    rows = query.over(frame)
    ran(rows, tmp_path)
    into = query.write_stream(frame, tmp_path / "sink", tmp_path / "c", availableNow=True)
    into.awaitTermination()
    expected = plain(query.over(EVENTS, engine="oracle"))
    latest = pa.scalar(max(TIMES), pa.int64()).cast(EVENTS["ts"].type)
    expected = expected.filter(pc.less_equal(expected["end"], latest))
    assert_same_set(query, with_short_text(rows_of(rows, tmp_path)), expected)
    assert_same_set(query, pq.read_table(tmp_path / "sink"), expected)
