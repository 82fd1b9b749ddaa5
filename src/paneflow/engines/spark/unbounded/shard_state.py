"""The state of one shard of keys in Spark's state store.

Slices are kept in chunks (`slices/chunked.py`), one for each batch that brought some. Events that
windows need themselves, and the marks of their keys, are written as a whole.

Reading chunks back for every batch would cost more than the merging. The worker process outlives
a batch, so it remembers what it wrote last, under a token that the state holds as well: only if
both are equal does its memory match the state.
"""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from paneflow.engines.live.open_windows import Held, OpenWindows
from paneflow.engines.live.stream_options import StreamOptions, marked
from paneflow.engines.spark.slices.chunked import joined, numbered, stored_after
from paneflow.engines.spark.slices.packing import COUNTS, UNTOLD, from_bytes, to_bytes
from paneflow.engines.spark.unbounded.clocks import STATE, clock
from paneflow.engines.spark.versions import (
    VERSION,
    check_query,
    check_version,
    stream_identity,
)

if TYPE_CHECKING:
    from paneflow.query import Query

META = "version int, query string, token string, watermark long, next long"
"""Chunks are tables of slices, which carry a version of their own."""
WHOLE = "events binary, marks binary"
ROWS_PER_PARCEL = 1_000_000
"""Rows in one piece of an answer: a value in Spark is at most 2 GiB."""
REMEMBERED = 256

_memory: OrderedDict[str, Held] = OrderedDict()


class ShardProcessor(StatefulProcessor):
    """Parcels in, rows out, for each shard."""

    def __init__(self, query: Query, source: pa.Schema, options: StreamOptions) -> None:
        """`source` may have more columns than the query reads, for events that come too late."""
        self._query = query
        self._source = source
        self._options = options
        self.clock = clock(query.lateness.value, options.idle)

    def init(self, handle: Any) -> None:
        """Open the state."""
        self._open = OpenWindows(
            self._query, self._source, self._options.late, self._options.max_rows
        )
        self._told: dict[Any, tuple[int, int]] = {}
        self._identity = json.dumps(stream_identity(self._query))
        self._handle = handle
        self._meta = handle.getValueState("meta", META)
        self._chunks = handle.getMapState("chunks", "number long", "slices binary")
        self._whole = handle.getValueState("whole", WHOLE)
        self._clock = handle.getValueState("clock", STATE)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        """Take the parcels of a batch."""
        parcels: list[tuple[int, bytes]] = []
        latest: list[int] = []
        dropped = 0
        for frame in rows:
            for part, parcel, events, seen in zip(
                frame["part"], frame["parcel"], frame["events"], frame["latest"], strict=True
            ):
                if parcel:
                    parcels.append((part, bytes(parcel)))
                else:
                    dropped += int(events)
                if seen > UNTOLD:
                    latest.append(int(seen))
        sent = [from_bytes(parcel) for _, parcel in sorted(parcels, key=lambda p: p[0])]
        yield self._step(key, sent, dropped, max(latest, default=None), timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Any]:
        """The watermark may have moved, though the shard got nothing."""
        yield self._step(key, [], 0, None, timerValues)

    def close(self) -> None:
        """Nothing to release."""

    def _step(
        self, key: Any, sent: list[pa.Table], dropped: int, latest: int | None, timers: Any
    ) -> Any:
        import pandas as pd

        meta = self._meta.get() if self._meta.exists() else None
        version, query, token, before, number = meta or (VERSION, self._identity, "", None, 0)
        check_version(version)
        check_query(json.loads(query), json.loads(self._identity))
        slices, events = self._open.received(sent)
        slices = numbered(slices, number)
        watermark = self.clock.watermark(self._clock, before, latest, timers, self._open)
        held = self._held(token, before)
        missed = b""
        if self._options.late:
            late_ones = events.filter(pa.array(self._open.late(held, slices, events, before)))
            missed = to_bytes(late_ones) if late_ones.num_rows else b""
            events = events.select(self._query.columns)
        rows, held, late = self._open.advance(held, slices, events, before, watermark)
        if self._options.updates:
            early = self._open.early(held, slices, events, watermark)
            rows = pa.concat_tables([marked(early, final=False), marked(rows, final=True)])
        held = self._store(held, number)
        token = uuid.uuid4().hex
        self._meta.update((VERSION, self._identity, token, watermark, number + 1))
        _remember(token, held)
        if held.slices.num_rows or held.events.num_rows:
            self.clock.wind(self._clock, self._handle, watermark, self._open)
        starts = range(0, max(rows.num_rows, 1), ROWS_PER_PARCEL)
        packed = [to_bytes(rows.slice(at, ROWS_PER_PARCEL)) if len(rows) else b"" for at in starts]
        none = [0] * (len(packed) - 1)
        counts = (rows.num_rows, late, dropped, *self._grown(key, held))
        answer = {name: [n, *none] for name, n in zip(COUNTS, counts, strict=True)}
        return pd.DataFrame(answer | {"packed": packed, "missed": [missed] + [b""] * len(none)})

    def _grown(self, key: Any, held: Held) -> tuple[int, int]:
        """How many slices and events a shard remembers, and their bytes.

        In one batch a shard may get events and then a timer: both tell the state together.
        """
        tables = [held.slices, held.events]
        now = sum(t.num_rows for t in tables), sum(t.nbytes for t in tables)
        before = self._told.get(key, (0, 0))
        self._told[key] = now
        return now[0] - before[0], now[1] - before[1]

    def _held(self, token: str, watermark: int | None) -> Held:
        """What the shard remembers."""
        if token in _memory:
            return _memory.pop(token)
        stored = [(k[0], from_bytes(bytes(v[0]))) for k, v in self._chunks.iterator()]
        # Chunks may hold slices whose windows have all been emitted.
        slices = self._open.still_open(joined(stored, self._open.layout), watermark)
        if not self._whole.exists():
            read = pa.schema([self._source.field(name) for name in self._query.columns])
            return Held(slices, read.empty_table(), None)
        events, marks = (from_bytes(bytes(data)) for data in self._whole.get())
        return Held(slices, events, marks)

    def _store(self, held: Held, number: int) -> Held:
        """Write the chunk that this batch brought, remove chunks that are needed no more."""
        slices, alive, fresh = stored_after(held.slices, number)
        for (stored,) in list(self._chunks.keys()):
            if stored not in alive:
                self._chunks.removeKey((stored,))
        if fresh is not None:
            self._chunks.updateValue((number,), (to_bytes(fresh),))
        if held.marks is not None:
            self._whole.update((to_bytes(held.events), to_bytes(held.marks)))
        return Held(slices, held.events, held.marks)


def _remember(token: str, held: Held) -> None:
    _memory[token] = held
    while len(_memory) > REMEMBERED:
        _memory.popitem(last=False)
