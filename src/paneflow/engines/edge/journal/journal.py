"""A log of records that survives whatever happens to the process that writes it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from paneflow.engines.edge.journal.disk import Folder, write_all
from paneflow.engines.edge.journal.errors import JournalError
from paneflow.engines.edge.journal.files import HEADER_SIZE, Kind, write_group, write_header
from paneflow.engines.edge.journal.recovery import join, look_into, segment_path, snapshot_path
from paneflow.engines.edge.journal.snapshots import Stored, write_snapshot

CLOSED = "it was closed"


class Journal:
    """Records in a folder, and now and then a snapshot that takes their place.

    Records that were appended are safe once `commit` has returned; they are there as a whole or,
    if the process dies before, not at all. `recover` gives them back. One process at a time may use
    a folder.

    With `sync=False` nothing is forced onto the disk: what is committed survives the death of the
    process, but perhaps not that of the machine.
    """

    def __init__(self, folder: str | os.PathLike[str], sync: bool = True) -> None:
        self.folder = Path(folder)
        self._folder = Folder(self.folder, sync)
        self._pending: list[bytes] = []
        self._failed: str | None = None
        self._handle: int | None = None
        try:
            found = look_into(self.folder)
            self._found: tuple[Stored | None, list[bytes]] = (found.snapshot, found.records)
            self._number, self._groups = found.last, found.groups
            self._before, self._end = found.before, found.end
            self._open(found.useless)
        except OSError as error:
            self.close()
            raise JournalError(f"the log in {self.folder} cannot be read: {error}") from None
        except JournalError:
            self.close()
            raise

    @property
    def size(self) -> int:
        """Bytes of records since the last snapshot: how much has to be read after a crash."""
        return self._before + self._end

    def recover(self) -> tuple[Stored | None, list[bytes]]:
        """The last snapshot, if there is one, and the records that were committed after it.

        What was found when the folder was opened, so this is asked once, before anything else.
        """
        found, self._found = self._found, (None, [])
        return found

    def append(self, *records: bytes) -> None:
        """Add records to the next commit."""
        self._pending += records

    def commit(self) -> None:
        """Make all that was appended safe.

        If that fails, a `JournalError` says why. What was committed before stays readable, and
        what was appended can be committed again if the reason is gone.
        """
        handle = self._writable()
        if not self._pending:
            return
        data = write_group(join(self._pending), self._groups)
        try:
            write_all(handle, data, self._end)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(handle, self._end)
            raise self._cannot_write(error) from None
        self._sync(handle)
        self._end += len(data)
        self._groups += 1
        self._pending = []

    def snapshot(self, about: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Store the state that all records so far have led to, and forget them.

        If that fails, a `JournalError` says why, and the records stay.
        """
        self.commit()
        number = self._number + 1
        path = snapshot_path(self.folder, number)
        try:
            self._folder.write_beside(path, write_snapshot(number, about, tables))
            # The segment that goes on from the snapshot is there before it, and the old files go
            # after it: whatever is found after a crash, nothing is missing.
            self._begin(number)
            self._folder.put_in_place(path)
            self._before = 0
            for old in self._old(number):
                old.unlink()
            self._folder.settle()
        except OSError as error:
            raise self._cannot_write(error) from None

    def close(self) -> None:
        """Let another process use the folder; what was not committed is lost."""
        if self._failed == CLOSED:
            return
        if self._handle is not None:
            os.close(self._handle)
        self._folder.close()
        self._failed = CLOSED

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self, useless: list[Path]) -> None:
        """Make the folder what it would be without the crash, if there was one."""
        for path in useless:
            path.unlink()
        if self._end < HEADER_SIZE:
            self._begin(max(self._number, 1))
            return
        self._handle = os.open(segment_path(self.folder, self._number), os.O_RDWR)
        os.ftruncate(self._handle, self._end)
        self._sync(self._handle)

    def _begin(self, number: int) -> None:
        """Begin a segment, and write on in it."""
        path = segment_path(self.folder, number)
        header = write_header(Kind.SEGMENT, number)
        self._folder.write_beside(path, header)
        self._folder.put_in_place(path)
        handle = os.open(path, os.O_RDWR)
        if self._handle is not None:
            os.close(self._handle)
            self._before += self._end
        self._handle, self._number = handle, number
        self._groups, self._end = 0, len(header)

    def _old(self, number: int) -> list[Path]:
        """The files that the snapshot of this number takes the place of."""
        kept = {segment_path(self.folder, number), snapshot_path(self.folder, number)}
        found = [*self.folder.glob("segment-*.log"), *self.folder.glob("snapshot-*.state")]
        return [path for path in found if path not in kept]

    def _sync(self, handle: int) -> None:
        if not self._folder.sync:
            return
        try:
            os.fdatasync(handle)
        except OSError as error:
            # What the system could not write it may have dropped: to try again proves nothing.
            self._failed = f"the disk failed ({error})"
            raise self._cannot_write(error) from None

    def _writable(self) -> int:
        if self._failed is not None or self._handle is None:
            raise JournalError(
                f"the log in {self.folder} takes no more records: {self._failed}; start the node "
                f"again"
            )
        return self._handle

    def _cannot_write(self, error: OSError) -> JournalError:
        return JournalError(
            f"the log in {self.folder} cannot be written: {error.strerror or error}; make room or "
            f"repair the disk, and start the node again: what was committed is still there"
        )
