"""A node's state in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from paneflow.engines.edge.journal.errors import JournalError
from paneflow.engines.edge.journal.files import (
    Kind,
    read_groups,
    write_group,
    write_header,
)


class Stored(NamedTuple):
    """A snapshot as it was stored: values that JSON can hold, and tables."""

    about: dict[str, Any]
    tables: dict[str, pa.Table]


def write_snapshot(number: int, about: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> bytes:
    """A whole file."""
    head = json.dumps({"about": dict(about), "tables": list(tables)}).encode()
    groups = [head, *map(_to_bytes, tables.values())]
    written = (write_group(data, index) for index, data in enumerate(groups))
    return write_header(Kind.SNAPSHOT, number) + b"".join(written)


def read_snapshot(path: Path, data: bytes, number: int) -> Stored:
    """What a file holds. It was written as a whole, so it must be whole."""
    groups, end = read_groups(path, data, Kind.SNAPSHOT, number)
    head = json.loads(groups[0]) if groups else {"tables": []}
    if end < len(data) or len(groups) != 1 + len(head["tables"]):
        raise JournalError(
            f"{path} is damaged at byte {end:,}: restore the folder from a copy, or give the node "
            f"an empty one"
        )
    tables = zip(head["tables"], map(_from_bytes, groups[1:]), strict=True)
    return Stored(head["about"], dict(tables))


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _from_bytes(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()
