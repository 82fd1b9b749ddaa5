"""Over a stream Spark gives the oracle's rows of every window that the watermark has passed.

Streams are files, one in each micro-batch, and stop and go on from their checkpoint in between.
`query.over` and `query.write_stream` answer the same ones; they differ in the watermark alone,
which Spark keeps in milliseconds.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.spark import observed
from paneflow.windows import Session, SlideByTime, Sliding
from tests.properties.cases import (
    AGGREGATES,
    MERGEABLE,
    WINDOWS,
    affine,
    draw_aggregate,
    draw_table,
    range_of,
)
from tests.spark.support import assert_same_set, plain, read_files, write_files

EXHAUSTIVE = int(os.environ.get("PANEFLOW_SPARK_STREAMS", "100"))
ORDERED = ("count", "slide_by_tuple", "slide_by_time", "delta", "punctuation", "threshold")
SECOND = 1_000_000
START = 1_700_000_000 * SECOND


@dataclass(frozen=True)
class Stream:
    """A question, and events in the order in which they come: files for each run of the stream."""

    query: pf.Query
    runs: list[list[pa.Table]]

    @property
    def table(self) -> pa.Table:
        return pa.concat_tables([part for run in self.runs for part in run])

    def __repr__(self) -> str:
        sizes = [[part.num_rows for part in run] for run in self.runs]
        return f"{self.query!r}, lateness={self.query.lateness}, {sizes}\n{self.table.to_pylist()}"


def micros(column: pa.ChunkedArray) -> list[int | None]:
    ticks: list[int | None] = column.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    return ticks


def passed(query: pf.Query, events: pa.Table, unit: int = 1) -> pa.Table:
    """The oracle's rows of windows that the watermark after all events has passed.

    `unit` is the precision in microseconds with which the watermark is kept.
    """
    times = [t for t in micros(events[query.time]) if t is not None]
    watermark = max(times, default=0) // unit * unit - query.lateness.value
    final = [t is not None and t <= watermark for t in micros(events[query.time])]
    parts = []
    for label, window in query.windows.items():
        timed = isinstance(window, Sliding | Session | SlideByTime)
        if getattr(window, "partial", False):
            window = replace(window, partial=False)  # type: ignore[call-arg]
        alone = pf.Query({label: window}, query.aggregates, query.key, query.time)
        # Other windows close with an event, which is final once the watermark has reached it.
        known = events if timed else events.filter(pa.array(final, pa.bool_()))
        rows = plain(alone.over(known, engine="oracle"))
        if timed:
            last = watermark - 1 if isinstance(window, Session) else watermark
            closed = [end is not None and end <= last for end in micros(rows["end"])]
            rows = rows.filter(pa.array(closed, pa.bool_()))
        if isinstance(window, Session):
            place = rows.schema.get_field_index("seq")
            rows = rows.set_column(place, "seq", pa.nulls(rows.num_rows, pa.int64()))
        parts.append(rows)
    return pa.concat_tables(parts)


@dataclass
class Runner:
    """Both ways of answering a stream, fed from one folder."""

    spark: Any
    folder: Path
    query: pf.Query
    options: dict[str, Any]

    def __post_init__(self) -> None:
        self.files = 0
        self.counts = {"late": 0, "dropped": 0}

    def run(self, parts: list[pa.Table]) -> None:
        """Add files and answer until they are used up."""
        write_files(parts, self.folder / "in", self.files)
        self.files += len(parts)
        frame = read_files(self.spark, self.folder / "in", parts[0].schema)
        self.rows = self.query.over(frame, **self.options)
        writer = self.rows.writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(self.folder / "spark"))
        composed = writer.start(str(self.folder / "composed"))
        fused = self.query.write_stream(
            frame,
            self.folder / "fused",
            self.folder / "checkpoint",
            availableNow=True,
            **self.options,
        )
        try:
            for handle in (composed, fused):
                handle.awaitTermination()
        finally:
            for handle in (composed, fused):
                handle.stop()
        for progress in composed.recentProgress:
            for found in observed(progress).values():
                for name in self.counts:
                    self.counts[name] += getattr(found, name)

    @property
    def composed(self) -> pa.Table:
        """The rows that `over` has given."""
        reader = self.spark.read.schema(self.rows.schema)
        table: pa.Table = reader.parquet(str(self.folder / "composed")).toArrow()
        return table

    @property
    def fused(self) -> pa.Table:
        """The rows that `write_stream` has written."""
        files = sorted((self.folder / "fused").glob("*.parquet"))
        parts = [pq.read_table(path) for path in files]
        return pa.concat_tables(parts) if parts else arrow_schema(self.rows).empty_table()

    @property
    def fused_counts(self) -> dict[str, int]:
        [commit] = (self.folder / "checkpoint" / "paneflow").glob("commit-*.json")
        state = json.loads(commit.read_text())
        return {name: state[name] for name in ("late", "dropped")}


def arrow_schema(frame: Any) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.schema, timezone="UTC")


def answer(spark: Any, folder: Path, stream: Stream, **options: Any) -> Runner:
    """Run a stream, with a stop between runs."""
    runner = Runner(spark, folder, stream.query, options)
    for parts in stream.runs:
        runner.run(parts)
    return runner


def check(spark: Any, folder: Path, stream: Stream) -> None:
    """Nothing is late, so every window that has closed is the oracle's."""
    runner = answer(spark, folder, stream)
    timeless = sum(t is None for t in micros(stream.table[stream.query.time]))
    events = stream.table.filter(stream.table[stream.query.time].is_valid())
    assert_same_set(stream.query, runner.composed, passed(stream.query, events, 1000))
    assert_same_set(stream.query, runner.fused, passed(stream.query, events))
    assert runner.counts == {"late": 0, "dropped": timeless}
    assert runner.fused_counts == {"late": 0, "dropped": timeless}


# Random streams.


def draw(r: random.Random, windows: tuple[str, ...] = MERGEABLE + ORDERED) -> Stream:
    """A question, and events that come at most `lateness` after later ones."""
    lateness = r.choice([0, 1, 4, 15]) * SECOND
    table = draw_table(r, r.choice([3, 30, 60]), stamped=True)
    times = [t + r.choice([0, 0, r.randrange(SECOND)]) for t in micros(table["t"]) if t is not None]
    arrival = sorted(range(len(times)), key=lambda i: times[i] + r.randint(0, lateness))
    given: list[int | None] = list(times)
    if r.random() < 0.3:
        given = [None if r.random() < 0.1 else t for t in times]
    zone = r.choice(["UTC", None])
    columns = {
        "t": pa.array(given, pa.int64()).cast(pa.timestamp("us", zone)),
        "grows": pa.array([(t - times[0]) / SECOND for t in times]),
    }
    for name, column in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, column)
    table = table.take(pa.array(arrival, pa.int64()))
    query = pf.Query(
        {f"w{k}": WINDOWS[r.choice(windows)](r, True) for k in range(r.choice([1, 1, 2, 3]))},
        {f"a{k}": draw_aggregate(r, r.choice(tuple(AGGREGATES))) for k in range(r.randint(1, 4))},
        key=r.choice([None, "k", "h", ["k", "h"]]),
        time="t",
        lateness=f"{lateness} us",
    )
    return Stream(query, list(in_runs(r, list(in_parts(r, table)))))


def in_parts(r: random.Random, table: pa.Table) -> Iterator[pa.Table]:
    cuts = sorted(r.randint(0, table.num_rows) for _ in range(r.randint(0, 5)))
    for lo, hi in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
        yield table.slice(lo, hi - lo)


def in_runs(r: random.Random, parts: list[pa.Table]) -> Iterator[list[pa.Table]]:
    cut = r.randint(0, len(parts))
    yield from (run for run in (parts[:cut], parts[cut:]) if run)


@pytest.mark.parametrize(
    "windows",
    [pytest.param(("sliding",), marks=pytest.mark.long), MERGEABLE, ORDERED],
    ids="+".join,
)
def test_any_split_of_any_stream(spark: Any, tmp_path: Path, windows: tuple[str, ...]) -> None:
    check(spark, tmp_path, draw(random.Random("+".join(windows)), windows))


@pytest.mark.exhaustive
def test_a_hundred_random_streams(spark: Any, tmp_path: Path) -> None:
    for seed in range(EXHAUSTIVE):
        r = random.Random(seed)
        stream = draw(r, r.choice([MERGEABLE, MERGEABLE, ORDERED, MERGEABLE + ORDERED]))
        try:
            check(spark, tmp_path / str(seed), stream)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {stream!r}") from error
    print(f"{EXHAUSTIVE} random streams on Spark compared with the oracle")


@pytest.mark.long
def test_aggregates_of_every_family_outlive_a_restart(spark: Any, tmp_path: Path) -> None:
    r = random.Random(3)
    table = draw_table(r, 60, stamped=True).sort_by("t").drop_columns(["grows"])
    aggregates = {
        "sum": A.sum("i"),
        "exact": A.sum("x", exact=True),
        "std": A.std("x"),
        "first": A.first("s"),
        "arg": A.arg_max("s", by="x"),
        "median": A.median("x"),
        "mode": A.mode("i"),
        "all": A.collect("s"),
        "sketch": A.approx_distinct("s", 7),
        "bloom": A.bloom_filter("i", 64, 2),
        "range": range_of("x"),
    }
    windows = {"sliding": W.sliding("8 s", "3 s"), "rest": W.session("2 s")}
    query = pf.Query(windows, aggregates, key="k", time="t")
    check(spark, tmp_path, Stream(query, [[table.slice(0, 25)], [table.slice(25)]]))


@pytest.mark.long
def test_a_checkpoint_grows_with_what_a_batch_changed_and_not_with_the_state(
    spark: Any, tmp_path: Path
) -> None:
    # Windows are so long that nothing is ever forgotten: the state of the last batch is five
    # times that of the first.
    seconds = np.arange(5 * 60).repeat(5)
    table = pa.table(
        {
            "t": pa.array(START + seconds * SECOND, pa.timestamp("us", "UTC")),
            "k": np.tile(np.arange(5), 5 * 60),
            "v": np.random.default_rng(0).normal(size=len(seconds)),
        }
    )
    query = pf.Query(W.sliding("1 h", "1 s"), {"peak": A.max("v")}, key="k", time="t")
    parts = [table.slice(k * 300, 300) for k in range(5)]
    answer(spark, tmp_path, Stream(query, [parts]))
    changes: dict[int, int] = {}
    for path in (tmp_path / "spark" / "state").rglob("*.changelog"):
        batch = int(path.stem.split("_")[0])
        changes[batch] = changes.get(batch, 0) + path.stat().st_size
    by_over = [changes[batch] for batch in sorted(changes)]
    by_sink = [
        path.stat().st_size
        for path in sorted((tmp_path / "checkpoint" / "paneflow").glob("slices-*.arrow"))
    ]
    for written in (by_over[:5], by_sink):
        assert len(written) == 5
        assert max(written[1:]) < 1.5 * min(written[1:]), written


@pytest.mark.long
def test_batches_without_an_event(spark: Any, tmp_path: Path) -> None:
    query = pf.Query(W.tumbling("10 s"), AGGREGATED, "k", lateness="5 s")
    parts = [ON_TIME.slice(0, 0), ON_TIME, events((None, 9)), events((130, 6))]
    check(spark, tmp_path, Stream(query, [parts]))


# Events that come too late, without a time, or from the future.


def events(*given: tuple[float | None, int]) -> pa.Table:
    """Events of one key at so many seconds."""
    times = [None if t is None else START + int(t * SECOND) for t, _ in given]
    return pa.table(
        {
            "k": ["a"] * len(given),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "v": [v for _, v in given],
        }
    )


AGGREGATED = {"n": A.count(), "sum": A.sum("v"), "all": A.collect("v")}
ON_TIME = events((0, 1), (2, 2), (31, 3), (92, 4), (100, 5))
"""The watermark is 95 seconds after them."""


@pytest.mark.long
@pytest.mark.parametrize(
    "windows",
    [
        {"w": W.tumbling("10 s")},
        {"w": W.session("3 s")},
        {"w": W.tumbling("10 s"), "rest": W.session("3 s")},
    ],
    ids=lambda windows: "+".join(map(str, windows.values())),
)
def test_late_events_are_counted_and_change_nothing(
    spark: Any, tmp_path: Path, windows: dict[str, W.Window]
) -> None:
    query = pf.Query(windows, AGGREGATED, "k", lateness="5 s")
    late, behind, timeless, newer = (1, 10), (91, 20), (None, 30), (130, 40)
    # 91 is behind the watermark as well, but its windows are open.
    runs = [[ON_TIME], [events(late, behind, timeless, newer)]]
    runner = answer(spark, tmp_path, Stream(query, runs))
    counted = pa.concat_tables([ON_TIME, events(behind, newer)])
    assert_same_set(query, runner.composed, passed(query, counted, 1000))
    assert_same_set(query, runner.fused, passed(query, counted))
    assert runner.counts == {"late": 1, "dropped": 1}
    assert runner.fused_counts == {"late": 1, "dropped": 1}


@pytest.mark.long
def test_an_event_is_late_once_its_place_in_the_order_is_final(spark: Any, tmp_path: Path) -> None:
    windows = {"pairs": W.count(2), "by": W.slide_by_tuple("9 s", 1)}
    query = pf.Query(windows, AGGREGATED | {"last": affine("v")}, "k", lateness="5 s")
    late, behind, newer = (1, 10), (91, 20), (130, 40)
    runs = [[ON_TIME], [events(late, behind, newer)]]
    runner = answer(spark, tmp_path, Stream(query, runs))
    counted = pa.concat_tables([ON_TIME, events(newer)])
    assert_same_set(query, runner.composed, passed(query, counted, 1000))
    assert_same_set(query, runner.fused, passed(query, counted))
    assert runner.counts == runner.fused_counts == {"late": 2, "dropped": 0}


@pytest.mark.long
def test_an_event_of_the_far_future_does_not_close_windows(spark: Any, tmp_path: Path) -> None:
    query = pf.Query(W.tumbling("10 s"), AGGREGATED, "k", lateness="5 s")
    century = 100 * 365 * 86_400
    poisoned = pa.concat_tables([events((1, 1)), events((century, 2)), events((14, 3))])
    runs = [[poisoned, events((3, 4), (40, 5))]]
    runner = answer(spark, tmp_path, Stream(query, runs), max_ahead="1 h")
    counted = events((1, 1), (14, 3), (3, 4), (40, 5))
    assert_same_set(query, runner.composed, passed(query, counted, 1000))
    assert_same_set(query, runner.fused, passed(query, counted))
    assert runner.counts == runner.fused_counts == {"late": 0, "dropped": 1}


# What is done twice.


def test_a_sink_that_fails_gets_the_same_batch_again(spark: Any, tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    query = pf.Query(W.sliding("4 s", "2 s"), AGGREGATED, "k")
    parts = [events((0, 1), (1, 2)), events((1.5, 3), (7, 4)), events((20, 5))]
    write_files(parts, tmp_path / "in")
    frame = read_files(spark, tmp_path / "in", parts[0].schema)
    given: list[tuple[int, pa.Table]] = []

    def sink(rows: pa.Table, batch: int) -> None:
        given.append((batch, rows))
        if len(given) == 2:
            raise OSError("the disk is full")

    def run() -> None:
        query.write_stream(frame, sink, tmp_path / "c", availableNow=True).awaitTermination()

    with pytest.raises(StreamingQueryException, match="the disk is full"):
        run()
    run()
    assert [batch for batch, _ in given] == [0, 1, 1, 2]
    assert given[1][1].equals(given[2][1])
    assert given[1][1].num_rows == 2
    once = pa.concat_tables([rows for _, rows in [given[0], *given[2:]]])
    assert_same_set(query, plain(once), passed(query, pa.concat_tables(parts)))


@pytest.mark.long
def test_a_batch_that_spark_has_not_marked_as_done_is_not_answered_twice(
    spark: Any, tmp_path: Path
) -> None:
    query = pf.Query({"w": W.tumbling("10 s"), "rest": W.session("3 s")}, AGGREGATED, "k")
    runner = answer(spark, tmp_path, Stream(query, [[ON_TIME, events((120, 6))]]))
    for commits in (tmp_path / "spark" / "commits", tmp_path / "checkpoint" / "spark" / "commits"):
        last = max((path for path in commits.iterdir() if path.name.isdigit()), key=batch_number)
        for path in (last, last.with_name(f".{last.name}.crc")):
            path.unlink(missing_ok=True)
    more = events((140, 7))
    runner.run([more])
    counted = pa.concat_tables([ON_TIME, events((120, 6)), more])
    assert_same_set(query, runner.composed, passed(query, counted, 1000))
    assert_same_set(query, runner.fused, passed(query, counted))


def batch_number(path: Path) -> int:
    return int(path.name)
