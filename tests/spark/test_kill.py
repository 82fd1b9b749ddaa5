"""Whenever its driver is killed, a stream that is started again loses no row and gives none twice.

The driver is `_driver.py`. It is killed with its JVM by SIGKILL, which nobody can answer, at a
random moment after a random number of further batches. On a busy machine Spark itself may give up
on a worker that takes more than ten seconds to start; that is one more death, and no other one is
forgiven.
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

from tests.conftest import ROOT
from tests.spark._driver import QUERIES, SCHEMA
from tests.spark.support import assert_same_set, write_files
from tests.spark.test_streaming import passed

KILLS = int(os.environ.get("PANEFLOW_SPARK_KILLS", "30"))
PATIENCE = 900.0
SLOW_START = "Python worker failed to connect back"
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
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark._driver", str(folder), query],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in paths if p)},
            stdout=log,
            stderr=log,
            start_new_session=True,  # so that the JVM can be killed with it
        )


COMMITS = ("composed-checkpoint/commits", "fused-checkpoint/spark/commits")
"""Where each of the two streams marks its batches as done."""


def batches(folder: Path, place: str) -> int:
    """How many batches a stream has marked as done."""
    return sum(path.name.isdigit() for path in (folder / place).glob("*"))


def killed(folder: Path, query: str, r: random.Random) -> bool | None:
    """Start the driver and kill it some batches of one of its streams later.

    Whether it was killed; None if it had come to the end before.
    """
    process = start(folder, query)
    place = r.choice(COMMITS)
    goal = batches(folder, place) + r.choice([0, 1, 1, 2, 3])
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and batches(folder, place) < goal and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(r.uniform(0, 1))
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    if process.wait(PATIENCE) == -signal.SIGKILL:
        return True
    return None if finished(process, folder) else False


def finished(process: subprocess.Popen[bytes], folder: Path) -> bool:
    """Whether a driver has come to the end; if not, its workers were too slow to start."""
    code = process.wait(PATIENCE)
    said = (folder / "log").read_text(errors="replace")
    assert code == 0 or SLOW_START in said, said[-6000:]
    return code == 0


def composed(spark: Any, folder: Path) -> pa.Table:
    """The rows of Spark's Parquet sink, which says itself which files count."""
    return spark.read.parquet(str(folder / "composed")).toArrow()


def fused(folder: Path) -> pa.Table:
    files = sorted((folder / "fused").glob("*.parquet"))
    return pa.concat_tables([pq.read_table(path) for path in files])


def disturbed(folder: Path, query: str, parts: list[pa.Table], r: random.Random, kills: int) -> int:
    """Answer all files in spite of so many kills, or as many as there is time for.

    The last file comes when the kills are over. If Spark is killed between the last batch with data
    and the one without that follows it, it does not make up for that one until more data comes.
    """
    write_files(parts[:-1], folder / "in")
    done = 0
    for _ in range(2 * kills + 10):
        dead = killed(folder, query, r) if done < kills else None
        if dead is None and finished(start(folder, query), folder):
            break
        done += bool(dead)
    write_files(parts[-1:], folder / "in", first=len(parts) - 1)
    for _ in range(10):
        if finished(start(folder, query), folder):
            return done
    raise AssertionError("the driver's workers are too slow to start, again and again")


def check(spark: Any, folder: Path, query: str, parts: list[pa.Table]) -> None:
    asked, events = QUERIES[query], pa.concat_tables(parts)
    assert_same_set(asked, composed(spark, folder), passed(asked, events, 1000))
    assert_same_set(asked, fused(folder), passed(asked, events))


@pytest.mark.processes
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
