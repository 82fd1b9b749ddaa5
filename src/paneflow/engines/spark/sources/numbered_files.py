"""Folders of files that are numbered in the order in which they were written.

A file that is there is whole, and one that is written again holds the same. So the number of the
last file says exactly how far a reader has come.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_NAMES = re.compile(r"slices-(\d+)\.parquet")

Offsets = Mapping[str, int]
"""The number of the last file that was read, by folder."""


class Files(NamedTuple):
    """Some files of one folder."""

    place: int
    """Which of the folders it is."""
    folder: str
    paths: tuple[tuple[int, str], ...]
    """Each with its number, in order."""


def last_numbers(folders: list[str]) -> dict[str, int]:
    """The number of the last file in each folder; 0 if there is none yet."""
    return {folder: max((n for n, _ in _numbered(folder)), default=0) for folder in folders}


def between(folders: list[str], start: Offsets, end: Offsets, at_once: int) -> Iterator[Files]:
    """The files behind one offset, up to another, not too many together."""
    for place, folder in enumerate(folders):
        first, last = start.get(folder, 0), end.get(folder, 0)
        found = sorted((n, path) for n, path in _numbered(folder) if first < n <= last)
        for begin in range(0, len(found), at_once):
            yield Files(place, folder, tuple(found[begin : begin + at_once]))


def _numbered(folder: str) -> Iterator[tuple[int, str]]:
    """All files of a folder, with their numbers."""
    for name in os.listdir(folder):
        if found := _NAMES.fullmatch(name):
            yield int(found[1]), str(Path(folder) / name)
