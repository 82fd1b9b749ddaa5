"""What a stream with a sink remembers, beside Spark's checkpoint.

Slices lie in chunks, one file for each batch that brought some, written once. Events that windows
need as they are lie in a file of the batch that kept them. Files are named after the run that wrote
them, too, so that no two runs write the same. The commit of a batch (`commits.py`) names the files
that are needed, with a checksum of each; it takes the place of the one before.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.engines.live.open_windows import Held
from paneflow.engines.spark.sinks.commits import (
    FOLDER,
    OLD_COMMIT,
    begun,
    check_goes_on,
    checksum,
    damaged,
    stored,
    to_text,
)
from paneflow.engines.spark.sinks.lease import Lease
from paneflow.engines.spark.slices.chunked import joined
from paneflow.engines.spark.slices.packing import from_bytes, to_bytes
from paneflow.engines.spark.storage.contract import Storage, drafted
from paneflow.engines.spark.versions import VERSION
from paneflow.errors import InputError

if TYPE_CHECKING:
    from paneflow.query import Query

FILE = re.compile(r"(?:slices|events|marks)-\d+(?:-(?P<run>\d+))?\.arrow")
OLD_DRAFTS = ".state-run-"
"""How the folders for drafts of version 3 begin; a run of that version fails without its own."""


class Memory:
    """The open slices, and how far the stream has come."""

    def __init__(self, checkpoint: Storage, query: Query, beats: bool) -> None:
        self._checkpoint = checkpoint
        self._storage = checkpoint.within(FOLDER)
        self._asked = begun(query, beats)
        self._lease = Lease(self._storage)
        self.state = self._read()

    def begin(self, layout: pa.Schema, source: pa.Schema) -> Held:
        """Take the checkpoint from the run before, if any, and load what it has come to.

        Only from now on no other run moves the state, so this belongs in a run's first batch.
        """
        self._storage.make()
        while not self._taken():
            continue
        needed = set(_files(self.state))
        for name in self._storage.names():
            file = FILE.fullmatch(drafted(name) or name)
            gone = file and name not in needed and int(file["run"] or 0) < self.state["run"]
            if gone or name == OLD_COMMIT or name.startswith(OLD_DRAFTS):
                self._storage.remove(name)
        return self.load(layout, source)

    def _taken(self) -> bool:
        """Take the lease; False if another run was faster."""
        found = self._read()
        before = found["rivals"] + ([found["run"]] if self.begun else [])
        own = {"number": found["number"] + 1, "run": found["run"] + 1, "rivals": before}
        self.state = found | own | {"version": VERSION, "token": uuid.uuid4().hex}
        return self._lease.take(self.state["number"], to_text(self.state).encode())

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
        chunks = [(n, self._table("slices", n)) for n in self.state["chunks"]]
        kept = self.state["events"]
        try:
            slices = joined(chunks, layout)
            if kept is None:
                return Held(slices, source.empty_table(), None)
            events = self._table("events", kept)
            events.select(source.names).cast(source)  # there may be further columns, of windows
        except (pa.ArrowException, KeyError):
            raise damaged(self._storage, "its files have other columns than the query") from None
        return Held(slices, events, self._table("marks", kept))

    def follows(self, batch: int) -> bool:
        """Whether a batch is the next; not if it is done already. An error if batches are missing.

        Spark may ask for the last batch again, if it was stopped before it had marked it as done.
        """
        last = self.state["batch"]
        if batch < last or (batch > last + 1 and self.state["every"]):
            raise InputError(
                f"Spark continues with batch {batch}, but the stream's state in "
                f"{self._storage.uri} has come to batch {last}: the two parts of the checkpoint do "
                f"not belong together. Restore both as of one moment, or name a new checkpoint and "
                f"a new sink"
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
        self._commit(self.state | {"batch": batch, "every": True, "rivals": []})

    def commit(self, chunk: pa.Table | None, held: Held, **state: Any) -> None:
        """Write what a batch has changed, then what the stream has come to."""
        batch, before = state["batch"], self.state
        sums = dict(before["files"])
        if chunk is not None:
            sums |= self._store("slices", batch, chunk)
        if held.marks is not None:
            sums |= self._store("events", batch, held.events)
            sums |= self._store("marks", batch, held.marks)
        state |= {"events": None if held.marks is None else batch, "closing": None, "every": True}
        after = before | state | {"rivals": [], "files": sums}
        needed = _files(after)
        self._commit(after | {"files": {name: sums[name] for name in needed}})
        for gone in set(_files(before)) - set(needed):
            self._storage.remove(gone)

    def _read(self) -> dict[str, Any]:
        # What is there is looked at first: a run that begins meanwhile commits before all else.
        logged = self._checkpoint.within("spark").within("commits").names()
        files = self._storage.names()
        found = stored(self._storage)
        self.begun = found is not None
        if found is None:
            if any(map(str.isdigit, logged)) or any(map(FILE.fullmatch, files)):
                raise damaged(self._storage, "its commit is missing")
            return self._asked
        check_goes_on(found, self._asked)
        return found

    def _commit(self, state: dict[str, Any]) -> None:
        state = state | {"number": self.state["number"] + 1}
        self._lease.commit(to_text(state).encode())
        self.state = state

    def _store(self, kind: str, number: int, table: pa.Table) -> dict[str, str]:
        data = to_bytes(table)
        name = f"{kind}-{number:09}-{self.state['run']:06}.arrow"
        if not self._storage.create_or_find(name, data):
            raise damaged(self._storage, f"{name} is there already")
        return {name: checksum(data)}

    def _table(self, kind: str, number: int) -> pa.Table:
        name = _name(self.state, kind, number)
        try:
            data = self._storage.read(name)
        except OSError as error:
            raise damaged(self._storage, f"{name} cannot be read ({error.strerror})") from None
        # A file of an older version has no checksum; it gets one with the next commit.
        if self._sums.setdefault(name, checksum(data)) != checksum(data):
            raise damaged(self._storage, f"{name} is not the file that was written")
        try:
            table = from_bytes(data)
            table.validate(full=True)
        except (InputError, pa.ArrowException) as error:
            raise damaged(self._storage, f"{name} holds no table ({error})") from None
        return table


def _name(state: dict[str, Any], kind: str, number: int) -> str:
    """The file of a batch, under the name that the run gave it that wrote it."""
    name = f"{kind}-{number:09}"
    return next((n for n in state["files"] if n.startswith(f"{name}-")), f"{name}.arrow")


def _files(state: dict[str, Any]) -> list[str]:
    """The names of the files that a state needs."""
    whole = () if state["events"] is None else ("events", "marks")
    slices = [_name(state, "slices", number) for number in state["chunks"]]
    return slices + [_name(state, kind, state["events"]) for kind in whole]
