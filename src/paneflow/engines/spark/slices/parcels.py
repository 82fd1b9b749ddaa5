"""What tasks do with parcels: pack events or slices before a shuffle, answer after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.engines.spark.frames import batches_of, table_of
from paneflow.engines.spark.slices.blocks import Blocks
from paneflow.engines.spark.slices.packing import (
    EVENTS_PER_PARCEL,
    SHARDS,
    chunks,
    pack,
    shards_of,
    unpack,
)
from paneflow.engines.table import cut
from paneflow.slicing.slices import ROWS

if TYPE_CHECKING:
    from paneflow.query import Query


@dataclass(frozen=True)
class _Parcels(ABC):
    """Packs the events of a partition, before the shuffle."""

    query: Query
    source: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for number, gathered in enumerate(chunks(batches, EVENTS_PER_PARCEL)):
            # Parts are numbered in the order of the frame's rows.
            part = (context.partitionId() << 32) + number
            yield self.packed(table_of(gathered, self.source), part)

    @abstractmethod
    def packed(self, events: pa.Table, part: int) -> pa.RecordBatch:
        """The parcels of some events."""


@dataclass(frozen=True)
class EventParcels(_Parcels):
    """Events as they are."""

    def packed(self, events: pa.Table, part: int) -> pa.RecordBatch:
        return pack(events, shards_of(events, self.query.key, SHARDS), part)


@dataclass(frozen=True)
class SliceParcels(_Parcels):
    """Slices of the events, in the blocks that need them."""

    blocks: Blocks | None

    def packed(self, events: pa.Table, part: int) -> pa.RecordBatch:
        query = self.query
        if self.blocks is not None:
            query = query.with_key(query.key[:-1])
        slices = cut(query, events).table
        if self.blocks is not None:
            slices = self.blocks.deal(slices)
        keys = tuple(f"key:{name}" for name in self.query.key)
        return pack(slices, shards_of(slices, keys, SHARDS), part, ROWS)


@dataclass(frozen=True)
class FromParcels:
    """Answers from the parcels of a partition, after the shuffle."""

    answer: Any

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in unpack(batches, self.answer):
            yield from batches_of(rows, self.answer.schema)
