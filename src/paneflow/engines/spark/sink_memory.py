"""What a fused sink remembers, on disk beside Spark's checkpoint.

Slices lie in chunks, one file for each batch that brought some, written once. Events that windows
need as they are lie in the last batch's own file. The commit of a batch names the files that are
needed; it takes the place of the one before by a rename.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.engines.spark.chunked import joined
from paneflow.engines.spark.packing import from_bytes, to_bytes
from paneflow.engines.spark.versions import (
    VERSION,
    check_query,
    check_version,
    stream_identity,
)
from paneflow.errors import InputError
from paneflow.slicing.stream import Held

if TYPE_CHECKING:
    from paneflow.query import Query

BEGUN: dict[str, Any] = {
    "batch": -1,
    "seen": None,
    "watermark": None,
    "late": 0,
    "dropped": 0,
    "chunks": [],
    "whole": False,
    "closing": None,
    "beats": False,
}
"""The state before the first batch; also what older versions did not write."""


@dataclass(frozen=True)
class Progress:
    """How far a stream has come that was started by `write_stream`."""

    batch: int
    """The last batch that brought or closed anything; -1 before the first."""
    watermark: datetime | None
    late: int
    """Events that came when every window they would have joined had been emitted."""
    dropped: int
    """Events without a time, or too far ahead."""


def progress(checkpoint: Any) -> Progress:
    """How far a stream has come, whether it runs or not."""
    commit = _commit_of(Path(checkpoint) / "paneflow")
    if not commit.exists():
        raise InputError(
            f"{checkpoint} holds no commit of write_stream: name the checkpoint of a stream that "
            f"has done a batch"
        )
    state = BEGUN | json.loads(commit.read_text())
    check_version(state["version"])
    micros = state["watermark"]
    moment = None
    if micros is not None:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return Progress(state["batch"], moment, state["late"], state["dropped"])


class Memory:
    """The open slices and how far the stream has come."""

    def __init__(self, folder: Path, query: Query, beats: bool) -> None:
        self._folder = folder
        identity = json.loads(json.dumps(stream_identity(query)))
        self.state = BEGUN | {"version": VERSION, "query": identity, "beats": beats}
        if _commit_of(folder).exists():
            found = BEGUN | json.loads(_commit_of(folder).read_text())
            check_version(found["version"])
            check_query(found["query"], identity)
            if found["beats"] != beats:
                raise InputError(
                    f"the checkpoint's stream was started {'with' if found['beats'] else 'without'}"
                    f" idle, and Spark cannot go on with other sources: start it as before, or "
                    f"name a new checkpoint"
                )
            self.state = found | {"version": VERSION}
        folder.mkdir(parents=True, exist_ok=True)

    def load(
        self, layout: pa.Schema, source: pa.Schema
    ) -> tuple[pa.Table, pa.Table, pa.Table | None]:
        """Slices, events and marks of the last commit."""
        chunks = self.state["chunks"]
        stored = [(n, from_bytes(self._path("slices", n).read_bytes())) for n in chunks]
        events, marks = source.empty_table(), None
        if self.state["whole"]:
            events, marks = (
                from_bytes(self._path(kind, self.state["batch"]).read_bytes())
                for kind in ("events", "marks")
            )
        return joined(stored, layout), events, marks

    def close_at(self, batch: int, watermark: int) -> None:
        """Say that a batch closes windows, before it does: done again, it must do so again."""
        self.state = self.state | {"closing": {"batch": batch, "watermark": watermark}}
        _write(_commit_of(self._folder), json.dumps(self.state).encode())

    def closing(self, batch: int) -> int | None:
        """The watermark to which a batch was said to close windows."""
        said = self.state["closing"]
        return said["watermark"] if said and said["batch"] == batch else None

    def commit(self, chunk: pa.Table | None, held: Held, **state: Any) -> None:
        """Write what a batch has changed, then what the stream has come to."""
        batch, before = state["batch"], self.state
        if chunk is not None:
            _write(self._path("slices", batch), to_bytes(chunk))
        if held.marks is not None:
            _write(self._path("events", batch), to_bytes(held.events))
            _write(self._path("marks", batch), to_bytes(held.marks))
        self.state = before | state | {"whole": held.marks is not None, "closing": None}
        _write(_commit_of(self._folder), json.dumps(self.state).encode())
        for gone in set(before["chunks"]) - set(state["chunks"]):
            self._path("slices", gone).unlink(missing_ok=True)
        if before["whole"]:
            for kind in ("events", "marks"):
                self._path(kind, before["batch"]).unlink(missing_ok=True)

    def _path(self, kind: str, number: int) -> Path:
        return self._folder / f"{kind}-{number:09}.arrow"


def _commit_of(folder: Path) -> Path:
    return folder / "commit.json"


def _write(path: Path, data: bytes) -> None:
    """Replace a file as a whole, and only once it is on disk."""
    draft = path.with_suffix(".draft")
    with open(draft, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
