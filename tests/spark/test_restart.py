"""A stream that is started again while its last run goes on loses no event and no row.

Spark stops the run before only as the new one starts; a run in another process it does not stop
at all. What the two do to each other is first played step by step, then left to Spark.
"""

from __future__ import annotations

import random
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
from paneflow.engines.spark.sinks.sink import EachBatch, ParquetFiles
from paneflow.spark import progress
from tests.spark.support import assert_same_set, frame_of, plain, read_files, write_files

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

    def __init__(self, spark: Any, folder: Path, query: pf.Query) -> None:
        self._spark = spark
        self._query = query
        rows = pa.schema([(f.name, f.type) for f in plain(query.over(events(0))).schema])
        memory = Memory(folder / "c" / "paneflow", query, beats=False)
        sink = ParquetFiles(folder / "rows", rows, "rows")
        source = read(query, frame_of(spark, events(0)))[1]
        self._each = EachBatch(query, source, sink, memory, StreamOptions(), None)

    def batch(self, number: int, given: pa.Table) -> None:
        frame, _ = read(self._query, frame_of(self._spark, given))
        self._each(frame, number)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_new_run_goes_on_from_the_last_batch_of_the_old_one(
    spark: Any, tmp_path: Path, query: pf.Query
) -> None:
    old = Run(spark, tmp_path, query)
    old.batch(0, events(0, 1))
    new = Run(spark, tmp_path, query)
    old.batch(1, events(2, 3))  # before Spark stops it
    new.batch(2, END)
    check(query, tmp_path, events(0, 1, 2, 3))


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_batch_of_an_old_run_changes_nothing_once_a_newer_one_has_begun(
    spark: Any, tmp_path: Path, query: pf.Query
) -> None:
    old = Run(spark, tmp_path, query)
    old.batch(0, events(0, 1))
    new = Run(spark, tmp_path, query)
    new.batch(1, events(2, 3))
    with pytest.raises(pf.PaneflowError, match="another run"):
        old.batch(1, END)
    new.batch(2, events(4, 5))
    with pytest.raises(pf.PaneflowError, match="another run"):
        old.batch(1, events())  # a batch of nothing is no exception
    new.batch(3, END)
    check(query, tmp_path, events(0, 1, 2, 3, 4, 5))


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


def restarted(spark: Any, folder: Path, query: pf.Query, files: int, restarts: int) -> None:
    """Start a stream again and again without stopping it, then let it come to the end."""
    r = random.Random(restarts)
    parts = [events(2 * k, 2 * k + 1) for k in range(files)]
    write_files(parts, folder / "in")
    frame = read_files(spark, folder / "in", SCHEMA)
    for _ in range(restarts):
        running = query.write_stream(frame, folder / "rows", folder / "c")
        time.sleep(r.uniform(0, 0.6))
    running.processAllAvailable()
    running.stop()
    write_files([END], folder / "in", first=files)
    query.write_stream(frame, folder / "rows", folder / "c", availableNow=True).awaitTermination()
    check(query, folder, pa.concat_tables(parts))


@pytest.mark.long
def test_a_stream_that_is_started_again_without_being_stopped(spark: Any, tmp_path: Path) -> None:
    restarted(spark, tmp_path, QUERIES["slices"], files=10, restarts=5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_stream_that_is_started_again_forty_times(
    spark: Any, tmp_path: Path, query: pf.Query
) -> None:
    restarted(spark, tmp_path, query, files=120, restarts=40)
