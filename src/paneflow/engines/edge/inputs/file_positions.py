"""Where a reader stands in a row of files, as one number that grows.

It holds how many files are read, how many events of the next one, and a check of the names up to
there. So a reader that starts again notices if the files are not those that it has read.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

from paneflow.errors import InputError

_FILES, _EVENTS, _CHECK = 21, 32, 10
"""Bits for each part, 63 in all."""


class Place(NamedTuple):
    """Behind so many files, and so many events of the next one."""

    file: int
    event: int


def pack(place: Place, names: Sequence[str]) -> int:
    """A place as a number; `names` are those of all files, in order.

    >>> unpack(pack(Place(1, 500), ["a", "b"]), ["a", "b", "c"])
    Place(file=1, event=500)
    """
    for part, bits, what in ((place.file, _FILES, "files"), (place.event, _EVENTS, "events")):
        if part >> bits:
            raise InputError(
                f"an input reads at most {2**bits:,} {what} in a "
                f"{'folder' if what == 'files' else 'file'}: distribute them over several"
            )
    return (place.file << _EVENTS | place.event) << _CHECK | _check(place, names)


def unpack(position: int, names: Sequence[str]) -> Place:
    """The place that a number stands for, if the files up to there are the same as then.

    >>> unpack(pack(Place(1, 500), ["a", "b"]), ["a", "aa", "b"])
    Traceback (most recent call last):
    ...
    paneflow.errors.InputError: the files up to number 2 are not those that were read before: keep \
the files that have been read, and give new files names that sort behind them; now 'aa' is there
    """
    rest = position >> _CHECK
    place = Place(rest >> _EVENTS, rest & (1 << _EVENTS) - 1)
    if place.file > len(names) or pack(place, names) != position:
        found = repr(names[place.file]) if place.file < len(names) else "nothing"
        raise InputError(
            f"the files up to number {place.file + 1} are not those that were read before: keep "
            f"the files that have been read, and give new files names that sort behind them; now "
            f"{found} is there"
        )
    return place


def _check(place: Place, names: Sequence[str]) -> int:
    """A check of the names of all files that have been touched."""
    touched = names[: place.file + (place.event > 0)]
    return zlib.crc32("\0".join(touched).encode()) & (1 << _CHECK) - 1
