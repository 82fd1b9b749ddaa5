"""Which run of a stream may write into a folder: the newest, and no other.

A stream may be started again while the run before it has not ended: Spark stops that one only as
the new one starts, and knows nothing of a run in another process. What an old run is still
working on must not replace what a newer one has written.

A run writes its drafts in a room of its own and moves them to their places when they are complete.
A newer run removes the rooms of all runs before it, with every draft in them, before it reads
anything. A draft that is gone cannot be moved: so either an old run's file is in its place before
the newer run looks, or it never gets there. This needs no lock and no clock, only a file system
that creates, moves and removes files and folders atomically.
"""

from __future__ import annotations

import errno
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from paneflow.errors import PaneflowError


class Lease:
    """The right of one run to write into a folder, until a newer run takes it."""

    def __init__(self, folder: Path, name: str) -> None:
        """Take the lease from all runs before; `name` tells the streams of one folder apart."""
        self._folder = folder
        self._prefix = f".{name}-run-"
        self._room = self._made()
        for older in self._rooms():
            if older < self._room.name:
                _remove(folder / older)

    def replace(self, path: Path, write: Callable[[Path], None]) -> None:
        """Have a file of the folder written as a whole, in place of the one before, if any."""
        draft = self._room / path.name
        try:
            write(draft)
            os.replace(draft, path)
        except FileNotFoundError:
            raise self._lost() from None

    def check(self) -> None:
        """Refuse to go on if a newer run has taken the lease."""
        if not self._room.exists():
            raise self._lost()

    def _lost(self) -> PaneflowError:
        return PaneflowError(
            f"this run may no longer write into {self._folder}: another run of the same stream "
            f"has started since and goes on in its place, or the folder was removed. Nothing is "
            f"lost; let only one run go on"
        )

    def _made(self) -> Path:
        """Make a room that is newer than all others, under a name that was never used."""
        while True:
            newest = max(self._rooms(), default=self._prefix + "0")
            number = int(newest.removeprefix(self._prefix).partition("-")[0]) + 1
            room = self._folder / f"{self._prefix}{number:09}-{uuid.uuid4().hex}"
            room.mkdir()
            if max(self._rooms(), default="") == room.name:
                return room
            # Another run has begun at the same time, or sooner and with a greater number.
            _remove(room)

    def _rooms(self) -> list[str]:
        found = (path.name for path in self._folder.iterdir())
        return [name for name in found if name.startswith(self._prefix)]


def _remove(room: Path) -> None:
    """Remove a room and the drafts in it, also those that are being written."""
    while True:
        try:
            for draft in room.iterdir():
                draft.unlink(missing_ok=True)
            room.rmdir()
        except FileNotFoundError:
            return  # another run has removed it
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            time.sleep(0.001)  # a draft has come meanwhile
        else:
            return
