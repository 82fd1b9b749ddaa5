"""The lower end of a link: keeps reports until the parent has them for good."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from paneflow.engines.edge.records import Report
from paneflow.engines.edge.wire import Heartbeat, Hello, Numbered, Refusal, Welcome, Wire, size_of


class Kept(NamedTuple):
    """What a sender holds: for a snapshot of its node, since the log may forget what made it."""

    newest: int
    preset: bytes
    messages: tuple[bytes, ...]
    """The last `len(messages)` reports, as they were encoded with `preset`."""


class Sender:
    """Numbers reports and hands them out for sending, once the parent has let this node in.

    After a restart, the same reports have to be added again in the same order: `kept` and what the
    records of the log make anew. They get the same numbers; those that the parent already has are
    not sent to it again.
    """

    def __init__(self, wire: Wire, kept: Kept | None = None) -> None:
        self.newest = 0
        """The number of the last report that was added; 0 before the first."""
        self.waiting = 0
        """Bytes that are not acknowledged. If they get many, stop reading what makes reports."""
        self._wire = wire
        self._messages: dict[int, bytes] = {}
        self._session: int | None = None
        self._next: int | None = None
        if kept is not None:
            self.newest = kept.newest - len(kept.messages)
            before = wire.reading(kept.preset)
            for data in kept.messages:
                self._keep(data if kept.preset == wire.preset else wire.encode(before.decode(data)))

    @property
    def oldest(self) -> int:
        """The number of the first report that is not acknowledged, or of the next to be added."""
        return self.newest - len(self._messages) + 1

    @property
    def welcome(self) -> bool:
        """Whether the parent has let this node in."""
        return self._next is not None

    def kept(self) -> Kept:
        """What is not acknowledged."""
        return Kept(self.newest, self._wire.preset, tuple(self._messages.values()))

    def add(self, report: Report) -> int:
        """Keep a report to be sent; returns its number."""
        self._keep(self._wire.encode(Numbered(self.newest + 1, report)))
        return self.newest

    def hello(
        self, name: str, role: str, digest: str, session: int, leaves: tuple[str, ...] = ()
    ) -> Hello:
        """Begin a session: nothing is sent until the answer to this has come."""
        self._session, self._next = session, None
        preset = self._wire.preset
        largest = max(map(size_of, self._messages.values()), default=0)
        return Hello(name, role, digest, session, self.oldest, self.newest, leaves, preset, largest)

    def welcomed(self, answer: Welcome) -> bool:
        """The parent lets this node in; False if that answers an older hello, or was known."""
        if answer.session != self._session or self.welcome:
            return False
        self._next = max(answer.wanted, self.oldest)
        return True

    def refused(self, answer: Refusal) -> bool:
        """The parent does not let this node in; False if that answers an older hello."""
        return answer.session == self._session and not self.welcome

    def disconnect(self) -> None:
        """Nothing is sent any more, until another hello has been answered."""
        self._session = self._next = None

    def next(self) -> bytes | None:
        """The next message to be sent, if there is one; `sent` confirms it."""
        return None if self._next is None else self._messages.get(self._next)

    def sent(self) -> None:
        """The message that `next` returned is on its way."""
        if self._next is not None:
            self._next += 1

    def acknowledge(self, upto: int) -> None:
        """The parent has all reports up to a number in its log."""
        for number in range(self.oldest, min(upto, self.newest) + 1):
            self.waiting -= len(self._messages.pop(number))
        if self._next is not None:
            self._next = max(self._next, self.oldest)

    def resend(self, since: int) -> None:
        """The parent misses a report: send it, and all after it, once more."""
        if self._next is not None:
            self._next = min(self._next, max(since, self.oldest))

    def heartbeat(self, metrics: Mapping[str, Any]) -> Heartbeat:
        """A sign of life that also says what the parent should have by now."""
        return Heartbeat(0 if self._next is None else self._next - 1, metrics)

    def _keep(self, data: bytes) -> None:
        self.newest += 1
        self._messages[self.newest] = data
        self.waiting += len(data)
