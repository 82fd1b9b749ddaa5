"""Whenever its driver is killed, a stream that is started again loses no row and gives none twice.

The driver is `_driver.py`. It is killed with its JVM by SIGKILL, which nobody can answer, at a
random moment after a random number of further batches.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark._driver import QUERIES, SCHEMA
from tests.spark.conftest import ROOT
from tests.spark.support import assert_same_set, write_files
from tests.spark.test_streaming import passed

KILLS = int(os.environ.get("PANEFLOW_SPARK_KILLS", "30"))
PATIENCE = 300.0
SECOND = 1_000_000


def drawn(seed: int, files: int) -> list[pa.Table]:
    """Files of ten seconds each, in which events come up to three seconds out of order."""
    rng = np.random.default_rng(seed)
    n = 40 * files
    times = 1_700_000_000 * SECOND + np.sort(rng.integers(0, 10 * files * SECOND, n))
    arrival = np.argsort(times + rng.integers(0, 3 * SECOND, n), kind="stable")
    keys = [None if k == 3 else f"k{k}" for k in rng.integers(0, 5, n)]
    columns = [pa.array(keys), pa.array(times), rng.normal(size=n), rng.integers(-9, 9, n)]
    table = pa.table(columns, names=SCHEMA.names).cast(SCHEMA).take(pa.array(arrival))
    return [table.slice(40 * k, 40) for k in range(files)]


def start(folder: Path, query: str) -> subprocess.Popen[bytes]:
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark._driver", str(folder), query],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in paths if p)},
            stdout=log,
            stderr=log,
            start_new_session=True,  # so that the JVM can be killed with it
        )


def batches(folder: Path) -> int:
    """How many batches both streams have marked as done."""
    places = ("composed-checkpoint/commits", "fused-checkpoint/spark/commits")
    return sum(path.name.isdigit() for place in places for path in (folder / place).glob("*"))


def killed(folder: Path, query: str, r: random.Random) -> bool:
    """Start the driver and kill it some batches later; whether it had not ended before."""
    process = start(folder, query)
    goal = batches(folder) + r.choice([0, 1, 1, 2, 3])
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and batches(folder) < goal and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(r.uniform(0, 1))
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGKILL)
    finished(process, folder, expected=-signal.SIGKILL if running else 0)
    return running


def finished(process: subprocess.Popen[bytes], folder: Path, expected: int = 0) -> None:
    code = process.wait(PATIENCE)
    assert code == expected, (folder / "log").read_text(errors="replace")[-6000:]


def composed(spark: Any, folder: Path) -> pa.Table:
    """The rows of Spark's Parquet sink, which says itself which files count."""
    return spark.read.parquet(str(folder / "composed")).toArrow()


def fused(folder: Path) -> pa.Table:
    files = sorted((folder / "fused").glob("*.parquet"))
    return pa.concat_tables([pq.read_table(path) for path in files])


def disturbed(folder: Path, query: str, parts: list[pa.Table], r: random.Random, kills: int) -> int:
    """Answer all files in spite of so many kills, or as many as there is time for."""
    write_files(parts, folder / "in")
    done = 0
    while done < kills and killed(folder, query, r):
        done += 1
    finished(start(folder, query), folder)
    return done


def check(spark: Any, folder: Path, query: str, parts: list[pa.Table]) -> None:
    asked, events = QUERIES[query], pa.concat_tables(parts)
    assert_same_set(asked, composed(spark, folder), passed(asked, events, 1000))
    assert_same_set(asked, fused(folder), passed(asked, events))


def test_two_kills(spark: Any, tmp_path: Path) -> None:
    parts = drawn(0, files=4)
    assert disturbed(tmp_path, "slices", parts, random.Random(1), kills=2) > 0
    check(spark, tmp_path, "slices", parts)


@pytest.mark.exhaustive
@pytest.mark.parametrize("query", QUERIES)
def test_thirty_kills(spark: Any, tmp_path: Path, query: str) -> None:
    r = random.Random(query)
    done = round_ = 0
    while done < KILLS:
        folder = tmp_path / str(round_)
        parts = drawn(round_, files=40)
        done += disturbed(folder, query, parts, r, KILLS - done)
        check(spark, folder, query, parts)
        if round_ == 0:
            calm = tmp_path / "calm"
            disturbed(calm, query, parts, r, kills=0)
            assert_same_set(QUERIES[query], composed(spark, folder), composed(spark, calm))
            assert_same_set(QUERIES[query], fused(folder), fused(calm))
        round_ += 1
    print(f"{done} kills in {round_} streams: no row lost, none twice")
