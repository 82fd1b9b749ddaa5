"""What a sensor has pushed and the child has not acknowledged yet, and what of it is to be sent.

Without sockets and threads: the sensor calls it with its lock held.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import pyarrow as pa

from paneflow.engines.edge.inputs.sensors.messages import BATCH, END
from paneflow.errors import InputError


class Parcel(NamedTuple):
    """One message on its way up."""

    number: int
    body: pa.Buffer | None
    """None: the sensor has ended."""

    @property
    def kind(self) -> int:
        return END if self.body is None else BATCH

    @property
    def size(self) -> int:
        return 0 if self.body is None else int(self.body.size)


class Outbox:
    """Parcels in order of their numbers, of which the first are sent and the others are not.

    >>> outbox = Outbox(most_bytes=1000)
    >>> outbox.welcome(taken=5)
    >>> outbox.add(pa.py_buffer(b"events"))
    >>> outbox.next().number
    6
    >>> outbox.acknowledge(6)
    >>> outbox.waiting
    0
    """

    def __init__(self, most_bytes: int) -> None:
        self.last: int | None = None
        """The number of the last parcel; None until the child has said where numbers begin."""
        self._most = most_bytes
        self._kept: deque[Parcel] = deque()
        self._bytes = 0
        self._sent = 0

    @property
    def waiting(self) -> int:
        """How many parcels are not acknowledged."""
        return len(self._kept)

    @property
    def behind(self) -> int | None:
        """The number behind which the parcels that are still here begin."""
        return self._kept[0].number - 1 if self._kept else self.last

    def takes(self, size: int) -> bool:
        """Whether there is room. A parcel that is larger than all the room goes alone."""
        return not self._kept or self._bytes + size <= self._most

    def add(self, body: pa.Buffer | None) -> None:
        """Give a parcel its number, and keep it until it is acknowledged."""
        assert self.last is not None, "numbers begin where the child says"
        self.last += 1
        parcel = Parcel(self.last, body)
        self._kept.append(parcel)
        self._bytes += parcel.size

    def welcome(self, taken: int) -> None:
        """The child has parcels up to this one; all others are to be sent, or sent again."""
        if self.last is None or not self._kept:
            self.last = max(taken, self.last or 0)
        elif taken > self.last:
            raise InputError(
                f"the child has {taken} batches under this sensor's name, and this sensor has sent "
                f"{self.last}: give each sensor a name of its own"
            )
        if self._kept:
            self._sent = max(taken + 1 - self._kept[0].number, 0)

    def next(self) -> Parcel | None:
        """The next parcel to be sent."""
        return self._kept[self._sent] if self._sent < len(self._kept) else None

    def sent(self) -> None:
        """That parcel is on its way."""
        self._sent += 1

    def acknowledge(self, number: int) -> None:
        """The child's log has everything up to this parcel."""
        while self._kept and self._kept[0].number <= number:
            self._bytes -= self._kept.popleft().size
            self._sent = max(self._sent - 1, 0)
