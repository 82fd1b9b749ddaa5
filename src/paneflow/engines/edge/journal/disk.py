"""Files written so that they are whole after a crash, and one process to a folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from paneflow.engines.edge.journal.errors import JournalError


class Folder:
    """A folder that one process at a time may use."""

    def __init__(self, path: Path, sync: bool) -> None:
        self.path, self.sync = path, sync
        try:
            if not path.exists():
                path.mkdir(parents=True)
                self._settle(path.parent)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise JournalError(f"the folder {path} cannot be used for a log: {error}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._lock, 20, 0).decode(errors="replace").strip()
            os.close(self._lock)
            if not isinstance(error, BlockingIOError):
                raise JournalError(f"the folder {path} cannot be locked: {error}") from None
            raise JournalError(
                f"the folder {path} is in use by process {holder}: end it first, or give this node "
                f"a folder of its own"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        """Let others use the folder."""
        os.close(self._lock)

    def settle(self) -> None:
        """Make sure that files which were made, renamed or removed are so after a crash."""
        self._settle(self.path)

    def _settle(self, path: Path) -> None:
        if self.sync:
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def write_beside(self, path: Path, data: bytes) -> None:
        """Write a file under a name that nobody looks for, to be `put_in_place`."""
        handle = os.open(_beside(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            write_all(handle, data, 0)
            if self.sync:
                os.fsync(handle)
        except OSError:
            _beside(path).unlink()
            raise
        finally:
            os.close(handle)

    def put_in_place(self, path: Path) -> None:
        """Give a file that was written beside its name."""
        os.replace(_beside(path), path)
        try:
            self.settle()
        except OSError:
            path.unlink()
            raise


def _beside(path: Path) -> Path:
    return path.with_suffix(".tmp")


def write_all(handle: int, data: bytes, at: int) -> None:
    """Write bytes at a place of a file, however many calls it takes."""
    left = memoryview(data)
    while left:
        written = os.pwrite(handle, left, at)
        at += written
        left = left[written:]
