"""The upper end of a link: takes each report of one child once, and in order."""

from __future__ import annotations

from paneflow.engines.edge.wire import (
    Ack,
    Heartbeat,
    Hello,
    Message,
    Numbered,
    Refusal,
    Resend,
    Welcome,
    Wire,
)


class Receiver:
    """What a node knows of the reports of one child.

    `logged` is the number of the last report that is in the node's log; after a restart, the log
    says it. Acknowledged is only what is logged.
    """

    def __init__(self, child: str, wire: Wire, logged: int = 0) -> None:
        self.child = child
        self.logged = logged
        self.wanted = logged + 1
        """The number of the next report to be taken."""
        self._wire = wire
        self._reading: Wire | None = None
        self._acknowledged = logged
        self._missed = False
        self._asked = 0

    @property
    def greeted(self) -> bool:
        """Whether the child has said hello since this node was started."""
        return self._reading is not None

    def greet(self, hello: Hello, digest: str) -> Welcome | Refusal:
        """Let a child in, or say why not."""
        reason = self._objection(hello, digest)
        if reason is not None:
            return Refusal(hello.session, reason)
        self._reading = self._wire.reading(hello.preset)
        self._asked = 0
        self._acknowledged = 0
        return Welcome(hello.session, self.wanted, digest)

    def read(self, data: bytes | memoryview) -> Message:
        """The message that the child has sent."""
        return (self._reading or self._wire).decode(data)

    def take(self, message: Numbered) -> bool:
        """Whether a report is the next in order; if so, it is to be logged and acted on."""
        if message.number == self.wanted:
            self.wanted += 1
            return True
        if message.number > self.wanted:
            self._missed = self._asked != self.wanted
        else:
            self._acknowledged = 0
        return False

    def hear(self, heartbeat: Heartbeat) -> None:
        """The child is alive, and says how far its reports have gone out."""
        if heartbeat.number >= self.wanted:
            self._missed = True
        else:
            self._acknowledged = 0

    def log(self, upto: int) -> None:
        """Reports up to a number are in the log, for good."""
        self.logged = max(self.logged, upto)

    def answers(self) -> list[Message]:
        """What the child is to be told now."""
        said: list[Message] = []
        if self._missed:
            self._missed, self._asked = False, self.wanted
            said.append(Resend(self.wanted))
        if self.logged > self._acknowledged:
            self._acknowledged = self.logged
            said.append(Ack(self.logged))
        return said

    def _objection(self, hello: Hello, digest: str) -> str | None:
        if hello.digest != digest:
            return (
                f"{hello.name!r} answers another query than this node, or over events with other "
                f"columns: start both with the same configuration"
            )
        if hello.largest > self._wire.limit:
            return (
                f"{hello.name!r} has a report of {hello.largest:,} bytes, and its parent takes "
                f"{self._wire.limit:,}: raise the parent's limit of messages, and start that again"
            )
        if hello.oldest > self.wanted:
            return (
                f"{hello.name!r} has its reports from number {hello.oldest} on, but this node "
                f"misses them from number {self.wanted} on: part of this node's log is gone; "
                f"restore it, or start both with empty folders"
            )
        if hello.newest < self.wanted - 1:
            return (
                f"this node has {self.wanted - 1} reports of {hello.name!r}, which itself knows "
                f"of {hello.newest}: the log of {hello.name!r} is gone; restore it, or start "
                f"the node under another name"
            )
        return None
