"""Results from SQL: views of a result, finite or streaming."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
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
TIMES = pa.array([START + t * SECOND for t in (0, 2, 31, 92, 100)], pa.timestamp("us", "UTC"))
EVENTS = pa.table({"k": ["a", "b", "a", "b", "a"], "ts": TIMES, "v": [1.0, 2.0, 3.0, 4.0, 5.0]})
QUERY = pf.Query(W.sliding("10 s", "5 s"), {"peak": A.max("v"), "n": A.count()}, "k")
VIEW = "paneflow_windows"


@pytest.fixture
def no_view(spark: Any) -> Iterator[None]:
    yield
    spark.catalog.dropTempView(VIEW)


def test_a_view_of_a_result(spark: Any, no_view: None) -> None:
    QUERY.over(frame_of(spark, EVENTS)).createOrReplaceTempView(VIEW)
    rows = spark.sql(f"SELECT * FROM {VIEW} WHERE peak > 2 AND window LIKE 'sliding%'").toArrow()
    expected = plain(QUERY.over(EVENTS, engine="oracle"))
    assert_same_set(QUERY, rows, expected.filter(pc.greater(expected["peak"], 2.0)))
    (total,) = spark.sql(f"SELECT sum(n) AS n FROM {VIEW} GROUP BY k HAVING k = 'a'").collect()
    assert total.n == 6


def test_a_view_of_a_stream(spark: Any, tmp_path: Path, no_view: None) -> None:
    write_files([EVENTS], tmp_path / "in")
    frame = read_files(spark, tmp_path / "in", EVENTS.schema)
    QUERY.over(frame).createOrReplaceTempView(VIEW)
    rows = spark.sql(f"SELECT * FROM {VIEW} WHERE peak > 2")
    ran(rows, tmp_path)
    expected = plain(QUERY.over(EVENTS, engine="oracle"))
    final = pc.less_equal(expected["end"], TIMES[-1])
    wanted = pc.and_(final, pc.greater(expected["peak"], 2.0))
    assert_same_set(QUERY, rows_of(rows, tmp_path), expected.filter(wanted))
