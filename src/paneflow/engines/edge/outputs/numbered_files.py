"""A folder of Parquet files, one for each step, which is whole at any moment.

A file is written beside its place, brought to the disk, and then renamed. So readers see all of a
step or nothing of it, and a step that is written again replaces what it was.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from paneflow.engines.edge.outputs.contract import OutputError
from paneflow.errors import InputError

_ENDING = ".parquet"
_DRAFT = ".draft"
"""A hidden name without the ending of a Parquet file: nobody takes a draft for a step."""


class NumberedFiles:
    """The files of one folder whose names begin alike."""

    def __init__(self, folder: str | Path, prefix: str) -> None:
        self.folder = Path(folder)
        self._prefix = prefix

    def make_folder(self) -> None:
        """Make the folder if need be, and remove the draft of a process that died."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for draft in self.folder.glob(f"{_DRAFT}-{self._prefix}-*"):
                draft.unlink()
        except OSError as error:
            raise self._failed(error) from error

    def write(self, table: pa.Table, number: int) -> None:
        """Write the file of a step, in place of the one before, if any."""
        draft = self.folder / f"{_DRAFT}-{self._prefix}-{number}"
        try:
            with draft.open("wb") as file:
                pq.write_table(table, file, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self.path(number))
            _bring_to_disk(self.folder)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise self._failed(error) from error

    def path(self, number: int) -> Path:
        """Where the file of a step is. The order of names is the order of numbers."""
        return self.folder / f"{self._prefix}-{number:015}{_ENDING}"

    def numbers(self) -> list[int]:
        """The steps that are there, in order."""
        found = self.folder.glob(f"{self._prefix}-*{_ENDING}")
        texts = [path.name.removeprefix(f"{self._prefix}-").removesuffix(_ENDING) for path in found]
        return sorted(int(text) for text in texts if text.isdecimal())

    def read(self, number: int) -> pa.Table:
        """The table of a step."""
        # Opened by itself, since pyarrow would take the names of folders for columns.
        with self.path(number).open("rb") as file:
            return pq.read_table(file)

    def read_all(self, what: str) -> pa.Table:
        """The tables of all steps, one after the other."""
        numbers = self.numbers()
        if not numbers:
            raise InputError(
                f"{self.folder} holds no {what}: expected files named like "
                f"{self.path(1).name}; name the folder that the root writes to"
            )
        return pa.concat_tables([self.read(number) for number in numbers])

    def _failed(self, error: OSError) -> OutputError:
        return OutputError(
            f"{self.folder} cannot be written to ({error.strerror or error}): make room or give "
            f"this user the right to write there, and start the root again; it has kept the rows"
        )


def _bring_to_disk(folder: Path) -> None:
    """Make sure that a new name in a folder outlives a loss of power."""
    if os.name == "nt":  # Windows opens no folders, and journals their names by itself
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
