"""Files on the disk of this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from paneflow.engines.spark.storage.contract import Storage, draft_of


class LocalFiles(Storage):
    """A folder on this machine, or one that it has mounted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.uri = str(folder)

    def within(self, name: str) -> LocalFiles:
        return LocalFiles(self._folder / name)

    def make(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)

    def names(self) -> list[str]:
        try:
            return os.listdir(self._folder)
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def create(self, name: str, data: bytes) -> bool:
        path, draft = self._folder / name, self._drafted(name, data)
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        except OSError:
            # Some mounted folders have no links. What is left there is a check beforehand, which
            # does not tell runs apart that write at the same instant.
            if path.exists():
                return False
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        return True

    def replace(self, name: str, data: bytes) -> None:
        os.replace(self._drafted(name, data), self._folder / name)

    def remove(self, name: str) -> None:
        path = self._folder / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def _drafted(self, name: str, data: bytes) -> Path:
        """A hidden file with the data, once it is on disk."""
        draft = self._folder / draft_of(name)
        with open(draft, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return draft
