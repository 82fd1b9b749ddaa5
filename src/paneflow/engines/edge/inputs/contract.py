"""What a child expects of an input, wherever the events come from.

The child reads what has arrived, cuts it into slices, writes these to its log and then settles:
only then may an input tell senders that their events need not be sent again. Each source of an
input has positions that grow. A child that starts again says how far its log goes, and the input
continues behind these positions. So nothing is lost, and nothing is taken twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

BETWEEN = "/"
"""Between the name of an input and the name that one of its sources has there."""


class Arrived(NamedTuple):
    """What one source has sent."""

    source: str
    """The name of the input, and what the source is called there: `plugs/plug-7`."""
    position: int
    """How far the source has come with these events. It is larger than all of its earlier ones."""
    events: pa.Table | None
    """In the child's schema, and without null times. None where a source only ends."""
    ended: bool = False
    """Whether the source has said that nothing will follow."""


class Input(Protocol):
    """One place that events come from, with one source or many. A single thread calls it."""

    @property
    def name(self) -> str:
        """What the names of its sources begin with."""

    @property
    def refused(self) -> int:
        """How many messages have been refused since the start; the log says why."""

    @property
    def finished(self) -> bool:
        """Whether nothing more can come, as after the last of a number of files."""

    def start(self, positions: Mapping[str, int]) -> None:
        """Begin, behind the last position of each source that is in the child's log.

        Positions of the sources of other inputs may be among them.
        """

    def read(self, most: int) -> list[Arrived]:
        """What has arrived, in order, without waiting; at most that many parts."""

    def settle(self, positions: Mapping[str, int]) -> None:
        """Everything up to these positions is in the log: senders may forget it."""

    def waits_on(self) -> Sequence[Any]:
        """ZeroMQ sockets and file descriptors, for a `zmq.Poller`.

        One of them is readable when `read` may give something, unless `pause` says otherwise.
        """

    def pause(self) -> float | None:
        """Seconds until `read` may give something although nothing becomes readable.

        None: never.
        """

    def close(self) -> None:
        """Stop. What is not settled will be sent again."""


def source_name(given: str, source: str) -> str:
    """The name of a source, from the name of its input and what it is called there.

    >>> source_name("plugs", "plug-7")
    'plugs/plug-7'
    """
    return f"{given}{BETWEEN}{source}"


def own_positions(name: str, positions: Mapping[str, int]) -> dict[str, int]:
    """The positions of the sources of one input, by what they are called there.

    >>> own_positions("plugs", {"plugs/plug-7": 3, "files/a": 1})
    {'plug-7': 3}
    """
    prefix = f"{name}{BETWEEN}"
    return {
        source.removeprefix(prefix): position
        for source, position in positions.items()
        if source.startswith(prefix)
    }
