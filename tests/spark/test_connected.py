"""Streams over Spark Connect: relative folders are the client's, wherever the server runs."""

from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import paneflow
from tests.spark._connected import QUERY
from tests.spark.support import assert_same_set, plain, write_files

ROOT = Path(__file__).resolve().parents[2]
SECOND = 1_000_000
START = 1_700_000_000 * SECOND
TIMES = pa.array([START + t * SECOND for t in (0, 2, 31, 92, 100)], pa.timestamp("us", "UTC"))
KEYS = pa.array([Decimal("1.50"), Decimal("-2.25"), None, Decimal("1.50"), Decimal(1)])
EVENTS = pa.table({"k": KEYS.cast(pa.decimal128(20, 2)), "ts": TIMES, "v": [1.0, 2, 3, 4, 5]})


@pytest.mark.processes
def test_relative_folders_are_those_of_the_client(tmp_path: Path) -> None:
    write_files([EVENTS.slice(0, 3), EVENTS.slice(3)], tmp_path / "in")
    folders = os.pathsep.join([str(Path(paneflow.__file__).parents[1]), str(ROOT)])
    ran = subprocess.run(
        [sys.executable, "-m", "tests.spark._connected"],
        capture_output=True,
        text=True,
        timeout=1800,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": folders},
        check=False,
    )
    assert "Progress(batch=1" in ran.stdout, ran.stdout + ran.stderr[-3000:]
    expected = plain(QUERY.over(EVENTS, engine="oracle"))
    expected = expected.filter(pc.less_equal(expected["end"], TIMES[-1]))
    for folder in ("rows", "sink"):
        rows = pq.ParquetDataset(sorted((tmp_path / folder).glob("*.parquet"))).read()
        # Spark writes times as INT96.
        assert_same_set(QUERY, rows.cast(expected.schema), expected)
