"""Files as an input of a child: one of them, or a folder of them that may grow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from paneflow.engines.edge.inputs.columns import Columns
from paneflow.engines.edge.inputs.contract import Arrived, source_name
from paneflow.engines.edge.inputs.file_formats import check_format, format_of, pieces
from paneflow.engines.edge.inputs.file_positions import Place, pack, unpack
from paneflow.errors import InputError

_LOOK_AGAIN = 0.5
"""Seconds between two looks for new files."""
_AT_ONCE = 8
"""Pieces that are read at once, about a million events: files have more than memory can hold."""


class FileInput:
    """One source: a file, or the files of a folder in the order of their names.

    Each event is taken once, as long as files stay as they are: a file must be complete when its
    name appears (write it elsewhere on the same disk, then rename it), new names must sort behind
    those that have been read, and files must not be removed before the child has ended. Names that
    begin with `.` or `_` are left out.

    Args:
        name: What the name of the source begins with.
        path: The file or folder.
        schema: The schema of the events.
        time: The column of their times.
        format: `"parquet"`, `"csv"`, `"ndjson"` or `"arrow"`; without it the endings of names say.
        follow: Whether to wait for new files in the folder, for ever.
    """

    refused = 0
    """A file that cannot be read is an error: somebody has to correct it."""

    def __init__(
        self,
        name: str,
        path: str | Path,
        schema: pa.Schema,
        time: str,
        *,
        format: str | None = None,
        follow: bool = False,
    ) -> None:
        check_format(format)
        self.name = name
        self._path = Path(path)
        self._columns = Columns(schema, time)
        self._format = format
        self._follow = follow
        self._source = source_name(name, self._path.name)
        self._files: list[Path] = []
        self._place = Place(0, 0)
        self._pieces: Iterator[pa.Table] | None = None
        self._ended = False
        if follow and not self._path.is_dir():
            raise InputError(f"{path} is not a folder: only a folder can be followed")

    @property
    def finished(self) -> bool:
        """Whether all files have been read, and no others are waited for."""
        return self._ended

    def start(self, positions: Mapping[str, int]) -> None:
        """Continue behind the last event in the log."""
        self._files = self._listed()
        self._place, self._pieces, self._ended = Place(0, 0), None, False
        if self._source in positions:
            try:
                self._place = unpack(positions[self._source], self._names())
            except InputError as error:
                raise InputError(f"{self._path}: {error}") from None

    def read(self, most: int) -> list[Arrived]:
        """The next pieces."""
        most = min(most, _AT_ONCE)
        arrived: list[Arrived] = []
        while len(arrived) < most and not self._ended and self._has_file():
            piece = next(self._opened(), None)
            if piece is None:
                self._place, self._pieces = Place(self._place.file + 1, 0), None
            else:
                self._place = Place(self._place.file, self._place.event + piece.num_rows)
                arrived.append(Arrived(self._source, self._position(), piece))
        if len(arrived) < most and not self._follow and not self._ended:
            self._ended = True
            arrived.append(Arrived(self._source, self._position(), None, ended=True))
        return arrived

    def settle(self, positions: Mapping[str, int]) -> None:
        """Files need not be told."""

    def waits_on(self) -> Sequence[Any]:
        """Nothing: files are there or not."""
        return []

    def pause(self) -> float | None:
        """No pause while there are files; then until the next look, if the folder is followed."""
        if self._ended:
            return None
        return 0.0 if self._place.file < len(self._files) or not self._follow else _LOOK_AGAIN

    def close(self) -> None:
        """Close the file that is open."""
        self._pieces = None

    def _has_file(self) -> bool:
        """Whether there is a file to read, after a look for new ones if need be."""
        if self._place.file == len(self._files) and self._follow:
            self._look()
        return self._place.file < len(self._files)

    def _look(self) -> None:
        known = set(self._files)
        new = [path for path in self._listed() if path not in known]
        if new and self._files and new[0] < self._files[-1]:
            raise InputError(
                f"{new[0]} has appeared, whose name sorts before {self._files[-1].name}, which has "
                f"been read: give new files names that sort behind all others"
            )
        self._files += new

    def _opened(self) -> Iterator[pa.Table]:
        """The rest of the file that is read now."""
        if self._pieces is None:
            path = self._files[self._place.file]
            format = format_of(path, self._format)
            assert format is not None, "others are not listed"
            self._pieces = pieces(path, format, self._columns, self._place.event)
        return self._pieces

    def _position(self) -> int:
        return pack(self._place, self._names())

    def _names(self) -> list[str]:
        return [path.name for path in self._files]

    def _listed(self) -> list[Path]:
        """The files that are there, in order."""
        if self._path.is_file():
            if format_of(self._path, self._format) is None:
                raise InputError(f"the name of {self._path} does not tell its format: give it")
            return [self._path]
        try:
            found = [Path(entry) for entry in os.scandir(self._path) if entry.is_file()]
        except OSError as error:
            raise InputError(
                f"{self._path} cannot be read ({error.strerror}): name a file or a folder of events"
            ) from error
        shown = [path for path in found if not path.name.startswith((".", "_"))]
        return sorted(path for path in shown if format_of(path, self._format))
