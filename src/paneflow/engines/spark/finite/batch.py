"""A finite DataFrame: slices before the shuffle, windows after it.

There are five ways to answer, and the first that fits is taken:

1. count windows are found by position (`positions.py`);
2. windows that do not overlap are answered by Spark alone (`native_rows.py`);
3. slices are cut by Spark's own aggregates, so that only slices cross into Python
   (`slices/native.py`);
4. slices are cut in Python, if Spark has no such aggregate (`slices/parcels.py`);
5. events are collected by key, if windows cannot be sliced part by part.

Slices are distributed by key and by block of time (`slices/blocks.py`), so that no key overloads a
task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.engines import table
from paneflow.engines.spark.finite import positions
from paneflow.engines.spark.finite.native_rows import rows_natively
from paneflow.engines.spark.finite.pieces import spans, without_sessions
from paneflow.engines.spark.frames import batches_of, rows_schema, spark_schema, table_of
from paneflow.engines.spark.slices.blocks import BLOCK, Blocks
from paneflow.engines.spark.slices.native import carried, restored, slices_natively
from paneflow.engines.spark.slices.packing import PARCELS, chunks
from paneflow.engines.spark.slices.parcels import EventParcels, FromParcels, SliceParcels
from paneflow.slicing.layout import not_sliceable
from paneflow.slicing.slices import Slices

if TYPE_CHECKING:
    from paneflow.query import Query

SLICES_PER_CALL = 400_000
ROWS_PER_CALL = 4_000_000
"""Rows that a task makes at a time: a few hundred megabytes."""


def over(query: Query, frame: Any, source: pa.Schema, merge: str, max_rows: int | None) -> Any:
    """The rows of a query over a finite frame, as a frame."""
    schema = rows_schema(query, source)
    if positions.has_only_counts(query):
        return positions.over(query, frame, source, schema, merge)
    if not_sliceable(query, source) is not None:
        answer = _Answer(query, schema, merge, max_rows)
        return _by_parcels(frame, EventParcels(query, source), answer)
    rows = rows_natively(query, frame, source, schema)
    if rows is not None:
        return rows
    blocks = Blocks.of(query)
    inner, wider = query, source
    if blocks is not None:
        inner = query.with_key((*query.key, BLOCK))
        wider = source.append(pa.field(BLOCK, pa.int64()))
    layout = table.layout_of(inner, wider)
    finish = Finish(inner, layout, schema, merge, blocks, max_rows)
    further = {} if blocks is None else {f"key:{BLOCK}": blocks.column()}
    native = slices_natively(query, frame, source, layout, further)
    if native is None:
        return _by_parcels(frame, SliceParcels(inner, source, blocks), finish)
    columns = carried(layout, inner, wider)
    keys = [f"c{k}" for k, name in enumerate(layout.names) if name.startswith("key:")]
    ordered = native.repartition(*keys).sortWithinPartitions(*keys)
    return ordered.mapInArrow(FromNative(finish, columns, keys), spark_schema(schema))


def _by_parcels(frame: Any, parcel: Any, answer: Any) -> Any:
    """Pack before the shuffle, answer after it."""
    packed = frame.mapInArrow(parcel, spark_schema(PARCELS))
    spread = packed.repartition("shard").sortWithinPartitions("shard", "part")
    return spread.mapInArrow(FromParcels(answer), spark_schema(answer.schema))


@dataclass(frozen=True)
class Finish:
    """Turns the slices of whole keys into rows, a limited number at a time."""

    query: Query
    layout: pa.Schema
    schema: pa.Schema
    merge: str
    blocks: Blocks | None
    max_rows: int | None

    def __call__(self, slices: pa.Table) -> Iterator[pa.Table]:
        marked = Slices(slices.replace_schema_metadata(self.layout.metadata))
        for number, (after, until) in enumerate(
            spans(self.query, marked.table, self.max_rows, ROWS_PER_CALL)
        ):
            rows = table.finish(
                self.query, marked, merge=self.merge, ends_in=(after, until), max_rows=None
            )
            if number:
                rows = without_sessions(self.query, rows)  # they came with the first span
            yield rows if self.blocks is None else self.blocks.own(rows)


@dataclass(frozen=True)
class _Answer:
    """Turns the events of whole keys into rows."""

    query: Query
    schema: pa.Schema
    merge: str
    max_rows: int | None

    def __call__(self, events: pa.Table) -> Iterator[pa.Table]:
        yield table.answer(self.query, events, merge=self.merge, max_rows=self.max_rows)


@dataclass(frozen=True)
class FromNative:
    """Slices sorted by key, answered many keys at a time."""

    finish: Finish
    columns: pa.Schema
    keys: list[str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rest = self.columns.empty_table()
        for gathered in chunks(batches, SLICES_PER_CALL):
            more = table_of(gathered, self.columns)
            held = pa.concat_tables([rest, more]).combine_chunks()
            cut = self._last_key_begins(held)
            yield from self._answer(held.slice(0, cut))
            rest = held.slice(cut)
        yield from self._answer(rest)

    def _last_key_begins(self, slices: pa.Table) -> int:
        """Where the last key begins; more of its slices may follow in the next batch."""
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
            for rows in self.finish(restored(slices, self.finish.layout)):
                yield from batches_of(rows, self.finish.schema)
