"""What a stream with a sink remembers, on disk beside Spark's checkpoint.

Slices lie in chunks, one file for each batch that brought some, written once. Events that windows
need as they are lie in a file of the batch that kept them. The commit of a batch (`commits.py`)
names the files that are needed, with a checksum of each; it takes the place of the one before.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.engines.live.open_windows import Held
from paneflow.engines.spark.sinks.commits import (
    COMMIT,
    begun,
    checksum,
    damaged,
    read_commit,
    to_text,
)
from paneflow.engines.spark.sinks.lease import Lease
from paneflow.engines.spark.slices.chunked import joined
from paneflow.engines.spark.slices.packing import from_bytes, to_bytes
from paneflow.errors import InputError

if TYPE_CHECKING:
    from paneflow.query import Query


class Memory:
    """The open slices, and how far the stream has come."""

    def __init__(self, folder: Path, query: Query, beats: bool) -> None:
        self._folder = folder
        self._begun = begun(query, beats)
        self.state = self._read()
        folder.mkdir(parents=True, exist_ok=True)

    def begin(self, layout: pa.Schema, source: pa.Schema) -> Held:
        """Take the checkpoint from the run before, if any, and load what it has come to.

        Only from now on no other run moves the state, so this belongs in a run's first batch.
        """
        self._lease = Lease(self._folder, "state")
        self.state = self._read()
        return self.load(layout, source)

    def load(self, layout: pa.Schema, source: pa.Schema) -> Held:
        """Slices, events and marks of the last commit, with every file checked."""
        while True:
            try:
                return self._loaded(layout, source)
            except InputError:
                found = self._read()
                if found == self.state:
                    raise
                # A newer run has removed what it no longer needs.
                self.state = found

    def _loaded(self, layout: pa.Schema, source: pa.Schema) -> Held:
        self._sums = dict(self.state["files"])
        held = self._held(layout, source)
        self.state = self.state | {"files": self._sums}
        return held

    def _held(self, layout: pa.Schema, source: pa.Schema) -> Held:
        stored = [(n, self._table("slices", n)) for n in self.state["chunks"]]
        kept = self.state["events"]
        try:
            slices = joined(stored, layout)
            if kept is None:
                return Held(slices, source.empty_table(), None)
            events = self._table("events", kept)
            events.select(source.names).cast(source)  # there may be further columns, of windows
        except (pa.ArrowException, KeyError):
            raise damaged(self._folder, "its files have other columns than the query") from None
        return Held(slices, events, self._table("marks", kept))

    def follows(self, batch: int) -> bool:
        """Whether a batch is the next; not if it is done already. An error if batches are missing.

        Spark may ask for the last batch again, if it was stopped before it had marked it as done.
        """
        last = self.state["batch"]
        if batch < last or (batch > last + 1 and self.state["every"]):
            raise InputError(
                f"Spark continues with batch {batch}, but the stream's state in {self._folder} has "
                f"come to batch {last}: the two parts of the checkpoint do not belong together. "
                f"Restore both as of one moment, or name a new checkpoint and a new sink"
            )
        return bool(batch > last)

    def check(self) -> None:
        """Refuse to go on if another run of the stream has started."""
        self._lease.check()

    def close_at(self, batch: int, watermark: int) -> None:
        """Record beforehand that a batch closes windows: repeated, it must close them too."""
        self._commit(self.state | {"closing": {"batch": batch, "watermark": watermark}})

    def closing(self, batch: int) -> int | None:
        """The watermark to which a batch was said to close windows."""
        said = self.state["closing"]
        return said["watermark"] if said and said["batch"] == batch else None

    def pass_over(self, batch: int) -> None:
        """A batch has changed nothing."""
        self._commit(self.state | {"batch": batch, "every": True})

    def commit(self, chunk: pa.Table | None, held: Held, **state: Any) -> None:
        """Write what a batch has changed, then what the stream has come to."""
        batch, before = state["batch"], self.state
        whole = held.marks is not None
        sums = dict(before["files"])
        if chunk is not None:
            sums |= self._store("slices", batch, chunk)
        if held.marks is not None:
            sums |= self._store("events", batch, held.events)
            sums |= self._store("marks", batch, held.marks)
        state |= {"events": batch if whole else None, "closing": None, "every": True}
        needed = _files(state)
        self._commit(before | state | {"files": {name: sums[name] for name in needed}})
        for gone in set(_files(before)) - set(needed):
            (self._folder / gone).unlink(missing_ok=True)

    def _read(self) -> dict[str, Any]:
        found = read_commit(self._folder, self._begun)
        if found is None:
            logged = (p for p in (self._folder.parent / "spark" / "commits").glob("*"))
            if any(p.name.isdigit() for p in logged) or any(self._folder.glob("*.arrow")):
                raise damaged(self._folder, f"{COMMIT} is missing")
            return self._begun
        return found

    def _commit(self, state: dict[str, Any]) -> None:
        self._write(COMMIT, to_text(state).encode())
        self.state = state

    def _store(self, kind: str, number: int, table: pa.Table) -> dict[str, str]:
        data = to_bytes(table)
        self._write(_name(kind, number), data)
        return {_name(kind, number): checksum(data)}

    def _table(self, kind: str, number: int) -> pa.Table:
        name = _name(kind, number)
        try:
            data = (self._folder / name).read_bytes()
        except OSError as error:
            raise damaged(self._folder, f"{name} cannot be read ({error.strerror})") from None
        # A file of an older version has no checksum; it gets one with the next commit.
        if self._sums.setdefault(name, checksum(data)) != checksum(data):
            raise damaged(self._folder, f"{name} is not the file that was written")
        try:
            table = from_bytes(data)
            table.validate(full=True)
        except (InputError, pa.ArrowException) as error:
            raise damaged(self._folder, f"{name} holds no table ({error})") from None
        return table

    def _write(self, name: str, data: bytes) -> None:
        """Replace a file as a whole, and only once it is on disk."""

        def write(draft: Path) -> None:
            with open(draft, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())

        self._lease.replace(self._folder / name, write)


def _name(kind: str, number: int) -> str:
    return f"{kind}-{number:09}.arrow"


def _files(state: dict[str, Any]) -> list[str]:
    """The names of the files that a state needs."""
    whole = () if state["events"] is None else ("events", "marks")
    slices = [_name("slices", number) for number in state["chunks"]]
    return slices + [_name(kind, state["events"]) for kind in whole]
