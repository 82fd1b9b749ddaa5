"""What the files in a folder say once a node is started again."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import NamedTuple

from paneflow.engines.edge.journal.errors import JournalError
from paneflow.engines.edge.journal.files import HEADER_SIZE, Groups, Kind, read_groups
from paneflow.engines.edge.journal.snapshots import Stored, read_snapshot

LENGTH = struct.Struct("<I")
"""Before each record of a group."""

_NAME = re.compile(r"(segment-(\d+)\.log|snapshot-(\d+)\.state|.*\.tmp)")


class Found(NamedTuple):
    """What a folder holds, and where its last segment can be written on."""

    snapshot: Stored | None
    records: list[bytes]
    last: int
    """The number of the last segment; 0 if there is none."""
    groups: int
    end: int
    """The groups and bytes of the last segment that are whole."""
    before: int
    """The bytes of the segments before it."""
    useless: list[Path]
    """Files of which nothing is needed any more."""


def segment_path(folder: Path, number: int) -> Path:
    """The file of a segment."""
    return folder / f"segment-{number:08}.log"


def snapshot_path(folder: Path, number: int) -> Path:
    """The file of the snapshot that a segment goes on from."""
    return folder / f"snapshot-{number:08}.state"


def join(records: list[bytes]) -> bytes:
    """Records as one group."""
    return b"".join(part for record in records for part in (LENGTH.pack(len(record)), record))


def look_into(folder: Path) -> Found:
    """Read all that is needed of a folder."""
    names = [match for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
    segments = sorted(int(match[2]) for match in names if match[2])
    snapshots = sorted(int(match[3]) for match in names if match[3])
    first = snapshots[-1] if snapshots else 1
    needed = [number for number in segments if number >= first]
    for expected, number in enumerate(needed or ([0] if snapshots else []), first):
        if number != expected:
            raise JournalError(
                f"{segment_path(folder, expected)} is missing: restore the folder from a copy, or "
                f"give the node an empty one"
            )
    useless = [folder / match[0] for match in names if match[0].endswith(".tmp")]
    useless += [segment_path(folder, number) for number in segments if number < first]
    useless += [snapshot_path(folder, number) for number in snapshots[:-1]]
    snapshot = None
    if snapshots:
        path = snapshot_path(folder, first)
        snapshot = read_snapshot(path, path.read_bytes(), first)
    records: list[bytes] = []
    last, groups, before = 0, Groups([], 0), 0
    for number in needed:
        before += groups.end
        last, groups = number, _read_segment(folder, number, number == needed[-1])
        for group in groups.groups:
            records += _split(group)
    return Found(snapshot, records, last, len(groups.groups), groups.end, before, useless)


def _read_segment(folder: Path, number: int, is_last: bool) -> Groups:
    path = segment_path(folder, number)
    data = path.read_bytes()
    if is_last and len(data) < HEADER_SIZE:
        return Groups([], 0)
    found = read_groups(path, data, Kind.SEGMENT, number)
    if found.end < len(data) and not is_last:
        raise JournalError(
            f"{path} is damaged at byte {found.end:,}, and another segment follows: restore the "
            f"folder from a copy, or give the node an empty one"
        )
    return found


def _split(group: bytes) -> list[bytes]:
    records, at = [], 0
    while at < len(group):
        (length,) = LENGTH.unpack_from(group, at)
        at += LENGTH.size
        records.append(group[at : at + length])
        at += length
    return records
