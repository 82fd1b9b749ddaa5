"""A stream that is started again while its last run goes on loses no event and no row.

Spark stops the run before only as the new one starts; a run in another process it does not stop
at all. What the two do to each other is first played step by step, then left to Spark.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.live.stream_options import StreamOptions
from paneflow.engines.spark.frames import read
from paneflow.engines.spark.sinks.memory import Memory
from paneflow.engines.spark.sinks.parquet_files import ParquetFiles
from paneflow.engines.spark.sinks.sink import EachBatch
from paneflow.spark import progress
from tests.conftest import ROOT
from tests.spark.support import (
    PLACES,
    assert_same_set,
    frame_of,
    mount,
    plain,
    read_files,
    storage,
    write_files,
)

PATIENCE = 900.0
SECOND = 1_000_000
START = 1_700_000_000 * SECOND
AGGREGATES = {"n": A.count(), "all": A.collect("v")}
QUERIES = {
    "slices": pf.Query(W.tumbling("10 s"), AGGREGATES, "k", lateness="20 s"),
    "events": pf.Query(
        {"w": W.tumbling("10 s"), "pairs": W.count(2)}, AGGREGATES, "k", lateness="20 s"
    ),
}
SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])


def events(*seconds: int) -> pa.Table:
    """Events of one key, which say when they are."""
    times = [START + t * SECOND for t in seconds]
    return pa.table([["a"] * len(times), times, list(seconds)], names=SCHEMA.names).cast(SCHEMA)


END = events(1_000_000)
"""Closes every window of what came before."""


def written(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])


def check(query: pf.Query, folder: Path, given: pa.Table) -> None:
    """The rows are those of a finite table, without the windows that are still open."""
    closed = plain(query.over(pa.concat_tables([given, END])))
    still = pa.scalar(START + 1_000_000 * SECOND - 20 * SECOND, pa.timestamp("us", "UTC"))
    closed = closed.filter(pa.array([end <= still.as_py() for end in closed["end"].to_pylist()]))
    assert_same_set(query, written(folder / "rows"), closed)


# Two runs, step by step.


class Run:
    """One run of a stream, batch by batch, without Spark's own part of it."""

    def __init__(self, spark: Any, folder: Path, query: pf.Query, place: str = "disk") -> None:
        self._spark = spark
        self._query = query
        rows = pa.schema([(f.name, f.type) for f in plain(query.over(events(0))).schema])
        memory = Memory(storage(spark, place, folder / "c"), query, beats=False)
        sink = ParquetFiles(storage(spark, place, folder / "rows"), rows, "rows")
        source = read(query, frame_of(spark, events(0)))[1]
        self._each = EachBatch(query, source, sink, memory, StreamOptions(), None)

    def batch(self, number: int, given: pa.Table) -> None:
        frame, _ = read(self._query, frame_of(self._spark, given))
        self._each(frame, number)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_new_run_goes_on_from_the_last_batch_of_the_old_one(
    spark: Any, tmp_path: Path, query: pf.Query, place: str
) -> None:
    old = Run(spark, tmp_path, query, place)
    old.batch(0, events(0, 1))
    new = Run(spark, tmp_path, query, place)
    old.batch(1, events(2, 3))  # before Spark stops it
    new.batch(2, END)
    check(query, tmp_path, events(0, 1, 2, 3))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_batch_of_an_old_run_changes_nothing_once_a_newer_one_has_begun(
    spark: Any, tmp_path: Path, query: pf.Query, place: str
) -> None:
    old = Run(spark, tmp_path, query, place)
    old.batch(0, events(0, 1))
    new = Run(spark, tmp_path, query, place)
    new.batch(1, events(2, 3))
    with pytest.raises(pf.PaneflowError, match="another run"):
        old.batch(1, END)
    new.batch(2, events(4, 5))
    with pytest.raises(pf.PaneflowError, match="another run"):
        old.batch(1, events())  # a batch of nothing is no exception
    new.batch(3, END)
    check(query, tmp_path, events(0, 1, 2, 3, 4, 5))


class Stopped(Exception):
    """A run ends in the middle of a batch."""


def stopped(*_: Any, **__: Any) -> None:
    raise Stopped


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_rows_of_a_run_that_was_overtaken_in_the_middle_of_a_batch_do_not_count(
    spark: Any, tmp_path: Path, place: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may write them before the newer run does the batch, or after that."""
    query = QUERIES["slices"]
    Run(spark, tmp_path, query, place).batch(0, events(0, 1))
    old, new = (Run(spark, tmp_path, query, place) for _ in range(2))

    def overtaken(self: Memory) -> None:
        if moment == "after":
            monkeypatch.undo()
            new.batch(1, events(2, 3))

    monkeypatch.setattr(Memory, "check", overtaken)  # the last thing before the rows are written
    monkeypatch.setattr(Memory, "commit", stopped)
    with pytest.raises(pf.PaneflowError if moment == "after" else Stopped):
        old.batch(1, events(2, 3, 500_000))
    monkeypatch.undo()
    if moment == "before":
        new.batch(1, events(2, 3))
    new.batch(2, END)
    check(query, tmp_path, events(0, 1, 2, 3))


def test_a_batch_that_is_done_already_is_not_done_again(spark: Any, tmp_path: Path) -> None:
    query = QUERIES["slices"]
    Run(spark, tmp_path, query).batch(0, events(0, 1))
    new = Run(spark, tmp_path, query)
    new.batch(0, events(0, 1))
    new.batch(1, events())
    assert progress(tmp_path / "c").batch == 1
    new.batch(2, END)
    check(query, tmp_path, events(0, 1))


@pytest.mark.parametrize(("last", "next_"), [(1, 3), (1, 0)])
def test_state_and_spark_that_have_come_to_different_batches_are_refused(
    spark: Any, tmp_path: Path, last: int, next_: int
) -> None:
    run = Run(spark, tmp_path, QUERIES["slices"])
    for number in range(last + 1):
        run.batch(number, events(number))
    new = Run(spark, tmp_path, QUERIES["slices"])
    with pytest.raises(pf.InputError, match=f"batch {next_}, but .* batch {last}: .*checkpoint"):
        new.batch(next_, END)


# Many runs, with Spark.


def restarted(
    spark: Any, folder: Path, query: pf.Query, files: int, restarts: int, place: str = "disk"
) -> None:
    """Start a stream again and again without stopping it, then let it come to the end."""
    mount(spark)
    sink, checkpoint = (PLACES[place].format(folder / name) for name in ("rows", "c"))
    r = random.Random(restarts)
    parts = [events(2 * k, 2 * k + 1) for k in range(files)]
    write_files(parts, folder / "in")
    frame = read_files(spark, folder / "in", SCHEMA)
    for _ in range(restarts):
        running = query.write_stream(frame, sink, checkpoint)
        time.sleep(r.uniform(0, 0.6))
    running.processAllAvailable()
    running.stop()
    write_files([END], folder / "in", first=files)
    query.write_stream(frame, sink, checkpoint, availableNow=True).awaitTermination()
    check(query, folder, pa.concat_tables(parts))


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_a_stream_that_is_started_again_without_being_stopped(
    spark: Any, tmp_path: Path, place: str
) -> None:
    restarted(spark, tmp_path, QUERIES["slices"], files=10, restarts=5, place=place)


@pytest.mark.exhaustive
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_stream_that_is_started_again_forty_times(
    spark: Any, tmp_path: Path, query: pf.Query
) -> None:
    restarted(spark, tmp_path, query, files=120, restarts=40)


@pytest.mark.processes
def test_two_drivers_that_start_a_stream_ten_times_each(spark: Any, tmp_path: Path) -> None:
    query, parts = QUERIES["slices"], [events(2 * k, 2 * k + 1) for k in range(60)]
    write_files(parts, tmp_path / "in")
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    drivers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.spark._restarting", str(tmp_path), "10", str(seed)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in paths if p)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for seed in range(2)
    ]
    for said in [driver.communicate(timeout=PATIENCE)[0] for driver in drivers]:
        assert " overtaken" in said, said[-6000:]
    write_files([END], tmp_path / "in", first=len(parts))
    frame = read_files(spark, tmp_path / "in", SCHEMA)
    last = query.write_stream(frame, tmp_path / "rows", tmp_path / "c", availableNow=True)
    last.awaitTermination()
    check(query, tmp_path, pa.concat_tables(parts))
