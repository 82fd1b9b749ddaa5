"""Which MQTT messages are in the child's log, which are not yet, and which come a second time.

A broker sends a message again after a break of the connection, with the same identifier and marked
as a possible duplicate, if it has not heard that the message was taken. Identifiers are reused, and
mean nothing any more once the broker has lost the session.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class Known(Enum):
    """What the ledger knows of a message."""

    NEW = "never seen"
    PENDING = "seen, not in the log yet"
    LOGGED = "in the log"


class _Pending(NamedTuple):
    identifier: int
    digest: int
    source: str
    position: int


class Ledger:
    """The messages of one session, in the order in which they arrived.

    >>> ledger = Ledger(remembered=100)
    >>> ledger.add(identifier=1, digest=77, source="plug", position=1)
    >>> ledger.look(identifier=1, digest=77)
    <Known.PENDING: 'seen, not in the log yet'>
    >>> ledger.settle({"plug": 0})
    []
    >>> ledger.settle({"plug": 1})
    [1]
    >>> ledger.look(identifier=1, digest=77)
    <Known.LOGGED: 'in the log'>
    """

    def __init__(self, remembered: int) -> None:
        self._remembered = remembered
        self._pending: deque[_Pending] = deque()
        self._digests: dict[int, int] = {}
        self._logged: OrderedDict[int, int] = OrderedDict()
        self._positions: dict[str, int] = {}

    def look(self, identifier: int, digest: int) -> Known:
        """What is known of a message that is marked as a possible duplicate."""
        if self._digests.get(identifier) == digest:
            return Known.PENDING
        return Known.LOGGED if self._logged.get(identifier) == digest else Known.NEW

    def add(self, identifier: int, digest: int, source: str, position: int) -> None:
        """A message has arrived; it is in the log when its source has come to that position."""
        self._logged.pop(identifier, None)
        self._pending.append(_Pending(identifier, digest, source, position))
        self._digests[identifier] = digest

    def settle(self, positions: Mapping[str, int]) -> list[int]:
        """The messages that may be acknowledged now: MQTT wants them in order."""
        self._positions.update(positions)
        done = []
        while self._pending and self._pending[0].position <= self._reached():
            message = self._pending.popleft()
            if self._digests.get(message.identifier) == message.digest:
                del self._digests[message.identifier]
            self._logged[message.identifier] = message.digest
            done.append(message.identifier)
        while len(self._logged) > self._remembered:
            self._logged.popitem(last=False)
        return done

    def forget(self) -> None:
        """The broker has lost the session: identifiers begin anew, and nobody waits for these."""
        self._pending.clear()
        self._digests.clear()
        self._logged.clear()

    def _reached(self) -> int:
        return self._positions.get(self._pending[0].source, 0)
