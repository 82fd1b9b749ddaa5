"""Count windows over a finite frame, even if one key is most of it.

Where a count window begins depends on the position of events among all events of their key, which
a task that sees only some of them does not know. So positions are found in two passes. Spark sorts
the events by key and time into ranges of about the same size; then

1. each range is one task's. Keys that lie within it are answered there. The first and the last key
   may go on in other ranges: how many events they have here is told to all ranges behind, and the
   events are sent on as they are;
2. each range adds up what it was told, which is the position of its first event, and deals its
   events out by blocks of positions; a block also gets the events behind it that its last windows
   need;
3. each block is answered for the windows that begin in it.

No task sees more of a key than a range or its share of blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from paneflow.engines.spark.frames import batches_of, column, spark_schema, table_of
from paneflow.engines.spark.slices.packing import from_bytes, shards_of, to_bytes
from paneflow.engines.table import answer
from paneflow.slicing.keys import encode_keys
from paneflow.windows import Count

if TYPE_CHECKING:
    from paneflow.query import Query

AT = "at"
BLOCK = 200_000
"""Positions in a block, at least: this many events are answered quickly together."""
SIZES_PER_BLOCK = 8
"""The length of a block in windows: with 8, an eighth of the events is in two blocks."""
HASHES = 1 << 20

SENT = pa.schema(
    [
        ("task", pa.int32()),  # where it goes
        ("key", pa.binary()),  # the one key it is about; null for rows that are done
        ("place", pa.int64()),  # the range it comes from, and then the block it is for
        ("first", pa.int64()),  # the position of its first event
        ("count", pa.int64()),
        ("events", pa.binary()),  # null if it only tells of them
        ("rows", pa.binary()),
    ]
)


def has_only_counts(query: Query) -> bool:
    """Whether all windows are by positions."""
    return all(isinstance(window, Count) for window in query.windows.values())


def over(query: Query, frame: Any, source: pa.Schema, schema: pa.Schema, merge: str) -> Any:
    """The rows of count windows over a finite frame, as a frame."""
    from pyspark.sql import functions as F

    tasks = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    order = [*(column(source, name) for name in (*query.key, query.time)), F.col(AT)]
    placed = frame.withColumn(AT, F.monotonically_increasing_id())
    ranged = placed.repartitionByRange(tasks, *order).sortWithinPartitions(*order)
    length = max(BLOCK, SIZES_PER_BLOCK * _longest(query))
    sent = ranged.drop(AT)
    for step in (_Ranges(query, source, merge, tasks), _Places(query, length, tasks)):
        sent = sent.mapInArrow(step, spark_schema(SENT)).repartitionById(tasks, "task")
    sent = sent.sortWithinPartitions("key", "place", "first")
    return sent.mapInArrow(_Blocks(query, length, schema, merge), spark_schema(schema))


def _longest(query: Query) -> int:
    return max(w.size for w in query.windows.values() if isinstance(w, Count))


@dataclass(frozen=True)
class _Ranges:
    """The first pass: answers for keys within a range, sends on the first and the last."""

    query: Query
    source: pa.Schema
    merge: str
    tasks: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        mine = context.partitionId()
        gathered = [batch for batch in batches if batch.num_rows]
        if not gathered:
            return
        events = table_of(gathered, self.source)
        codes, _ = encode_keys(events, self.query.key)
        cuts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1, append=codes[-1] + 1))
        first, last = int(cuts[1]), int(cuts[-2])
        edges = [events.slice(0, first)]
        if last > 0:
            edges.append(events.slice(last))
        if last > first:
            inner = answer(self.query, events.slice(first, last - first), merge=self.merge)
            yield _batch([(mine, None, mine, 0, 0, None, to_bytes(inner))])
        for edge in edges:
            key = repr(edge.slice(0, 1).select(list(self.query.key)).to_pylist()).encode()
            behind = range(mine + 1, self.tasks)
            told = [(task, key, mine, 0, edge.num_rows, None, None) for task in behind]
            yield _batch([*told, (mine, key, mine, 0, edge.num_rows, to_bytes(edge), None)])


@dataclass(frozen=True)
class _Places:
    """The second pass: knows where a range's events stand, and deals them out by blocks."""

    query: Query
    length: int
    """How many positions a block has."""
    tasks: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        mine = context.partitionId()
        told: dict[bytes, int] = {}
        edges: list[tuple[bytes, bytes]] = []
        for batch in batches:
            for sent in batch.to_pylist():
                if sent["rows"] is not None:
                    yield _batch([tuple(sent.values())])
                elif sent["place"] < mine:
                    told[sent["key"]] = told.get(sent["key"], 0) + sent["count"]
                else:
                    edges.append((sent["key"], sent["events"]))
        for key, packed in edges:
            yield from self._dealt(key, from_bytes(packed), told.get(key, 0))

    def _dealt(self, key: bytes, events: pa.Table, first: int) -> Iterator[pa.RecordBatch]:
        length, longest = self.length, _longest(self.query)
        behind = first + events.num_rows
        shard = int(shards_of(events.slice(0, 1), self.query.key, HASHES)[0])
        for block in range(max(first - longest + 1, 0) // length, (behind - 1) // length + 1):
            begin = max(block * length, first)
            end = min((block + 1) * length + longest - 1, behind)
            if begin < end:
                part = events.slice(begin - first, end - begin)
                task = (shard + block) % self.tasks
                yield _batch([(task, key, block, begin, end - begin, to_bytes(part), None)])


@dataclass(frozen=True)
class _Blocks:
    """The third step: the windows that begin in a block."""

    query: Query
    length: int
    schema: pa.Schema
    merge: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.Table] = []
        mine: tuple[bytes, int] | None = None
        for batch in batches:
            for sent in batch.to_pylist():
                if sent["rows"] is not None:
                    yield from batches_of(from_bytes(sent["rows"]), self.schema)
                    continue
                if (sent["key"], sent["place"]) != mine:
                    yield from self._answer(mine, held)
                    mine, held = (sent["key"], sent["place"]), []
                held.append(from_bytes(sent["events"]))
        yield from self._answer(mine, held)

    def _answer(
        self, mine: tuple[bytes, int] | None, held: list[pa.Table]
    ) -> Iterator[pa.RecordBatch]:
        if mine is not None:
            events = pa.concat_tables(held)
            for label, window in self.query.windows.items():
                assert isinstance(window, Count)
                yield from batches_of(self._rows(label, window, mine[1], events), self.schema)

    def _rows(self, label: str, window: Count, block: int, events: pa.Table) -> pa.Table:
        """The rows of one window that begin in the block, whose first event stands first."""
        start = block * self.length
        end = start + events.num_rows
        earliest = -(-start // window.slide)
        query = self.query.with_windows({label: window})
        rows = answer(query, events.slice(earliest * window.slide - start), merge=self.merge)
        seq = rows.column("seq").to_numpy() + earliest
        begins = seq * window.slide
        # Of windows that are not full only the first may be emitted; others began before it.
        open_before = (seq > 0) & (begins - window.slide + window.size > end)
        own = (begins < start + self.length) & ~open_before
        place = rows.schema.get_field_index("seq")
        return rows.set_column(place, "seq", pa.array(seq)).filter(pa.array(own))


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, SENT, strict=True)]
    return pa.record_batch(arrays, schema=SENT)
