"""What may be asked of a stream beside its rows: late events, early rows, an end if it is idle."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import paneflow as pf
from examples.threshold_window import Threshold
from paneflow import aggregates as A, windows as W
from paneflow.spark import progress, split
from tests.bad_input.refusing import refused
from tests.spark.support import assert_same_set, plain, read_files, write_files
from tests.spark.test_streaming import (
    AGGREGATED,
    ON_TIME,
    Stream,
    answer,
    arrow_schema,
    events,
    passed,
)

PATIENCE = 600.0
MIXED = {"w": W.tumbling("10 s"), "rest": W.session("3 s")}


def noted(table: pa.Table) -> pa.Table:
    """Events with a column that no query reads."""
    return table.append_column("note", pa.array([f"n{v}" for v in table["v"].to_pylist()]))


class Composed:
    """A stream of `over`, fed from a folder; each batch goes to a function."""

    def __init__(self, spark: Any, folder: Path, query: pf.Query, **options: Any) -> None:
        self._spark, self._folder, self._query, self._options = spark, folder, query, options
        self._files = 0
        self.batches: list[pa.Table] = []

    def run(self, *parts: pa.Table) -> None:
        """Add files and answer until they are used up."""
        write_files(list(parts), self._folder / "in", self._files)
        self._files += len(parts)
        frame = read_files(self._spark, self._folder / "in", parts[0].schema)
        rows = self._query.over(frame, **self._options)
        keep = self.batches.append
        writer = rows.writeStream.foreachBatch(lambda batch, _: keep(batch.toArrow()))
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    @property
    def rows(self) -> pa.Table:
        return pa.concat_tables(self.batches)


# Late events.


@pytest.mark.long
@pytest.mark.parametrize("windows", [MIXED, {"pairs": W.count(2)}], ids="+".join)
def test_late_events_come_out_whole_beside_the_rows(
    spark: Any, tmp_path: Path, windows: dict[str, W.Window]
) -> None:
    query = pf.Query(windows, AGGREGATED, "k", lateness="5 s")
    stream = Composed(spark, tmp_path, query, late=True)
    stream.run(noted(ON_TIME))
    stream.run(noted(events((1, 10), (None, 30), (130, 40))))
    late = [event for event in stream.rows["late"].to_pylist() if event is not None]
    assert [(event["v"], event["note"]) for event in late] == [(10, "n10")]
    rows = stream.rows.filter(stream.rows["late"].is_null()).drop_columns(["late"])
    counted = pa.concat_tables([ON_TIME, events((130, 40))])
    assert_same_set(query, rows, passed(query, counted, 1000))


@pytest.mark.long
def test_a_batch_is_split_into_rows_and_late_events(spark: Any, tmp_path: Path) -> None:
    query = pf.Query(W.tumbling("10 s"), AGGREGATED, "k", lateness="5 s")
    write_files([noted(ON_TIME)], tmp_path / "in")
    given: list[tuple[pa.Table, pa.Table]] = []

    def each(batch: Any, number: int) -> None:
        rows, late = split(batch)
        given.append((rows.toArrow(), late.toArrow()))

    for more in (noted(events((1, 10), (130, 40))), None):
        frame = read_files(spark, tmp_path / "in", noted(ON_TIME).schema)
        writer = query.over(frame, late=True).writeStream.foreachBatch(each)
        writer = writer.option("checkpointLocation", str(tmp_path / "c"))
        writer.trigger(availableNow=True).start().awaitTermination()
        if more is not None:
            write_files([more], tmp_path / "in", first=1)
    rows, late = (pa.concat_tables(tables) for tables in zip(*given, strict=True))
    assert [(e["v"], e["note"], e["k"]) for e in late.to_pylist()] == [(10, "n10", "a")]
    counted = pa.concat_tables([ON_TIME, events((130, 40))])
    assert_same_set(query, rows, passed(query, counted, 1000))


@pytest.mark.parametrize("windows", [MIXED, {"pairs": W.count(2)}], ids="+".join)
def test_a_sink_of_its_own_for_late_events(
    spark: Any, tmp_path: Path, windows: dict[str, W.Window]
) -> None:
    query = pf.Query(windows, AGGREGATED, "k", lateness="5 s")
    write_files([noted(ON_TIME), noted(events((1, 10), (91, 20), (None, 30)))], tmp_path / "in")
    frame = read_files(spark, tmp_path / "in", noted(ON_TIME).schema)
    query.write_stream(
        frame, tmp_path / "rows", tmp_path / "c", late=tmp_path / "late", availableNow=True
    ).awaitTermination()
    expected = [10] if windows is MIXED else [10, 20]  # 91 s: its place in the order is final
    late = pq.read_table(tmp_path / "late").to_pylist()
    assert [(e["v"], e["note"]) for e in late] == [(v, f"n{v}") for v in expected]
    come = progress(tmp_path / "c")
    assert (come.batch, come.late, come.dropped) == (1, len(expected), 1)
    assert come.watermark is not None
    assert come.watermark.timestamp() == 1_700_000_095


def test_there_is_no_progress_without_a_checkpoint(tmp_path: Path) -> None:
    refused(pf.InputError, partial(progress, tmp_path), str(tmp_path), "write_stream")


# Early rows.


@pytest.mark.long
@pytest.mark.parametrize("windows", [MIXED, {"pairs": W.count(2, 1)}], ids="+".join)
def test_updates_come_before_the_final_row(
    spark: Any, tmp_path: Path, windows: dict[str, W.Window]
) -> None:
    query = pf.Query(windows, AGGREGATED, "k", lateness="5 s")
    parts = [events((0, 1), (2, 2)), events((1, 3), (12, 4)), events((40, 5))]
    stream = Composed(spark, tmp_path, query, emit="updates")
    stream.run(*parts[:2])
    stream.run(parts[2])
    final = stream.rows.filter(stream.rows["final"]).drop_columns(["final"])
    assert_same_set(query, final, passed(query, pa.concat_tables(parts), 1000))
    first = stream.batches[0].drop_columns(["final"])
    assert first.num_rows > 0
    assert not any(stream.batches[0]["final"].to_pylist())
    # Before anything is final, the rows are those of the events so far.
    assert_same_set(query, first, without_sessions_numbers(query.over(parts[0])))
    named = [
        (row["window"], row["seq"], row["start"], row["final"]) for row in stream.rows.to_pylist()
    ]
    for place, (*window, last) in enumerate(named):
        assert not last or (*window, False) not in named[place:]


def without_sessions_numbers(rows: pa.Table) -> pa.Table:
    sessions = [label == "rest" for label in rows["window"].to_pylist()]
    seq = pa.array(rows["seq"].to_numpy(), mask=pa.array(sessions).to_numpy(False))
    return plain(rows).set_column(rows.schema.get_field_index("seq"), "seq", seq)


# Streams that fall silent.


def eventually(done: Callable[[], bool], *streams: Any) -> None:
    """Wait until something is so; what fails a stream fails the test."""
    deadline = time.monotonic() + PATIENCE
    while not done():
        for stream in streams:
            assert stream.exception() is None, stream.exception()
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.fixture
def stopped() -> Iterator[list[Any]]:
    """Streams that are stopped when a test is over."""
    streams: list[Any] = []
    yield streams
    for stream in streams:
        stream.stop()


IDLE = {**MIXED, "pairs": W.count(2), "by": W.slide_by_time(3, "7 s")}


@pytest.mark.long
def test_an_idle_stream_closes_its_windows_and_goes_on(
    spark: Any, tmp_path: Path, stopped: list[Any]
) -> None:
    query = pf.Query(IDLE, AGGREGATED, "k", lateness="5 s")
    parts = [events((0, 1), (2, 2)), events((3, 3), (12, 4))]
    write_files(parts, tmp_path / "in")
    frame = read_files(spark, tmp_path / "in", parts[0].schema)
    given: list[pa.Table] = []
    writer = query.over(frame, idle="1 s").writeStream.trigger(processingTime="200 milliseconds")
    writer = writer.foreachBatch(lambda batch, _: given.append(batch.toArrow()))
    stopped.append(writer.option("checkpointLocation", str(tmp_path / "c")).start())
    expected = without_sessions_numbers(query.over(pa.concat_tables(parts)))
    eventually(lambda: sum(t.num_rows for t in given) >= expected.num_rows, *stopped)
    assert_same_set(query, pa.concat_tables(given), expected)
    # Of windows that are closed nothing changes; what comes behind them is in time.
    write_files([events((9, 100), (60, 6))], tmp_path / "in", first=2)
    more = without_sessions_numbers(query.over(events((60, 6))))
    more = more.filter(pa.array([label in MIXED for label in more["window"].to_pylist()]))
    before = expected.num_rows
    eventually(lambda: sum(t.num_rows for t in given) > before + more.num_rows, *stopped)
    timed = pa.concat_tables(given).slice(before)
    timed = timed.filter(pa.array([label in MIXED for label in timed["window"].to_pylist()]))
    assert_same_set(query, timed, more)


def test_a_sink_closes_the_windows_of_an_idle_stream_once(
    spark: Any, tmp_path: Path, stopped: list[Any]
) -> None:
    query = pf.Query(IDLE, AGGREGATED, "k", lateness="5 s")
    parts = [events((0, 1), (2, 2)), events((3, 3), (12, 4))]
    write_files(parts, tmp_path / "in")
    frame = read_files(spark, tmp_path / "in", parts[0].schema)
    expected = without_sessions_numbers(query.over(pa.concat_tables(parts)))
    given: dict[int, pa.Table] = {}
    failed: list[int] = []

    def sink(rows: pa.Table, batch: int) -> None:
        given[batch] = rows
        if not failed and sum(t.num_rows for t in given.values()) == expected.num_rows:
            failed.append(batch)
            raise OSError("the disk is full")

    def start(idle: str) -> Any:
        return query.write_stream(
            frame, sink, tmp_path / "c", idle=idle, processingTime="200 milliseconds"
        )

    failing = start("1 s")
    deadline = time.monotonic() + PATIENCE
    while not failed or failing.isActive:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    # The batch is done again, and closes the same windows, though now it would not be time yet.
    (batch,) = failed
    first = given.pop(batch)
    stopped.append(start("1 h"))
    eventually(lambda: progress(tmp_path / "c").batch >= batch, *stopped)
    assert given[batch].equals(first)
    assert_same_set(query, plain(pa.concat_tables(given.values())), expected)


def test_idle_is_for_streams_that_go_on(spark: Any, tmp_path: Path) -> None:
    query = pf.Query(W.tumbling("5 s"), AGGREGATED, "k")
    write_files([ON_TIME], tmp_path / "in")
    frame = read_files(spark, tmp_path / "in", ON_TIME.schema)
    into = partial(query.write_stream, frame, tmp_path / "rows", tmp_path / "c")
    refused(pf.QueryError, partial(into, idle="1 s", availableNow=True), "idle", "availableNow")
    into(availableNow=True).awaitTermination()
    refused(pf.InputError, partial(into, idle="1 s"), "without idle", "checkpoint")


# What is asked wrongly.


def test_options_of_streams_are_refused_elsewhere(spark: Any) -> None:
    query = pf.Query(W.tumbling("5 s"), AGGREGATED, "k")
    for options in ({"late": True}, {"emit": "updates"}, {"idle": "1 s"}, {"max_ahead": 0}):
        (name,) = options
        finite = spark.createDataFrame(ON_TIME)
        refused(pf.QueryError, partial(query.over, finite, **options), name, "finite")
        refused(pf.QueryError, partial(query.over, ON_TIME, **options), name, "Table")


def test_options_that_do_not_fit(spark: Any, tmp_path: Path) -> None:
    frame = read_files(spark, tmp_path, ON_TIME.schema)
    query = pf.Query(W.tumbling("5 s"), {"late": A.count(), "final": A.sum("v")}, "k")
    refused(pf.QueryError, partial(query.over, frame, late=True), "'late'", "another name")
    refused(pf.QueryError, partial(query.over, frame, emit="updates"), "'final'", "another name")
    refused(pf.QueryError, partial(query.over, frame, emit="often"), "'often'", "'updates'")
    refused(pf.QueryError, partial(query.over, frame, idle="0 s"), "idle")
    into = partial(query.write_stream, frame, tmp_path / "rows", tmp_path / "c", late=7)
    refused(pf.InputError, into, "late events", "int", "folder")
    assert list(tmp_path.iterdir()) == []


# Custom windows.


@pytest.mark.long
def test_custom_windows_outlive_a_restart(spark: Any, tmp_path: Path) -> None:
    query = pf.Query(
        {"high": Threshold("v", 2.5), "pairs": W.count(2)}, AGGREGATED, "k", lateness="5 s"
    )
    runs = [
        [events((0, 1), (2, 3)), events((1, 4), (8, 3))],
        [events((9, 9), (12, 1)), events((20, 5), (29, 7), (31, 0), (60, 3))],
    ]
    runner = answer(spark, tmp_path, Stream(query, runs))
    every = pa.concat_tables([part for run in runs for part in run])
    assert_same_set(query, runner.composed, passed(query, every, 1000))
    assert_same_set(query, runner.fused, passed(query, every))
    assert runner.fused["window"].to_pylist().count("high") == 2


# The number of partitions.


@pytest.mark.long
def test_a_stream_goes_on_with_another_number_of_partitions(spark: Any, tmp_path: Path) -> None:
    query = pf.Query({**MIXED, "pairs": W.count(2)}, AGGREGATED, "k", lateness="5 s")
    keyed = [keys(events((t, t), (t + 1, 1), (t + 3, 2))) for t in range(0, 36, 6)]
    parts = [keyed[:2], keyed[2:4], keyed[4:]]
    stream = Composed(spark, tmp_path, query)
    stream.run(*parts[0])
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    try:
        stream.run(*parts[1])
        # Spark goes on with as many as there were, unless the checkpoint is made anew.
        spark._streamingCheckpointManager.repartition(str(tmp_path / "checkpoint"), 3)
        stream.run(*parts[2])
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    shards = list((tmp_path / "checkpoint" / "state" / "0").glob("[0-9]*"))
    assert len(shards) >= 3
    assert_same_set(query, stream.rows, passed(query, pa.concat_tables(keyed), 1000))


def keys(table: pa.Table) -> pa.Table:
    """The same events for each of twelve keys."""
    tables = [table.set_column(0, "k", pa.array([f"k{k}"] * table.num_rows)) for k in range(12)]
    return pa.concat_tables(tables)


def test_the_columns_of_a_stream_say_what_was_asked(spark: Any, tmp_path: Path) -> None:
    query = pf.Query(W.tumbling("5 s"), {"n": A.count()}, "k")
    frame = read_files(spark, tmp_path, ON_TIME.schema)
    names = ["window", "k", "seq", "start", "end", "n"]
    assert arrow_schema(query.over(frame)).names == names
    both = arrow_schema(query.over(frame, late=True, emit="updates"))
    assert both.names == [*names, "final", "late"]
    assert {field.name for field in both.field("late").type} == {"k", "ts", "v"}
