"""The files of a journal: a header, then groups of bytes that are there as a whole or not at all.

Writing a group may end in the middle, when the process or the machine dies. As a group is only
begun when the one before it is safe on the disk, at most the last group of a file can be torn. If
whole groups follow the first that is not whole, something else has damaged the file.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from paneflow.engines.edge.journal.errors import JournalError

VERSION = 1
"""The version of the format of all files."""

HEADER = struct.Struct("<8sHHQ")
"""Magic, version, kind and number of the file; a check follows."""
GROUP = struct.Struct("<4sQQI")
"""Magic, length and number of the group, check of what is in it; a check of these follows."""
CHECK = struct.Struct("<I")
MAGIC = b"paneflow"
BEGIN = b"\xf5grp"

HEADER_SIZE = HEADER.size + CHECK.size
GROUP_SIZE = GROUP.size + CHECK.size


class Kind(IntEnum):
    """What a file holds."""

    SEGMENT = 1
    SNAPSHOT = 2


class Groups(NamedTuple):
    """What was found in a file: whole groups, up to `end`."""

    groups: list[bytes]
    end: int


def write_header(kind: Kind, number: int) -> bytes:
    """How a file begins."""
    return _checked(HEADER.pack(MAGIC, VERSION, kind, number))


def write_group(data: bytes, index: int) -> bytes:
    """A group, the `index`th of its file."""
    return _checked(GROUP.pack(BEGIN, len(data), index, zlib.crc32(data))) + data


def read_groups(path: Path, data: bytes, kind: Kind, number: int) -> Groups:
    """The groups of a file, without a last one that is torn."""
    _check_header(path, data, kind, number)
    groups: list[bytes] = []
    at = HEADER_SIZE
    while at < len(data):
        length = _group_at(data, at, len(groups))
        begin = at + GROUP_SIZE
        if length is None or zlib.crc32(group := data[begin : begin + length]) != _crc(data, at):
            if _groups_follow(data, at + 1, len(groups)):
                raise JournalError(
                    f"{path} is damaged at byte {at:,}: whole groups follow one that is not; "
                    f"restore the folder from a copy, or give the node an empty one"
                )
            break
        groups.append(group)
        at = begin + length
    return Groups(groups, at)


def _check_header(path: Path, data: bytes, kind: Kind, number: int) -> None:
    if data[: len(MAGIC)] != MAGIC or len(data) < HEADER_SIZE:
        raise JournalError(f"{path} was not written by paneflow, or is damaged: it has no header")
    _, version, found, numbered = HEADER.unpack_from(data)
    if version != VERSION:
        raise JournalError(
            f"{path} is of version {version} of the log, but this release reads version "
            f"{VERSION}: run the release that wrote it until its reports are acknowledged"
        )
    if data[:HEADER_SIZE] != write_header(kind, number):
        raise JournalError(
            f"{path} is damaged: it says that it is number {numbered} of kind {found}"
        )


def _group_at(data: bytes, at: int, least: int) -> int | None:
    """The length of the group that begins here, if one does and it is not cut off."""
    head = data[at : at + GROUP_SIZE]
    if len(head) < GROUP_SIZE or head != _checked(head[: GROUP.size]):
        return None
    begin, length, index, _ = GROUP.unpack_from(head)
    fits = begin == BEGIN and index >= least and at + GROUP_SIZE + length <= len(data)
    return length if fits else None


def _groups_follow(data: bytes, at: int, index: int) -> bool:
    while (at := data.find(BEGIN, at)) >= 0:
        if _group_at(data, at, index + 1) is not None:
            return True
        at += 1
    return False


def _crc(data: bytes, at: int) -> int:
    return int(GROUP.unpack_from(data, at)[3])


def _checked(head: bytes) -> bytes:
    return head + CHECK.pack(zlib.crc32(head))
