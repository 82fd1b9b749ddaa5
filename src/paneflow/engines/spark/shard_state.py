"""The state of one shard of keys in Spark's state store.

Slices are kept in chunks (`chunked.py`), one for each batch that brought some. Events that windows
need as they are, and the marks of their keys, are written as a whole.

Reading chunks back for every batch would cost more than the merging. The worker process outlives
a batch, so it remembers what it wrote last, under a token that the state holds as well: only if
both are the same, memory is what the state holds.
"""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from paneflow.engines.spark.chunked import joined, numbered, stored_after
from paneflow.engines.spark.packing import from_bytes, to_bytes
from paneflow.errors import InputError
from paneflow.slicing.layout import identity_of
from paneflow.slicing.stream import Held, OpenWindows

if TYPE_CHECKING:
    from paneflow.query import Query

VERSION = 1
"""Of the layout below. Chunks are tables of slices, which carry a version of their own."""
META = "version int, query string, token string, watermark long, next long"
WHOLE = "events binary, marks binary"
REMEMBERED = 256

_memory: OrderedDict[str, Held] = OrderedDict()


class ShardProcessor(StatefulProcessor):
    """Parcels in, rows out, for each shard."""

    def __init__(self, query: Query, source: pa.Schema) -> None:
        self._query = query
        self._source = source

    def init(self, handle: Any) -> None:
        """Open the state."""
        self._open = OpenWindows(self._query, self._source)
        self._identity = json.dumps(identity_of(self._query))
        self._handle = handle
        self._meta = handle.getValueState("meta", META)
        self._chunks = handle.getMapState("chunks", "number long", "slices binary")
        self._whole = handle.getValueState("whole", WHOLE)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        """Take the parcels of a batch."""
        parcels: list[tuple[int, bytes]] = []
        dropped = 0
        for frame in rows:
            for part, parcel, events in zip(
                frame["part"], frame["parcel"], frame["events"], strict=True
            ):
                if parcel:
                    parcels.append((part, bytes(parcel)))
                else:
                    dropped += int(events)
        sent = [from_bytes(parcel) for _, parcel in sorted(parcels, key=lambda p: p[0])]
        yield self._step(sent, dropped, timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Any]:
        """The watermark has moved, though the shard got nothing."""
        yield self._step([], 0, timerValues)

    def close(self) -> None:
        """Nothing is held open."""

    def _step(self, sent: list[pa.Table], dropped: int, timers: Any) -> Any:
        import pandas as pd

        meta = self._meta.get() if self._meta.exists() else None
        version, query, token, before, number = meta or (VERSION, self._identity, "", None, 0)
        if version != VERSION:
            raise InputError(
                f"the stream's state has version {version}, and this paneflow reads {VERSION}: "
                f"go on with the paneflow that wrote it, or start from a new checkpoint"
            )
        if query != self._identity:
            raise InputError(
                f"the stream's state belongs to another query ({query}), not to "
                f"{self._identity}: name another checkpoint, or ask the same question"
            )
        slices, events = self._open.received(sent)
        seen = int(timers.getCurrentWatermarkInMs()) * 1000
        watermark = seen if seen > 0 else before
        rows, held, late = self._open.advance(
            self._held(token, before), numbered(slices, number), events, before, watermark
        )
        held = self._store(held, number)
        token = uuid.uuid4().hex
        self._meta.update((VERSION, self._identity, token, watermark, number + 1))
        _remember(token, held)
        if held.slices.num_rows or held.events.num_rows:
            self._handle.registerTimer(max(seen // 1000, 0) + 1)
        packed = to_bytes(rows) if rows.num_rows else b""
        return pd.DataFrame({"late": [late], "dropped": [dropped], "rows": [packed]})

    def _held(self, token: str, watermark: int | None) -> Held:
        """What the shard remembers."""
        if token in _memory:
            return _memory.pop(token)
        stored = [(k[0], from_bytes(bytes(v[0]))) for k, v in self._chunks.iterator()]
        # Chunks may hold slices whose windows have all been emitted.
        slices = self._open.still_open(joined(stored, self._open.layout), watermark)
        if not self._whole.exists():
            return Held(slices, self._source.empty_table(), None)
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
