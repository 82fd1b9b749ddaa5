"""Tables of any library with the Arrow C stream interface: DuckDB, ibis, nanoarrow and others.

A stream is read batch by batch, and of each batch only the columns that are needed are kept. A
reader can be read only once: a second time it would look like a table without events, so that is
refused.
"""

from __future__ import annotations

import weakref
from collections.abc import Container, Iterator
from typing import Any

import pyarrow as pa

from paneflow.errors import InputError

EXPECTED = (
    "expected pyarrow, pandas, polars, a list of dicts, or a table with the method "
    "__arrow_c_stream__"
)

_spent: weakref.WeakSet[pa.RecordBatchReader] = weakref.WeakSet()
"""Readers that have been read."""


def speaks(table: Any) -> bool:
    """Whether an object (and not just its class) exports an Arrow stream or array."""
    return not isinstance(table, type) and (
        hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__")
    )


def named(table: Any) -> str:
    """What a table is, for errors."""
    return f"a {type(table).__module__}.{type(table).__qualname__}"


def read(table: Any, wanted: Container[str]) -> pa.Table:
    """The columns that are wanted; others as nulls."""
    reader = _reader(table)
    kept = [place for place, name in enumerate(reader.schema.names) if name in wanted]
    schema = pa.schema([reader.schema.field(place) for place in kept])
    try:
        # Errors that a library raises while it computes its rows surface here.
        batches = [batch.select(kept) for batch in reader]
    except Exception as error:
        raise _unreadable(table, error) from error
    read = pa.Table.from_batches(batches, schema) if kept else None
    rows = sum(batch.num_rows for batch in batches)
    arrays = dict(zip(kept, read.columns, strict=True)) if read is not None else {}
    fields = [
        field if place in arrays else pa.field(field.name, pa.null())
        for place, field in enumerate(reader.schema)
    ]
    columns = [arrays.get(place, pa.nulls(rows)) for place in range(len(fields))]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def batches(table: Any) -> Iterator[pa.RecordBatch]:
    """The batches of a stream, read one at a time."""
    try:
        yield from _reader(table)
    except pa.ArrowException as error:
        raise _unreadable(table, error) from error


def _reader(table: Any) -> pa.RecordBatchReader:
    if isinstance(table, pa.RecordBatchReader):
        if table in _spent:
            raise InputError(
                "the RecordBatchReader has been read before, and can be read only once: keep what "
                "it gives in a table, with reader.read_all(), and pass the table each time"
            )
        _spent.add(table)
        return table
    try:
        if hasattr(table, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(table)
        batch = pa.record_batch(table)
    except Exception as error:
        raise _unreadable(table, error) from error
    return pa.RecordBatchReader.from_batches(batch.schema, [batch])


def _unreadable(table: Any, error: Exception) -> InputError:
    return InputError(
        f"{named(table)} cannot be read as a table ({str(error) or type(error).__name__}); "
        f"{EXPECTED}"
    )
