"""What a node remembers of the nodes below it and of their connections while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paneflow.engines.edge.links import Receiver
from paneflow.engines.edge.running.allowance import Allowance

BAD_MESSAGES = 20
"""After so many messages in a row that cannot be read, a connection is not listened to any more."""
REMEMBERED = 10_000
"""Connections with such messages that are remembered, however many somebody makes."""


@dataclass
class Peer:
    """A node below, for as long as this process runs."""

    receiver: Receiver
    allowance: Allowance
    heard: float
    connection: bytes = b""
    session: int = 0
    leaves: tuple[str, ...] = ()
    asked: int = 0
    """The number of the last thing that it was asked over this connection."""


@dataclass(frozen=True)
class Terms:
    """On which terms nodes are let in.

    Attributes:
        digest: Of the question that all nodes must have in common.
        belongs: Whether a name belongs to a key.
        patience: Seconds without a sign of life after which a node is given up.
        per_second: How many reports a second a node may send; None is no limit.
    """

    digest: str
    belongs: Callable[[str, str], bool]
    patience: float
    per_second: float | None = None


class BadMessages:
    """Counts messages that cannot be read, by connection.

    >>> bad = BadMessages()
    >>> [bad.count(b"x") for _ in range(BAD_MESSAGES + 1)].index(True), bad.ignores(b"x")
    (20, True)
    """

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}

    def ignores(self, connection: bytes) -> bool:
        """Whether nothing more is read from a connection."""
        return self._counts.get(connection, 0) > BAD_MESSAGES

    def count(self, connection: bytes) -> bool:
        """Note one more; whether it is one too many."""
        if len(self._counts) >= REMEMBERED:
            self._counts.clear()
        self._counts[connection] = self._counts.get(connection, 0) + 1
        return self.ignores(connection)

    def forgive(self, connection: bytes) -> None:
        """A message could be read."""
        self._counts.pop(connection, None)
