"""A stream that is answered into a sink, batch by batch: files or a function.

Inside a micro-batch the input is a finite frame, so Spark's own aggregates can slice it, and no
state store is needed: open windows are in this process, and on disk beside the checkpoint. A
batch is final once its commit is written. Everything before that may happen twice if the driver
dies, and is done under the number of the batch, so that the second time replaces the first. A run
that is still busy when a newer one starts can change nothing (`lease.py`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from paneflow.engines.live.open_windows import Held, OpenWindows
from paneflow.engines.live.stream_options import StreamOptions
from paneflow.engines.spark.frames import column, declared, read, rows_schema, spark_schema
from paneflow.engines.spark.sinks.memory import Memory
from paneflow.engines.spark.sinks.parquet_files import ParquetFiles
from paneflow.engines.spark.slices.chunked import numbered, stored_after
from paneflow.engines.spark.slices.native import carried, instant, restored, slices_natively, ticks
from paneflow.engines.spark.slices.packing import PARCELS, from_bytes
from paneflow.engines.spark.slices.parcels import SliceParcels
from paneflow.engines.spark.storage.contract import Storage
from paneflow.engines.spark.storage.places import made, storage_of
from paneflow.engines.spark.unbounded.streaming import check_stream
from paneflow.errors import InputError, QueryError
from paneflow.slicing.slices import LAST
from paneflow.windows import DurationLike

if TYPE_CHECKING:
    from paneflow.query import Query

Sink = Callable[[pa.Table, int], None]
"""Takes a batch's rows and its number. It may be called again with the same number and rows."""


def write_stream(
    query: Query,
    frame: Any,
    sink: Any,
    checkpoint: Any,
    trigger: Mapping[str, Any],
    *,
    max_ahead: DurationLike | None,
    late: Any,
    idle: DurationLike | None,
    max_rows: int | None,
) -> Any:
    """Start the stream; `trigger` is what Spark's `trigger` takes. Gives Spark's query."""
    options = StreamOptions.of(max_ahead, late=late is not None, idle=idle, max_rows=max_rows)
    events, whole = read(query, frame, further=options.late)
    source = _read_of(query, whole)
    check_stream(query, source)
    ends = [name for name in ("availableNow", "once") if trigger.get(name)]
    if ends and options.idle is not None:
        raise QueryError(
            f"idle is for streams that keep running, and {ends[0]}=True ends this one: "
            f"leave one out"
        )
    rows = rows_schema(query, source)
    _check_sink(sink, "rows")
    if late is not None:
        _check_sink(late, "late events")
    spark = frame.sparkSession
    write = _sink(spark, sink, rows, "rows")
    write_late = None if late is None else _sink(spark, late, whole, "late")
    used = [s.uri for s in (write, write_late) if isinstance(s, ParquetFiles) and s.used]
    place = storage_of(spark, checkpoint, "checkpoint")
    memory = Memory(place, query, beats=options.idle is not None)
    if used and not memory.begun:
        raise InputError(
            f"{used[0]} holds rows of another stream, and the checkpoint {place.uri} is new: "
            f"name an empty folder, or the checkpoint that those rows belong to"
        )
    each = EachBatch(query, whole, write, memory, options, write_late)
    for storage, what in _places(place, write, write_late):
        made(storage, what)
    source_of_batches = events if options.idle is None else _with_beats(events)
    writer = source_of_batches.writeStream.foreachBatch(each)
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.option("checkpointLocation", place.within("spark").uri).start()


def _read_of(query: Query, whole: pa.Schema) -> pa.Schema:
    """The columns that a query reads, which come before all others."""
    return pa.schema([whole.field(name) for name in query.columns])


def _check_sink(sink: Any, what: str) -> None:
    if not (callable(sink) or isinstance(sink, str | os.PathLike)):
        raise InputError(
            f"the sink for {what} is a {type(sink).__name__}; expected a folder for Parquet "
            f"files, or a function of ({what}, number of the batch)"
        )


def _sink(spark: Any, sink: Any, schema: pa.Schema, name: str) -> Sink:
    if not callable(sink):
        return ParquetFiles(storage_of(spark, sink, f"sink for {name}"), schema, name)
    function: Sink = sink
    return function


def _places(checkpoint: Storage, *sinks: Sink | None) -> list[tuple[Storage, str]]:
    """The folders that a stream writes to."""
    files = [(sink.storage, "sink") for sink in sinks if isinstance(sink, ParquetFiles)]
    return [*files, (checkpoint, "checkpoint")]


def _with_beats(frame: Any) -> Any:
    """The same events, and a source that ticks every second and adds nothing.

    Spark runs no batch while no source has news, and then nothing would notice that it is idle.
    """
    from pyspark.sql import functions as F

    beats = frame.sparkSession.readStream.format("rate").load().filter(F.col("value") < 0)
    nothing = [F.lit(None).cast(f.dataType).alias(f.name) for f in frame.schema.fields]
    return frame.unionByName(beats.select(*nothing))


class EachBatch:
    """What is done with a micro-batch."""

    def __init__(
        self,
        query: Query,
        whole: pa.Schema,
        write: Sink,
        memory: Memory,
        options: StreamOptions,
        write_late: Sink | None,
    ) -> None:
        """`whole` are the columns of events; they may be more than the query reads."""
        self._query = query
        self._whole = whole
        self._source = _read_of(query, whole)
        self._write = write
        self._write_late = write_late
        self._memory = memory
        self._options = options
        self._open = OpenWindows(query, self._source, max_rows=options.max_rows)
        self._held: Held | None = None
        self._placed = False
        memory.load(self._open.layout, self._source)  # refuses what is damaged before Spark starts
        self._active = time.monotonic()

    def __call__(self, frame: Any, batch: int) -> None:
        if self._held is None:
            self._held = self._begun()
        if not self._memory.follows(batch):
            return  # committed before the driver died
        state = self._memory.state
        if not self._placed:
            for sink in (self._write, self._write_late):
                if isinstance(sink, ParquetFiles):
                    sink.take_over(state["run"], state["rivals"], batch)
            self._placed = True
        slices, events, latest, dropped = self._brought(
            frame.select(*frame.columns[: len(self._source)])
        )
        slices = numbered(slices, batch)
        before = state["watermark"]
        seen, watermark = self._reached(batch, latest)
        if latest is None and dropped == 0 and watermark == before:
            self._memory.pass_over(batch)  # nothing came, and nothing closes
            return
        missed = None
        if self._write_late is not None:
            missed = self._too_late(self._held, frame, slices, before)
        rows, held, late = self._open.advance(self._held, slices, events, before, watermark)
        self._memory.check()
        self._write(rows, batch)
        if self._write_late is not None and missed is not None:
            self._write_late(missed, batch)
            late = missed.num_rows
        kept, alive, fresh = stored_after(held.slices, batch)
        self._held = Held(kept, held.events, held.marks)
        self._memory.commit(
            fresh,
            self._held,
            batch=batch,
            seen=seen,
            watermark=watermark,
            late=state["late"] + late,
            dropped=state["dropped"] + dropped,
            chunks=sorted(alive),
        )

    def _begun(self) -> Held:
        """What the runs before have left open."""
        held = self._memory.begin(self._open.layout, self._source)
        slices = self._open.still_open(held.slices, self._memory.state["watermark"])
        return Held(slices, held.events, held.marks)

    def _reached(self, batch: int, latest: int | None) -> tuple[int | None, int | None]:
        """The latest time seen, and the watermark, with a batch whose latest time is given."""
        seen, watermark = self._memory.state["seen"], self._memory.state["watermark"]
        if latest is not None:
            self._active = time.monotonic()
            seen = latest if seen is None else max(seen, latest)
            reached = seen - self._query.lateness.value
            return seen, reached if watermark is None else max(watermark, reached)
        if seen is None or self._options.idle is None:
            return seen, watermark
        said = self._memory.closing(batch)
        if said is None and (time.monotonic() - self._active) * 1e6 >= self._options.idle:
            said = self._open.horizon(seen)
            if said > watermark:
                self._memory.close_at(batch, said)
        return seen, watermark if said is None else max(watermark, said)

    def _brought(self, frame: Any) -> tuple[pa.Table, pa.Table, int | None, int]:
        """A batch's slices and events, its latest time, and how many events were left out."""
        from pyspark.sql import Observation, functions as F

        left_out = Observation()
        usable = self._usable()
        counted = frame.observe(left_out, F.count(F.when(~usable, 1)).alias("events"))
        slices, events = self._open.received(self._sent(counted.filter(usable)))
        latest = _latest(slices, LAST) if slices.num_rows else _latest(events, self._query.time)
        # Spark drops an observation along with a batch of which nothing is left.
        dropped = frame.count() if latest is None else int(left_out.get["events"])
        return slices, events, latest, dropped

    def _usable(self) -> Any:
        """Whether an event has a time, and one that is not too far ahead of the clock."""
        from pyspark.sql import functions as F

        present = column(self._source, self._query.time).isNotNull()
        if self._options.max_ahead is None:
            return present
        ahead = F.unix_micros(F.current_timestamp()) + self._options.max_ahead
        return present & (ticks(self._query.time, self._source) <= ahead)

    def _too_late(self, held: Held, frame: Any, slices: pa.Table, before: int | None) -> pa.Table:
        """The events of a batch that came too late; only those behind the watermark are fetched."""
        from pyspark.sql import functions as F

        if before is None:
            return self._whole.empty_table()
        t = F.when(self._usable(), instant(self._query.time, self._source))
        behind = declared(frame.filter(t < F.lit(before)).toArrow(), self._whole)
        late = self._open.late(held, slices, behind, before)
        return behind.filter(pa.array(late))

    def _sent(self, events: Any) -> list[pa.Table]:
        """What the batch sends to this process, in the order of its parts."""
        if self._open.needs_events:
            return [declared(events.toArrow(), self._source)]
        layout = self._open.layout
        native = slices_natively(self._query, events, self._source, layout, {})
        if native is not None:
            columns = carried(layout, self._query, self._source)
            return [restored(declared(native.toArrow(), columns), layout)]
        cut = SliceParcels(self._query, self._source, None)
        parcels = events.mapInArrow(cut, spark_schema(PARCELS)).toArrow().sort_by("part")
        return [from_bytes(parcel) for parcel in parcels.column("parcel").to_pylist()]


def _latest(table: pa.Table, column: str) -> int | None:
    """The latest time of a table, in microseconds."""
    latest: int | None = pc.max(table.column(column).cast(pa.int64())).as_py()
    return latest
