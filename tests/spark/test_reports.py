"""What a stream of `query.over` reports of each batch: rows, what was left out, and its state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.spark import observed
from tests.spark.support import ran, read_files, rows_of, write_files

SECOND = 1_000_000
START = 1_700_000_000 * SECOND


def events(*times: int | None) -> pa.Table:
    """An event of each of two keys at so many seconds."""
    at = [None if t is None else START + t * SECOND for t in times]
    stamps = pa.array([*at, *at], pa.timestamp("us", "UTC"))
    return pa.table({"k": ["a"] * len(at) + ["b"] * len(at), "ts": stamps})


PARTS = [events(0, 1, 11), events(None, 12, 25), events(100)]
"""The watermark of a batch is the latest time of the one before: none, 11, 25, at last 100."""


@pytest.mark.parametrize(
    ("window", "held"),
    [
        (W.tumbling("10 s"), [4, 6, 4, 2]),
        pytest.param(W.count(2), [6, 6, 4, 0], marks=pytest.mark.long),
    ],
    ids=str,
)
def test_every_batch_reports_rows_and_state(
    spark: Any, tmp_path: Path, window: W.Window, held: list[int]
) -> None:
    write_files(PARTS, tmp_path / "in")
    frame = read_files(spark, tmp_path / "in", PARTS[0].schema)
    rows = pf.Query(window, {"n": A.count()}, "k").over(frame)
    query = ran(rows, tmp_path)
    (reports,) = zip(*(observed(p).values() for p in query.recentProgress), strict=True)
    assert sum(report.rows for report in reports) == rows_of(rows, tmp_path).num_rows > 0
    assert [report.dropped for report in reports] == [0, 2, 0, 0]
    assert [report.held for report in reports] == held
    assert all(bool(report.held_bytes) == bool(report.held) for report in reports)
