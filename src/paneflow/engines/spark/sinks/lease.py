"""Which run of a stream may go on: the newest, and no other.

A stream may be started again while the run before it has not ended: Spark stops that one only as
the new one starts, and knows nothing of a run in another process. What an old run is still
working on must not replace what a newer one has written.

The commits of a stream are numbered, and each number is written once, by whoever comes first
(`Storage.create`). A run begins with a commit of its own, which changes nothing but who goes on;
from then on the run before it finds the number taken that it would write next, and fails. This
needs no lock and no clock. Only the newest commit is kept, so a number may be free again that was
taken: a run whose commit is not the newest has lost the lease, too.
"""

from __future__ import annotations

from paneflow.engines.spark.storage.contract import Storage, drafted
from paneflow.errors import PaneflowError

PREFIX = "commit-"
SUFFIX = ".json"


class Lease:
    """The right of one run to commit, until a newer run takes it."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._own = 0

    def newest(self) -> tuple[int, bytes] | None:
        """The newest commit and its number, if there is any."""
        while True:
            number = self._newest()
            if number is None:
                return None
            try:
                return number, self._storage.read(name_of(number))
            except FileNotFoundError:
                continue  # a newer one has come, and this one is gone

    def take(self, number: int, data: bytes) -> bool:
        """Take the lease by a commit; False if another run was faster."""
        return self._put(number, data)

    def commit(self, data: bytes) -> None:
        """Write the next commit, and remove the one before.

        A run that has lost the lease cannot tell whether this commit still counted: the run after
        it may have gone on from it before this one looked.
        """
        if not self._put(self._own + 1, data):
            raise lost(self._storage)

    def check(self) -> None:
        """Refuse to go on if a newer run has taken the lease."""
        if self._newest() != self._own:
            raise lost(self._storage)

    def _put(self, number: int, data: bytes) -> bool:
        try:
            if not self._storage.create_or_find(name_of(number), data):
                return False
        except FileNotFoundError:
            return False  # the commit that was in the way is gone, so there is a newer one
        names = self._storage.names()
        greatest = _greatest(names)
        if greatest != number:
            if greatest is not None and greatest > number:
                self._storage.remove(name_of(number))  # whoever wrote the newer one has read it
            return False
        self._own = number
        for name in names:
            if (_number(drafted(name) or name) or number) < number:
                self._storage.remove(name)
        return True

    def _newest(self) -> int | None:
        return _greatest(self._storage.names())


def lost(storage: Storage) -> PaneflowError:
    """The error of a run that has lost the lease."""
    return PaneflowError(
        f"this run may no longer write into {storage.uri}: another run of the same stream has "
        f"started since and goes on in its place, or the folder was removed. Nothing is lost; "
        f"let only one run go on"
    )


def name_of(number: int) -> str:
    """The file of a commit."""
    return f"{PREFIX}{number:012}{SUFFIX}"


def _number(name: str) -> int | None:
    digits = name.removeprefix(PREFIX).removesuffix(SUFFIX)
    return int(digits) if digits.isdigit() and name == name_of(int(digits)) else None


def _greatest(names: list[str]) -> int | None:
    return max((n for n in map(_number, names) if n is not None), default=None)
