"""The state of one shard of keys in Spark's state store.

Slices are kept in chunks (`chunked.py`), one for each batch that brought some.

Reading chunks back for every batch would cost more than the merging. The worker process outlives
a batch, so it remembers what it wrote last, under a token that the state holds as well: only if
both are the same, memory is what the state holds.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from paneflow.engines.spark.chunked import joined, numbered, stored_after
from paneflow.engines.spark.packing import from_bytes, to_bytes
from paneflow.errors import InputError
from paneflow.slicing.live import Live

if TYPE_CHECKING:
    from paneflow.query import Query

VERSION = 1
"""Of the layout below. Chunks are tables of slices, which carry a version of their own."""
META = "version int, token string, watermark long, next long"
REMEMBERED = 256

_memory: OrderedDict[str, pa.Table] = OrderedDict()


class ShardProcessor(StatefulProcessor):
    """Slices in, rows out, for each shard."""

    def __init__(self, query: Query, layout: pa.Schema) -> None:
        self._query = query
        self._layout = layout

    def init(self, handle: Any) -> None:
        """Open the state."""
        self._live = Live(self._query, self._layout)
        self._handle = handle
        self._meta = handle.getValueState("meta", META)
        self._chunks = handle.getMapState("chunks", "number long", "slices binary")

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
        fresh = [from_bytes(parcel) for _, parcel in sorted(parcels, key=lambda p: p[0])]
        yield self._step(fresh, dropped, timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Any]:
        """The watermark has moved, though the shard got nothing."""
        yield self._step([], 0, timerValues)

    def close(self) -> None:
        """Nothing is held open."""

    def _step(self, fresh: list[pa.Table], dropped: int, timers: Any) -> Any:
        import pandas as pd

        meta = self._meta.get() if self._meta.exists() else None
        version, token, before, number = meta or (VERSION, "", None, 0)
        if version != VERSION:
            raise InputError(
                f"the stream's state has version {version}, and this paneflow reads {VERSION}: "
                f"go on with the paneflow that wrote it, or start from a new checkpoint"
            )
        held = self._held(token, before)
        brought = numbered(pa.concat_tables(fresh), number) if fresh else held.slice(0, 0)
        seen = int(timers.getCurrentWatermarkInMs()) * 1000
        watermark = seen if seen > 0 else before
        made = self._live.advance(held, brought, before, watermark)
        kept = self._store(made.kept, number)
        token = uuid.uuid4().hex
        self._meta.update((VERSION, token, watermark, number + 1))
        _remember(token, kept)
        if kept.num_rows:
            self._handle.registerTimer(max(seen // 1000, 0) + 1)
        rows = to_bytes(made.rows) if made.rows.num_rows else b""
        return pd.DataFrame({"late": [made.late], "dropped": [dropped], "rows": [rows]})

    def _held(self, token: str, watermark: int | None) -> pa.Table:
        """The slices of open windows."""
        if token in _memory:
            return _memory.pop(token)
        stored = [(k[0], from_bytes(bytes(v[0]))) for k, v in self._chunks.iterator()]
        for _, slices in stored:
            self._live.require(slices)
        held = joined(stored, self._layout)
        # Chunks may hold slices whose windows have all been emitted.
        return held if watermark is None else self._live.still_open(held, watermark)

    def _store(self, kept: pa.Table, number: int) -> pa.Table:
        """Write the chunk that this batch brought, remove chunks that are needed no more."""
        kept, alive, fresh = stored_after(kept, number)
        for (stored,) in list(self._chunks.keys()):
            if stored not in alive:
                self._chunks.removeKey((stored,))
        if fresh is not None:
            self._chunks.updateValue((number,), (to_bytes(fresh),))
        return kept


def _remember(token: str, slices: pa.Table) -> None:
    _memory[token] = slices
    while len(_memory) > REMEMBERED:
        _memory.popitem(last=False)
