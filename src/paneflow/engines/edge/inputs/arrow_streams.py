"""Events as bytes: Arrow IPC streams, which are read without being copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from paneflow.errors import InputError

_ALIGNED = 8
"""Kernels read eight bytes at a time, and are slower or absent for arrays that begin in between."""


def write_events(events: pa.Table, most_bytes: int) -> Iterator[pa.Buffer]:
    """Events as Arrow IPC streams, none of them longer than the child takes."""
    counted = pa.MockOutputStream()
    _write(events, counted)
    if counted.size() <= most_bytes:
        buffer = pa.allocate_buffer(counted.size())
        _write(events, pa.FixedSizeBufferWriter(buffer))
        yield buffer
        return
    half = events.num_rows // 2
    if half == 0:
        raise InputError(
            f"one event has {counted.size():,} bytes, and the child takes messages of at most "
            f"{most_bytes:,}: leave out what the query does not read, or raise the child's limit"
        )
    yield from write_events(events.slice(0, half), most_bytes)
    yield from write_events(events.slice(half), most_bytes)


def read_events(data: memoryview, most_rows: int) -> pa.Table:
    """Events from an Arrow IPC stream, which is not copied if it lies well in memory."""
    buffer = pa.py_buffer(data)
    if buffer.address % _ALIGNED:
        buffer = pa.py_buffer(bytes(data))
    try:
        with pa.ipc.open_stream(buffer) as stream:
            batches = list(stream)
        events = pa.Table.from_batches(batches, stream.schema)
        # Columns of nulls have no bytes, so their lengths may be anything.
        if events.num_rows <= most_rows:
            events.validate(full=True)  # offsets of damaged text could point anywhere
            return events
    except (OSError, pa.ArrowException, ValueError, MemoryError) as error:
        raise InputError(
            f"the events are no Arrow IPC stream ({error}): write them with pyarrow.ipc.new_stream"
        ) from None
    raise InputError(
        f"a message of {len(data):,} bytes claims to hold {events.num_rows:,} events, more than a "
        f"message of the permitted size can hold"
    )


def _write(events: pa.Table, sink: Any) -> None:
    with pa.ipc.new_stream(sink, events.schema) as stream:
        stream.write_table(events)
