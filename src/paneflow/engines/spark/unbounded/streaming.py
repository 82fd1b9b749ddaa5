"""A streaming DataFrame: slices on the way in, one compact state for each shard of keys.

Events are sliced where they arrive, if windows can be sliced, and packed by shard. After the
shuffle, each shard keeps what is open in Spark's state store and gives the rows of windows that
the watermark has passed. Rows travel packed as well, because a state call or a pandas frame for
each row would be expensive.

The watermark is Spark's own: the largest time seen, minus `lateness`, as of the last batch. It
reads times from marker rows, unless the frame comes with a watermark (`watermarks.py`). Parcels
carry none, so Spark never drops one as late; what is late is for `OpenWindows` to say, which knows
which windows are still open. A stream that closes its windows when it is idle goes by another
clock (`clocks.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.engines.live.open_windows import OpenWindows
from paneflow.engines.live.stream_options import FINAL, LATE, StreamOptions, check_added
from paneflow.engines.spark.columns import check_apart
from paneflow.engines.spark.frames import (
    batches_of,
    rows_schema,
    spark_schema,
    table_of,
)
from paneflow.engines.spark.session import prepare
from paneflow.engines.spark.slices.packing import (
    ANSWER,
    EVENTS_PER_PARCEL,
    PARCELS,
    UNTOLD,
    chunks,
    from_bytes,
    pack,
    shards_of,
)
from paneflow.engines.spark.unbounded.observed import counted
from paneflow.engines.spark.unbounded.watermarks import delay_of, marked_schema
from paneflow.errors import UnsupportedError
from paneflow.slicing.slices import ROWS

if TYPE_CHECKING:
    from paneflow.query import Query

STREAM_SHARDS = 16
"""Fixed, so that a restarted stream finds the state of every key again."""
MOMENT = pa.timestamp("us", "UTC")
SENT = PARCELS.append(pa.field("at", MOMENT)).append(pa.field("latest", pa.int64()))
"""`at` is for Spark's watermark, `latest` for a clock of ours."""


def check_stream(query: Query, source: pa.Schema) -> None:
    """Refuse what a stream without an end cannot answer, before anything runs."""
    OpenWindows(query, source)
    if not pa.types.is_timestamp(source.field(query.time).type):
        raise UnsupportedError(
            f"the time column {query.time!r} has type {source.field(query.time).type}, and "
            f"Spark's watermark needs a timestamp: cast it, for example with timestamp_micros"
        )


def over(query: Query, frame: Any, source: pa.Schema, options: StreamOptions) -> Any:
    """The rows of a query over an unbounded frame, as a frame, in append mode.

    `source` may have more columns than the query reads, for events that come too late.
    """
    # This module needs PySpark at once.
    from paneflow.engines.spark.unbounded.shard_state import ShardProcessor

    check_stream(query, source)
    prepare(frame.sparkSession)
    rows = rows_schema(query, source)
    added = [FINAL] * options.updates + [LATE] * options.late
    check_added(rows.names, added)
    check_apart(frame, [*rows.names, *added])
    processor = ShardProcessor(query, source, options)
    send = _Send(query, source, options, processor.clock.tells_all)
    own_clock = processor.clock.tells_all
    delay = None if own_clock else delay_of(query, frame, source)
    if delay is None:
        sent = frame.mapInArrow(send, spark_schema(SENT))
    else:
        sent = frame.mapInArrow(send, marked_schema(SENT, "at", delay))
    if delay is None and not own_clock:
        sent = sent.withWatermark("at", f"{query.lateness.value} microseconds")
    answered = sent.groupBy("shard").transformWithStateInPandas(
        processor, ANSWER, "append", processor.clock.mode
    )
    if options.updates:
        rows = rows.append(pa.field(FINAL, pa.bool_()))
    receive = _Receive(rows, source if options.late else None)
    result = spark_schema(receive.schema)
    if not own_clock:
        result = marked_schema(receive.schema, "end", delay or 0)
    return counted(answered).mapInArrow(receive, result)


def split(batch: Any) -> tuple[Any, Any]:
    """Separate the rows of `query.over(df, late=True)` from events that arrived too late.

    Args:
        batch: A frame that `over` returned, or a batch of it in `foreachBatch`.

    Returns:
        A frame of the rows, and a frame of the late events.

    Example:
        >>> import paneflow as pf, paneflow.spark
        >>> from paneflow import aggregates as A, windows as W
        >>> query = pf.Query(W.tumbling("1 hour"), {"n": A.count()}, time="timestamp")
        >>> frame = pf.spark.session().readStream.format("rate").load()  # doctest: +SKIP
        >>> rows, late = pf.spark.split(query.over(frame, late=True))  # doctest: +SKIP
        >>> late.columns  # doctest: +SKIP
        ['timestamp', 'value']
    """
    from pyspark.sql import functions as F

    late = F.col(LATE).isNotNull()
    return batch.filter(~late).drop(LATE), batch.filter(late).select(f"{LATE}.*")


@dataclass(frozen=True)
class _Send:
    """Slices of a task's events, packed by shard."""

    query: Query
    source: pa.Schema
    options: StreamOptions
    tells_all: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        windows = OpenWindows(self.query, self.source, whole=self.options.late)
        for number, gathered in enumerate(chunks(batches, EVENTS_PER_PARCEL)):
            given = table_of(gathered, self.source)
            events = usable(given, self.query.time, self.options.max_ahead)
            part = (context.partitionId() << 32) + number
            if events.num_rows:
                yield from self._parcels(events, part, windows)
            if events.num_rows < given.num_rows:
                # Dropped events are counted by an empty parcel, in any shard.
                yield _parcels_of_none(1, part, given.num_rows - events.num_rows, None)

    def _parcels(
        self, events: pa.Table, part: int, windows: OpenWindows
    ) -> Iterator[pa.RecordBatch]:
        sent = windows.sent(events)
        prefix, counted = ("", None) if windows.needs_events else ("key:", ROWS)
        keys = tuple(f"{prefix}{name}" for name in self.query.key)
        parcels = pack(sent, shards_of(sent, keys, STREAM_SHARDS), part, counted)
        untimed = pa.nulls(parcels.num_rows, MOMENT)
        untold = pa.repeat(pa.scalar(UNTOLD, pa.int64()), parcels.num_rows)
        yield pa.record_batch([*parcels.columns, untimed, untold], schema=SENT)
        latest = pc.max(events.column(self.query.time).cast(pa.timestamp("us"))).cast(pa.int64())
        told = STREAM_SHARDS if self.tells_all else 1
        yield _parcels_of_none(told, part, 0, latest.as_py())


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


def _parcels_of_none(shards: int, part: int, dropped: int, latest: int | None) -> pa.RecordBatch:
    """A row for each shard that only tells how many events were dropped, or the latest time."""
    told = pa.array([UNTOLD if latest is None else latest] * shards, pa.int64())
    columns = [list(range(shards)), [part] * shards, [b""] * shards, [dropped] * shards]
    arrays = [pa.array(v, f.type) for v, f in zip(columns, PARCELS, strict=True)]
    moments = pa.array([latest] * shards, pa.int64()).cast(pa.timestamp("us")).cast(MOMENT)
    return pa.record_batch([*arrays, moments, told], schema=SENT)


@dataclass(frozen=True)
class _Receive:
    """Packed rows, unpacked; events that came too late as well, if their type is given."""

    rows: pa.Schema
    events: pa.Schema | None

    @property
    def schema(self) -> pa.Schema:
        if self.events is None:
            return self.rows
        return self.rows.append(pa.field(LATE, pa.struct(list(self.events))))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for packed in batch.column("packed").to_pylist():
                if packed:
                    yield from batches_of(self._rows(from_bytes(packed)), self.schema)
            for packed in batch.column("missed").to_pylist():
                if packed and self.events is not None:
                    yield from self._late(from_bytes(packed).cast(self.events))

    def _rows(self, rows: pa.Table) -> pa.Table:
        if self.events is None:
            return rows
        nothing = pa.nulls(rows.num_rows, self.schema.field(LATE).type)
        return rows.append_column(LATE, nothing)

    def _late(self, events: pa.Table) -> Iterator[pa.RecordBatch]:
        """Rows of nothing but a late event."""
        for batch in events.combine_chunks().to_batches(max_chunksize=1 << 18):
            nothing = [pa.nulls(batch.num_rows, field.type) for field in self.rows]
            yield pa.record_batch([*nothing, batch.to_struct_array()], schema=self.schema)
