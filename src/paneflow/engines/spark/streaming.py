"""A streaming DataFrame: slices on the way in, one compact state for each shard of keys.

Events are sliced where they arrive, if windows can be sliced, and packed by shard. Behind the
shuffle each shard keeps what is open in Spark's state store and gives the rows of windows that
the watermark has passed. Rows travel packed as well, because a state call or a pandas frame for
each would be dear.

The watermark is Spark's own: the largest time seen, minus `lateness`, as of the last batch. It
reads times from marker rows. Parcels carry none, so Spark never drops one as late; what is late
is for `OpenWindows` to say, which knows which windows are still open.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.engines.spark.frames import batches_of, chosen, rows_schema, spark_schema, table_of
from paneflow.engines.spark.packing import (
    EVENTS_PER_PARCEL,
    PARCELS,
    chunks,
    from_bytes,
    pack,
    shards_of,
)
from paneflow.engines.spark.session import check_session
from paneflow.engines.spark.shard_state import ShardProcessor
from paneflow.errors import UnsupportedError
from paneflow.slicing.slices import ROWS
from paneflow.slicing.stream import OpenWindows

if TYPE_CHECKING:
    from paneflow.query import Query

STREAM_SHARDS = 16
"""Fixed: a key's state must be found again by whoever restarts the stream."""
MOMENT = pa.timestamp("us", "UTC")
SENT = PARCELS.append(pa.field("at", MOMENT))
METRICS = "paneflow"
"""The name under which a stream's progress tells of events that were left out."""


def check_stream(query: Query, source: pa.Schema) -> None:
    """Refuse what cannot be answered without an end, before anything runs."""
    OpenWindows(query, source)
    if not pa.types.is_timestamp(source.field(query.time).type):
        raise UnsupportedError(
            f"the time column {query.time!r} has type {source.field(query.time).type}, and "
            f"Spark's watermark needs a timestamp: cast it, for example with timestamp_micros"
        )


def over(query: Query, frame: Any, source: pa.Schema, max_ahead: int | None) -> Any:
    """The rows of a query over an unbounded frame, as a frame, in append mode."""
    from pyspark.sql import functions as F

    check_stream(query, source)
    check_session(frame.sparkSession)
    schema = rows_schema(query, source)
    sent = chosen(frame, query.columns).mapInArrow(
        _Send(query, source, max_ahead), spark_schema(SENT)
    )
    watermarked = sent.withWatermark("at", f"{query.lateness.value} microseconds")
    answered = watermarked.groupBy("shard").transformWithStateInPandas(
        ShardProcessor(query, source),
        "late long, dropped long, rows binary",
        "append",
        "EventTime",
    )
    counted = answered.observe(
        METRICS, F.sum("late").alias("late"), F.sum("dropped").alias("dropped")
    )
    return counted.mapInArrow(_Receive(schema), spark_schema(schema))


@dataclass(frozen=True)
class _Send:
    """Slices of a task's events, packed by shard."""

    query: Query
    source: pa.Schema
    max_ahead: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        windows = OpenWindows(self.query, self.source)
        for number, gathered in enumerate(chunks(batches, EVENTS_PER_PARCEL)):
            given = table_of(gathered, self.source)
            events = usable(given, self.query.time, self.max_ahead)
            part = (context.partitionId() << 32) + number
            if events.num_rows:
                yield from self._parcels(events, part, windows)
            if events.num_rows < given.num_rows:
                # Events that are left out are counted: a parcel of none, in somebody's shard.
                yield _parcel_of_none(part, given.num_rows - events.num_rows, None)

    def _parcels(
        self, events: pa.Table, part: int, windows: OpenWindows
    ) -> Iterator[pa.RecordBatch]:
        sent = windows.sent(events)
        prefix, counted = ("", None) if windows.needs_events else ("key:", ROWS)
        keys = tuple(f"{prefix}{name}" for name in self.query.key)
        parcels = pack(sent, shards_of(sent, keys, STREAM_SHARDS), part, counted)
        untimed = pa.nulls(parcels.num_rows, MOMENT)
        yield pa.record_batch([*parcels.columns, untimed], schema=SENT)
        latest = pc.max(events.column(self.query.time).cast(pa.timestamp("us"))).cast(pa.int64())
        yield _parcel_of_none(part, 0, latest.as_py())


def usable(events: pa.Table, column: str, max_ahead: int | None) -> pa.Table:
    """Events without those that have no time, or one too far ahead of the clock."""
    times = events.column(column)
    if times.null_count:
        events = events.filter(times.is_valid())
    if max_ahead is not None:
        limit = int(time.time() * 1e6) + max_ahead
        micros = events.column(column).cast(pa.timestamp("us")).cast(pa.int64())
        ahead = micros.to_numpy() > limit
        if np.any(ahead):
            events = events.filter(pa.array(~ahead))
    return events


def _parcel_of_none(part: int, dropped: int, at: int | None) -> pa.RecordBatch:
    """A row that only tells how many events were dropped, or the latest time."""
    moment = pa.array([at], pa.int64()).cast(pa.timestamp("us")).cast(MOMENT)
    values = zip(([0], [part], [b""], [dropped]), PARCELS, strict=True)
    return pa.record_batch([*(pa.array(v, f.type) for v, f in values), moment], schema=SENT)


@dataclass(frozen=True)
class _Receive:
    """Packed rows, unpacked."""

    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for packed in batch.column("rows").to_pylist():
                if packed:
                    yield from batches_of(from_bytes(packed), self.schema)
