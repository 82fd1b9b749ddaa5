"""Packs slices, or events that cannot be sliced, for Spark's shuffle.

A parcel is an Arrow table for one shard of the keys, as bytes in one row. So whatever a query
keeps in its slices needs no counterpart in Spark's types, and a shuffle moves few rows. Parcels say
which part of the input they come from, since that decides the order of events of equal time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.errors import InputError
from paneflow.slicing.columns import read_column
from paneflow.slicing.keys import encode_keys

SHARDS = 64
EVENTS_PER_PARCEL = 1_000_000
"""Events that are sliced together: the more, the fewer slices are split in two."""

PARCELS = pa.schema(
    [("shard", pa.int32()), ("part", pa.int64()), ("parcel", pa.binary()), ("events", pa.int64())]
)

UNTOLD = -(2**63)
"""Stands for a missing time: pandas would turn integers with a null among them into floats."""
COUNTS = ("rows", "late", "dropped", "held", "held_bytes")
ANSWER = ", ".join(f"{name} long" for name in COUNTS) + ", packed binary, missed binary"
"""What a shard returns: counts, packed rows, and packed late events if asked for."""


def chunks(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[list[pa.RecordBatch]]:
    """Batches, collected until they hold at least this many rows."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(b.num_rows for b in held) >= rows:
            yield held
            held = []
    if held:
        yield held


def shards_of(table: pa.Table, key: tuple[str, ...], shards: int) -> Array:
    """The shard of every row: the same for the same key on every machine."""
    if not key:
        return np.zeros(table.num_rows, np.int64)
    codes, keys = encode_keys(table, key)
    mixed = np.zeros(keys.num_rows, np.uint64)
    for name in key:
        column = read_column(keys, name)
        hashes = column.hashes if len(column.values) else mixed
        if column.valid is not None:
            hashes = np.where(column.valid, hashes, np.uint64(0))
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + hashes
    # The low bits of a product depend on low bits alone; the high ones on all.
    shard: Array = ((mixed >> np.uint64(33)) % np.uint64(shards)).astype(np.int64)
    return shard[codes]


def pack(table: pa.Table, shard: Array, part: int, counted: str | None = None) -> pa.RecordBatch:
    """One parcel for each shard that has rows; rows keep their order.

    `counted` is the column that says how many events a row stands for; each is one without it.
    """
    order = np.argsort(shard, kind="stable")
    table = table.take(pa.array(order)).combine_chunks()
    present, first = np.unique(shard[order], return_index=True)
    ends = np.append(first[1:], len(order))
    parcels = [table.slice(a, b - a) for a, b in zip(first, ends, strict=True)]
    events = [int(np.sum(p.column(counted).to_numpy())) if counted else p.num_rows for p in parcels]
    columns = [
        pa.array(present.astype(np.int32)),
        pa.array(np.full(len(present), part)),
        pa.array([to_bytes(p) for p in parcels], pa.binary()),
        pa.array(events, pa.int64()),
    ]
    return pa.record_batch(columns, schema=PARCELS)


def to_bytes(table: pa.Table) -> bytes:
    """A table as bytes that know their own schema."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    kept: bytes = sink.getvalue().to_pybytes()
    return kept


def from_bytes(data: bytes) -> pa.Table:
    """The table that bytes hold."""
    try:
        return pa.ipc.open_stream(pa.py_buffer(data)).read_all()
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"what was stored or sent as a table is damaged ({error}): if it is the state of a "
            f"stream, restore the whole checkpoint from a copy, or name a new one"
        ) from None


def unpack(
    batches: Iterable[pa.RecordBatch], answer: Callable[[pa.Table], Iterable[pa.Table]]
) -> Iterator[pa.Table]:
    """The answers for each shard, from parcels that come sorted by shard and part."""
    shard: int | None = None
    held: list[bytes] = []
    for batch in batches:
        columns = batch.select(["shard", "parcel"]).to_pydict()
        for number, parcel in zip(columns["shard"], columns["parcel"], strict=True):
            if number != shard and held:
                yield from answer(pa.concat_tables(map(from_bytes, held)))
                held = []
            shard = number
            held.append(parcel)
    if held:
        yield from answer(pa.concat_tables(map(from_bytes, held)))
