"""The fused sink: a stream that ends in files or in a function, answered batch by batch.

Inside a micro-batch the input is a finite frame, so Spark's own aggregates can slice it, and no
state store is needed: what is open lies in this process, and on disk beside the checkpoint. A
batch is final when its commit has been written. Everything before that may happen twice, if the
driver dies, and is done under the number of the batch, so that the second time replaces the
first.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paneflow.engines.spark.chunked import joined, numbered, stored_after
from paneflow.engines.spark.frames import chosen, rows_schema, source_schema, spark_schema
from paneflow.engines.spark.native import carried, restored, slices_natively
from paneflow.engines.spark.packing import PARCELS, from_bytes, to_bytes
from paneflow.engines.spark.parcels import SliceParcels
from paneflow.engines.spark.streaming import check_stream
from paneflow.errors import InputError
from paneflow.slicing.layout import identity_of
from paneflow.slicing.slices import LAST
from paneflow.slicing.stream import Held, OpenWindows

if TYPE_CHECKING:
    from paneflow.query import Query

VERSION = 1
Sink = Callable[[pa.Table, int], None]
"""Takes a batch's rows and its number. It may be called again with the same number and rows."""


def write_stream(
    query: Query, frame: Any, sink: Any, checkpoint: Any, max_ahead: int | None, **trigger: Any
) -> Any:
    """Start the stream; `trigger` is what Spark's `trigger` takes. Gives Spark's query."""
    source = source_schema(query, frame)
    check_stream(query, source)
    if not (callable(sink) or isinstance(sink, str | os.PathLike)):
        raise InputError(
            f"the sink is a {type(sink).__name__}; expected a folder for Parquet files, or a "
            f"function of (rows, number of the batch)"
        )
    folder = Path(checkpoint)
    memory = Memory(folder / "paneflow", query)
    write = sink if callable(sink) else ParquetFiles(Path(sink), rows_schema(query, source))
    each = EachBatch(query, source, write, memory, max_ahead)
    writer = chosen(frame, query.columns).writeStream.foreachBatch(each)
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.option("checkpointLocation", str(folder / "spark")).start()


class EachBatch:
    """What is done with a micro-batch."""

    def __init__(
        self,
        query: Query,
        source: pa.Schema,
        write: Sink,
        memory: Memory,
        max_ahead: int | None,
    ) -> None:
        self._query = query
        self._source = source
        self._write = write
        self._memory = memory
        self._max_ahead = max_ahead
        self._open = OpenWindows(query, source)
        slices, events, marks = memory.load(self._open.layout, source)
        slices = self._open.still_open(slices, memory.state["watermark"])
        self._held = Held(slices, events, marks)

    def __call__(self, frame: Any, batch: int) -> None:
        state = self._memory.state
        if batch <= state["batch"]:
            return  # committed before the driver died
        slices, events, latest, dropped = self._brought(frame)
        seen, watermark = state["seen"], state["watermark"]
        if latest is not None:
            seen = latest if seen is None else max(seen, latest)
            watermark = seen - self._query.lateness.value
        rows, held, late = self._open.advance(
            self._held, numbered(slices, batch), events, state["watermark"], watermark
        )
        self._write(rows, batch)
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

    def _brought(self, frame: Any) -> tuple[pa.Table, pa.Table, int | None, int]:
        """A batch's slices and events, its latest time, and how many events were left out."""
        from pyspark.sql import Observation, functions as F

        left_out = Observation()
        time = F.col(f"`{self._query.time}`")
        usable = time.isNotNull()
        if self._max_ahead is not None:
            limit = F.timestamp_micros(F.unix_micros(F.current_timestamp()) + self._max_ahead)
            usable = usable & (time <= limit)
        counted = frame.observe(left_out, F.count(F.when(~usable, 1)).alias("events"))
        slices, events = self._open.received(self._sent(counted.filter(usable)))
        latest = _latest(slices, LAST) if slices.num_rows else _latest(events, self._query.time)
        # Spark drops an observation along with a batch of which nothing is left.
        dropped = frame.count() if latest is None else int(left_out.get["events"])
        return slices, events, latest, dropped

    def _sent(self, events: Any) -> list[pa.Table]:
        """What the batch sends to this process, in the order of its parts."""
        if self._open.needs_events:
            return [events.toArrow().cast(self._source)]
        layout = self._open.layout
        native = slices_natively(self._query, events, self._source, layout, {})
        if native is not None:
            columns = carried(layout, self._query, self._source)
            return [restored(native.toArrow().cast(columns), layout)]
        cut = SliceParcels(self._query, self._source, None)
        parcels = events.mapInArrow(cut, spark_schema(PARCELS)).toArrow().sort_by("part")
        return [from_bytes(parcel) for parcel in parcels.column("parcel").to_pylist()]


def _latest(table: pa.Table, column: str) -> int | None:
    """The latest time of a table, in microseconds."""
    latest: int | None = pc.max(table.column(column).cast(pa.int64())).as_py()
    return latest


class ParquetFiles:
    """A folder with one file for each batch that has rows, under the batch's number."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self._folder = folder
        self._schema = schema
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, rows: pa.Table, batch: int) -> None:
        if rows.num_rows:
            path = self._folder / f"rows-{batch:09}.parquet"
            draft = path.with_name(f".{path.name}.draft")
            pq.write_table(rows.cast(self._schema), draft)
            os.replace(draft, path)


class Memory:
    """The open slices and how far the stream has come, on disk.

    Slices lie in chunks, one file for each batch that brought some, written once. Events that
    windows need as they are lie in the last batch's own file. The commit of a batch names the
    files that are needed; it takes the place of the one before by a rename.
    """

    def __init__(self, folder: Path, query: Query) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        identity = json.loads(json.dumps(identity_of(query)))
        commit = folder / "commit.json"
        self.state: dict[str, Any] = {
            "version": VERSION,
            "query": identity,
            "batch": -1,
            "seen": None,
            "watermark": None,
            "late": 0,
            "dropped": 0,
            "chunks": [],
            "whole": False,
        }
        if commit.exists():
            found = json.loads(commit.read_text())
            if found["version"] != VERSION:
                raise InputError(
                    f"the checkpoint has version {found['version']}, and this paneflow reads "
                    f"{VERSION}: go on with the paneflow that wrote it, or name a new checkpoint"
                )
            if found["query"] != identity:
                raise InputError(
                    f"the checkpoint belongs to another query ({found['query']}), not to "
                    f"{identity}: name another checkpoint, or ask the same question"
                )
            self.state = found

    def load(
        self, layout: pa.Schema, source: pa.Schema
    ) -> tuple[pa.Table, pa.Table, pa.Table | None]:
        """Slices, events and marks of the last commit."""
        chunks = self.state["chunks"]
        stored = [(n, from_bytes(self._path("slices", n).read_bytes())) for n in chunks]
        events, marks = source.empty_table(), None
        if self.state["whole"]:
            events, marks = (
                from_bytes(self._path(kind, self.state["batch"]).read_bytes())
                for kind in ("events", "marks")
            )
        return joined(stored, layout), events, marks

    def commit(self, chunk: pa.Table | None, held: Held, **state: Any) -> None:
        """Write what a batch has changed, then what the stream has come to."""
        batch, before = state["batch"], self.state
        if chunk is not None:
            _write(self._path("slices", batch), to_bytes(chunk))
        if held.marks is not None:
            _write(self._path("events", batch), to_bytes(held.events))
            _write(self._path("marks", batch), to_bytes(held.marks))
        self.state = before | state | {"whole": held.marks is not None}
        _write(self._folder / "commit.json", json.dumps(self.state).encode())
        for gone in set(before["chunks"]) - set(state["chunks"]):
            self._path("slices", gone).unlink(missing_ok=True)
        if before["whole"]:
            for kind in ("events", "marks"):
                self._path(kind, before["batch"]).unlink(missing_ok=True)

    def _path(self, kind: str, number: int) -> Path:
        return self._folder / f"{kind}-{number:09}.arrow"


def _write(path: Path, data: bytes) -> None:
    """Replace a file as a whole, and only once it is on disk."""
    draft = path.with_suffix(".draft")
    with open(draft, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
