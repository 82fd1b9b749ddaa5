"""Turns whatever a user calls an input into batches, in the order in which they arrive.

Batches are read one at a time, so an input may be larger than memory, or never end.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from paneflow.errors import InputError
from paneflow.tables import streams

FORMATS = {
    ".arrow": "arrow",
    ".csv": "csv",
    ".feather": "feather",
    ".ipc": "arrow",
    ".jsonl": "json",
    ".orc": "orc",
    ".parquet": "parquet",
}
EXPECTED = (
    "expected an iterator of tables, an Arrow stream, a connected socket or an open file that "
    "carries one, or the path of a file"
)


Origin = Iterable[Any] | BinaryIO | socket.socket | str | os.PathLike[str]
"""What can be read: a table that exports an Arrow stream is an iterable, too."""


class Input(NamedTuple):
    """Batches, and a way to stop waiting for them."""

    batches: Iterator[Any]
    give_up: Callable[[], None]
    """Ends the wait for the next batch, where that is possible; another thread may call it."""


def open_input(given: Origin) -> Input:
    """An input, opened; nothing has been read yet.

    >>> [batch.num_rows for batch in open_input(iter([pa.table({"t": [1, 2]})])).batches]
    [2]
    """
    if isinstance(given, (str, os.PathLike)):
        return Input(_file(Path(given)), _nothing_to_end)
    if isinstance(given, socket.socket):
        return Input(_carried(given.makefile("rb"), "socket"), lambda: _shut(given))
    if streams.speaks(given):
        return Input(iter(streams.batches(given)), _nothing_to_end)
    if hasattr(given, "read"):
        return Input(_carried(given, "file"), _nothing_to_end)
    if isinstance(given, list) and all(isinstance(row, dict) for row in given):
        return Input(iter([given]), _nothing_to_end)
    if isinstance(given, (bytes, dict)) or not isinstance(given, Iterable):
        raise InputError(f"{streams.named(given)} is not an input of a stream; {EXPECTED}")
    return Input(iter(given), _nothing_to_end)


def _file(path: Path) -> Iterator[pa.RecordBatch]:
    """The batches of a file, in order."""
    import pyarrow.dataset as ds  # needed for files only, and slow to load

    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        known = ", ".join(FORMATS)
        raise InputError(f"{str(path)!r} has none of the endings {known}; {EXPECTED}")
    if not path.is_file():
        raise InputError(f"{str(path)!r} is not a file; {EXPECTED}")
    return iter(ds.dataset(path, format=kind).to_batches())


def _carried(file: Any, what: str) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow stream that a file or socket carries.

    Opened with the first batch: the writer may not have sent anything yet.
    """
    try:
        reader = pa.ipc.open_stream(file)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"the {what} does not carry an Arrow stream ({error}): write one with "
            f"pyarrow.ipc.new_stream"
        ) from error
    yield from reader


def _shut(connection: socket.socket) -> None:
    """Let a read that waits for the other side return."""
    with contextlib.suppress(OSError):  # it is closed, or the other side is gone
        connection.shutdown(socket.SHUT_RD)


def _nothing_to_end() -> None:
    """For inputs whose wait cannot be ended from outside."""
