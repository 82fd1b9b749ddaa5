"""A finite DataFrame: slices before the shuffle, windows behind it.

Three ways, the first that fits: slices by Spark's own aggregates, so that only slices cross into
Python; slices cut in Python, where an aggregate has no native form; whole events brought together
by key, where windows cannot be sliced part by part.

A key may be most of the data. Slices are therefore dealt out by key and by block of time; a block
also gets the slices before it that its first windows need, and answers for the windows that end
in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.engines.spark.frames import batches_of, chosen, rows_schema, spark_schema, table_of
from paneflow.engines.spark.native import carried, slices_natively
from paneflow.engines.spark.packing import (
    EVENTS_PER_PARCEL,
    PARCELS,
    SHARDS,
    chunks,
    pack,
    shards_of,
    unpack,
)
from paneflow.slicing.layout import not_sliceable
from paneflow.slicing.slices import ROWS, START, Slices
from paneflow.windows import Sliding

if TYPE_CHECKING:
    from paneflow.query import Query

BLOCK = "paneflow:block"
RANGES_PER_BLOCK = 8
"""Blocks are so many ranges long: an eighth of the slices is in two blocks."""
SLICES_PER_CALL = 400_000


def over(query: Query, frame: Any, source: pa.Schema, merge: str) -> Any:
    """The rows of a query over a finite frame, as a frame."""
    schema = rows_schema(query, source)
    if not_sliceable(query, source) is not None:
        return _by_parcels(query, frame, _Events(query, source), _Answer(query, schema, merge))
    blocks = Blocks.of(query)
    inner, wider = query, source
    if blocks is not None:
        inner = query.with_key((*query.key, BLOCK))
        wider = source.append(pa.field(BLOCK, pa.int64()))
    layout = inner.slice(wider.empty_table()).table.schema
    finish = Finish(inner, layout, schema, merge, blocks)
    further = {} if blocks is None else {f"key:{BLOCK}": blocks.column()}
    native = slices_natively(query, frame, source, layout, further)
    if native is None:
        return _by_parcels(query, frame, _Cut(inner, source, blocks), finish)
    columns = carried(layout, inner, wider)
    keys = [c for c, name in zip(columns.names, layout.names, strict=True) if name[:4] == "key:"]
    ordered = native.repartition(*keys).sortWithinPartitions(*keys)
    return ordered.mapInArrow(_FromNative(finish, columns, keys), spark_schema(schema))


def _by_parcels(query: Query, frame: Any, parcel: Any, answer: Any) -> Any:
    """Pack before the shuffle, answer behind it."""
    packed = chosen(frame, query.columns).mapInArrow(parcel, spark_schema(PARCELS))
    spread = packed.repartition("shard").sortWithinPartitions("shard", "part")
    return spread.mapInArrow(_FromParcels(answer), spark_schema(answer.schema))


@dataclass(frozen=True)
class Blocks:
    """Blocks of time, and the longest range of a window."""

    length: int
    longest: int

    @classmethod
    def of(cls, query: Query) -> Blocks | None:
        """Blocks for a query; None where windows are not bounded by time alone."""
        if not all(isinstance(w, Sliding) for w in query.windows.values()):
            return None
        longest = max(w.range.value for w in query.windows.values() if isinstance(w, Sliding))
        return cls(RANGES_PER_BLOCK * longest, longest)

    def column(self) -> Any:
        """Spark's rows for a slice that starts at s: one for each block that needs it."""
        from pyspark.sql import functions as F

        last = f"s + {self.longest - 1}L"
        first, last = (f"({t} - pmod({t}, {self.length}L)) div {self.length}L" for t in ("s", last))
        return F.explode(F.expr(f"sequence({first}, {last})"))

    def deal(self, slices: pa.Table) -> pa.Table:
        """The same for slices in Python."""
        start = slices.column(START).cast(pa.int64()).to_numpy()
        first = start // self.length
        times = (start + self.longest - 1) // self.length - first + 1
        rows = np.repeat(np.arange(len(start)), times)
        step = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
        dealt = slices.take(pa.array(rows))
        place = slices.schema.get_field_index(START)
        return dealt.add_column(place, f"key:{BLOCK}", pa.array(first[rows] + step))

    def own(self, rows: pa.Table) -> pa.Table:
        """The rows of windows that end in their block."""
        end = rows.column("end").cast(pa.int64()).to_numpy()
        block = rows.column(BLOCK).to_numpy()
        return rows.filter(pa.array((end - 1) // self.length == block)).drop_columns([BLOCK])


@dataclass(frozen=True)
class Finish:
    """Slices of whole keys in, rows out."""

    query: Query
    layout: pa.Schema
    schema: pa.Schema
    merge: str
    blocks: Blocks | None

    def __call__(self, slices: pa.Table) -> pa.Table:
        marked = slices.replace_schema_metadata(self.layout.metadata)
        rows = self.query.finish(Slices(marked), merge=self.merge)
        return rows if self.blocks is None else self.blocks.own(rows)


@dataclass(frozen=True)
class _Answer:
    """Events of whole keys in, rows out."""

    query: Query
    schema: pa.Schema
    merge: str

    def __call__(self, events: pa.Table) -> pa.Table:
        rows: pa.Table = self.query.over(events, merge=self.merge)
        return rows


@dataclass(frozen=True)
class _FromParcels:
    """The second half of the way of parcels, for each partition."""

    answer: Any

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in unpack(batches, self.answer):
            yield from batches_of(rows, self.answer.schema)


@dataclass(frozen=True)
class _FromNative:
    """Slices sorted by key, answered many keys at a time."""

    finish: Finish
    columns: pa.Schema
    keys: list[str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rest: list[pa.RecordBatch] = []
        for gathered in chunks(batches, SLICES_PER_CALL):
            held = table_of([*rest, *gathered], self.columns).combine_chunks()
            cut = self._last_key_begins(held)
            yield from self._answer(held.slice(0, cut))
            rest = held.slice(cut).to_batches()
        if rest:
            yield from self._answer(table_of(rest, self.columns))

    def _last_key_begins(self, slices: pa.Table) -> int:
        """Where the last key begins, of which more slices may come."""
        same = np.ones(slices.num_rows, np.bool_)
        for name in self.keys:
            column = slices.column(name)
            last = column[-1]
            equal = pc.is_null(column) if not last.is_valid else pc.equal(column, last)
            same &= pc.fill_null(equal, False).to_numpy()
        differing = np.flatnonzero(~same)
        return int(differing[-1]) + 1 if len(differing) else 0

    def _answer(self, slices: pa.Table) -> Iterator[pa.RecordBatch]:
        if slices.num_rows:
            named = slices.rename_columns(self.finish.layout.names).cast(self.finish.layout)
            yield from batches_of(self.finish(named), self.finish.schema)


@dataclass(frozen=True)
class _Parcel:
    """The first half of the way of parcels, for each partition."""

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

    def packed(self, events: pa.Table, part: int) -> pa.RecordBatch:
        raise NotImplementedError


@dataclass(frozen=True)
class _Events(_Parcel):
    """Events as they are."""

    def packed(self, events: pa.Table, part: int) -> pa.RecordBatch:
        return pack(events, shards_of(events, self.query.key, SHARDS), part)


@dataclass(frozen=True)
class _Cut(_Parcel):
    """Slices of the events, in the blocks that need them."""

    blocks: Blocks | None

    def packed(self, events: pa.Table, part: int) -> pa.RecordBatch:
        query = self.query
        if self.blocks is not None:
            query = query.with_key(query.key[:-1])
        slices = query.slice(events).table
        if self.blocks is not None:
            slices = self.blocks.deal(slices)
        keys = tuple(f"key:{name}" for name in self.query.key)
        return pack(slices, shards_of(slices, keys, SHARDS), part, ROWS)
