"""What is refused on Spark, before anything runs: in which words, and without a trace on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.live.stream_options import StreamOptions
from paneflow.engines.spark.unbounded.shard_state import META, ShardProcessor
from paneflow.engines.spark.versions import VERSION
from tests.bad_input.refusing import refused
from tests.spark.support import frame_of, read_files, write_files

COUNT = {"n": A.count()}
EVENTS = pa.table(
    {
        "ts": pa.array([1_700_000_000_000_000, 1_700_000_100_000_000], pa.timestamp("us", "UTC")),
        "v": [1.0, 2.0],
    }
)


@pytest.fixture(scope="module")
def stream(spark: Any) -> Any:
    """A stream that nobody starts."""
    return spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts")


@pytest.fixture
def ask(stream: Any, tmp_path: Path) -> Callable[..., Any]:
    """Both ways to answer a stream, of which the second may have written nothing."""

    def asked(error: type[pf.PaneflowError], query: pf.Query, frame: Any, *given: str) -> None:
        refused(error, partial(query.over, frame), *given)
        into = partial(query.write_stream, frame, tmp_path / "rows", tmp_path / "checkpoint")
        refused(error, into, *given)
        assert list(tmp_path.iterdir()) == []

    return asked


# Columns.


def test_a_column_that_a_finite_frame_lacks(spark: Any) -> None:
    query = pf.Query(W.tumbling("5 s"), {"most": A.max("nope")})
    refused(pf.InputError, partial(query.over, frame_of(spark, EVENTS)), "'nope'", "'ts', 'v'")


def test_a_column_that_a_stream_lacks(stream: Any, ask: Callable[..., Any]) -> None:
    query = pf.Query(W.tumbling("5 s"), COUNT, key="house")
    ask(pf.InputError, query, stream, "'house'", "'ts', 'value'")


@pytest.mark.parametrize(
    ("made", "shown"),
    [("map(1, 2)", "map<int"), ("'text'", "string"), ("array(1)", "'v'")],
)
def test_a_column_that_cannot_be_summed(
    spark: Any, stream: Any, ask: Callable[..., Any], made: str, shown: str
) -> None:
    query = pf.Query(W.tumbling("5 s"), {"sum": A.sum("v")})
    finite = spark.range(1).selectExpr("timestamp_seconds(id) AS ts", f"{made} AS v")
    refused(pf.InputError, partial(query.over, finite), "'v'", shown)
    ask(pf.InputError, query, stream.selectExpr("ts", f"{made} AS v"), "'v'", shown)


def test_text_as_time(stream: Any, ask: Callable[..., Any]) -> None:
    query = pf.Query(W.tumbling("5 s"), COUNT)
    ask(pf.InputError, query, stream.selectExpr("cast(ts AS string) AS ts"), "'ts'", "string")


@pytest.mark.parametrize("type_", ["long", "date"])
def test_a_stream_needs_timestamps(stream: Any, ask: Callable[..., Any], type_: str) -> None:
    made = "value" if type_ == "long" else "cast(ts AS date)"
    frame = stream.selectExpr(f"{made} AS t")
    query = pf.Query(W.tumbling(5 if type_ == "long" else "5 s"), COUNT, time="t")
    ask(pf.UnsupportedError, query, frame, "'t'", "timestamp")


# Times.


@pytest.mark.parametrize(
    ("window", "aggregate"),
    [
        (W.sliding("10 s", "5 s"), A.max("v")),
        pytest.param(W.sliding("10 s", "5 s"), A.median("v"), marks=pytest.mark.long),
        pytest.param(W.tumbling("5 s"), A.max("v"), marks=pytest.mark.long),
        pytest.param(W.session("5 s"), A.max("v"), marks=pytest.mark.long),
        (W.count(2), A.max("v")),
    ],
    ids=str,
)
def test_a_null_time_stops_a_batch_job(
    spark: Any, window: W.Window, aggregate: A.Aggregate
) -> None:
    from pyspark.errors import PySparkException

    frame = spark.sql("SELECT cast(NULL AS timestamp) AS ts, 1.0D AS v")
    with pytest.raises(PySparkException, match=r"'ts'.*null"):
        pf.Query(window, {"a": aggregate}).over(frame).collect()


# Frames that do not end, and those that do.


@pytest.mark.parametrize("kind", ["finite frame", "table", "list"])
def test_write_stream_needs_a_stream(spark: Any, tmp_path: Path, kind: str) -> None:
    given = {"finite frame": spark.range(1), "table": EVENTS, "list": [{"ts": 1}]}[kind]
    query = pf.Query(W.tumbling("5 s"), COUNT)
    into = partial(query.write_stream, given, tmp_path / "rows", tmp_path / "checkpoint")
    refused(pf.InputError, into, type(given).__name__, "streaming", "query.over")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["idle", "max_ahead"])
def test_options_of_streams_need_units(option: str) -> None:
    refused(pf.QueryError, partial(StreamOptions.of, **{option: 30}), option, '"30 seconds"')
    StreamOptions.of(**{option: "30 seconds"})
    StreamOptions.of(max_ahead=0)


# Checkpoints.


def trace(folder: Path) -> dict[str, int]:
    return {str(p): p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def begun(spark: Any, tmp_path: Path) -> Callable[[pf.Query], Any]:
    """A stream that has come to its first commit; gives how to go on with a question."""
    write_files([EVENTS], tmp_path / "in")

    def going_on(query: pf.Query) -> Any:
        frame = read_files(spark, tmp_path / "in", EVENTS.schema)
        return query.write_stream(frame, tmp_path / "rows", tmp_path / "c", availableNow=True)

    going_on(pf.Query(W.tumbling("5 s"), COUNT)).awaitTermination()
    return going_on


def test_a_checkpoint_of_another_query(begun: Callable[[pf.Query], Any], tmp_path: Path) -> None:
    before = trace(tmp_path)
    other = pf.Query(W.tumbling("7 s"), COUNT)
    refused(pf.InputError, partial(begun, other), "tumbling(5s)", "tumbling(7s)", "checkpoint")
    assert trace(tmp_path) == before


def test_a_checkpoint_of_a_newer_version(begun: Callable[[pf.Query], Any], tmp_path: Path) -> None:
    [commit] = (tmp_path / "c" / "paneflow").glob("commit-*.json")
    state = json.loads(commit.read_text())
    commit.write_text(json.dumps(state | {"version": 99}))
    before = trace(tmp_path)
    query = pf.Query(W.tumbling("5 s"), COUNT)
    refused(pf.InputError, partial(begun, query), "version 99", "checkpoint")
    assert trace(tmp_path) == before


@pytest.mark.long
@pytest.mark.parametrize(
    ("mine", "other"), [(W.tumbling("5 s"), W.tumbling("7 s")), (W.count(2), W.count(3))], ids=str
)
def test_the_state_of_another_query(
    spark: Any, tmp_path: Path, mine: W.Window, other: W.Window
) -> None:
    from pyspark.errors import StreamingQueryException

    def run(query: pf.Query, rows: str) -> None:
        frame = read_files(spark, tmp_path / "in", EVENTS.schema)
        writer = query.over(frame).writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "c"))
        writer.start(str(tmp_path / rows)).awaitTermination()

    write_files([EVENTS], tmp_path / "in")
    run(pf.Query(mine, COUNT), "rows")
    write_files([EVENTS], tmp_path / "in", first=1)
    with pytest.raises(StreamingQueryException, match="another query"):
        run(pf.Query(other, COUNT), "other")
    log = tmp_path / "other" / "_spark_metadata"
    assert not any(path.name.isdigit() for path in log.glob("*"))  # nothing was committed


class NewerState:
    """State that a later paneflow has written."""

    def exists(self) -> bool:
        return True

    def get(self) -> tuple[Any, ...]:
        return (VERSION + 1, *[None] * META.count(","))

    def getValueState(self, *_: object) -> NewerState:
        return self

    getMapState = getValueState


def test_the_state_of_a_newer_version() -> None:
    query = pf.Query(W.tumbling("5 s"), COUNT)
    processor = ShardProcessor(query, EVENTS.schema, StreamOptions())
    processor.init(NewerState())

    def step() -> None:
        list(processor.handleInputRows((0,), iter([]), None))

    refused(pf.InputError, step, f"version {VERSION + 1}", "checkpoint")
