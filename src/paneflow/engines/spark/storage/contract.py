"""What streams need of a place for files: little enough for a disk, a cluster and an object store.

Everything rests on one promise, `create`: a file appears under its name as a whole, and only if the
name is free. Disks can do that, HDFS and Azure by renaming, S3 by a conditional write. Nothing here
needs locks, clocks, or a rename that replaces files.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod

DRAFT = ".draft"


class Storage(ABC):
    """A folder of files, each written as a whole."""

    uri: str
    """The folder, as Spark takes it."""

    @abstractmethod
    def within(self, name: str) -> Storage:
        """A folder in this one."""

    @abstractmethod
    def make(self) -> None:
        """Make the folder, if it is not there."""

    @abstractmethod
    def names(self) -> list[str]:
        """What is in the folder, in any order; nothing if there is no such folder."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """A file; `FileNotFoundError` if there is none."""

    @abstractmethod
    def create(self, name: str, data: bytes) -> bool:
        """Write a file unless the name is taken; whether it was written.

        The file is there as a whole or not at all. Of several that write it, one succeeds.
        """

    @abstractmethod
    def replace(self, name: str, data: bytes) -> None:
        """Write a file in place of the one before; readers see one of the two."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; it may be gone already."""

    def create_or_find(self, name: str, data: bytes) -> bool:
        """The same as `create`, also where the name was taken by these bytes.

        A store may write a file and lose its answer on the way; the client asks again, and hears
        that the name is taken. So bytes should say who wrote them.
        """
        return self.create(name, data) or self.read(name) == data


def draft_of(name: str) -> str:
    """A name under which a file is prepared; Spark does not read files with such names."""
    return f".{name}.{uuid.uuid4().hex}{DRAFT}"


def drafted(name: str) -> str | None:
    """The file that a draft was to become, which a run that was killed may leave; else None."""
    return name[1 : -33 - len(DRAFT)] if name.startswith(".") and name.endswith(DRAFT) else None
