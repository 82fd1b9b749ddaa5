"""The node above, as a node's loop sees it: greeted, sent reports, and heard."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from paneflow.engines.edge import records
from paneflow.engines.edge.network.sockets import Uplink
from paneflow.engines.edge.records import Asked
from paneflow.engines.edge.running.ledger import Ledger
from paneflow.engines.edge.running.pace import Pace
from paneflow.engines.edge.watching.metrics import Metrics
from paneflow.engines.edge.wire import (
    Ack,
    Ask,
    Goodbye,
    Hello,
    Introduce,
    Message,
    Refusal,
    Resend,
    Welcome,
    Wire,
    WireError,
)

log = logging.getLogger(__name__)

PARENT = "parent"
"""What the parent is called in metrics."""


class ParentLink:
    """Sends what a sender holds, whenever the parent has let this node in.

    Args:
        line: The connection.
        wire: How messages are written.
        ledger: The reports of this node, and what it has been asked.
        hello: Makes a greeting, given the number of the session.
        metrics: Counts what goes up and down.
        pace: How long to wait for answers.
    """

    def __init__(
        self,
        line: Uplink,
        wire: Wire,
        ledger: Ledger,
        hello: Callable[[int], Hello],
        metrics: Metrics,
        pace: Pace,
    ) -> None:
        self.line = line
        self._wire = wire
        self._ledger = ledger
        self._sender = ledger.sender
        self._hello = hello
        self._metrics = metrics
        self._pace = pace
        self._heard_ask = False
        """Whether the parent waits to hear that what it asked is in the log."""
        self._session = 0
        self._greet_at = 0.0
        self._beat_at = 0.0
        self._show_at = 0.0
        self._under_way = 0

    def receive(self, now: float) -> None:
        """Take what the parent has said, and greet it if that is due."""
        if self.line.read_events():
            self._greet(now)
        for data in self.line.receive():
            self._metrics.received(PARENT, len(data))
            try:
                self._take(self._wire.decode(data), now)
            except WireError as error:
                self._metrics.count(refused=1)
                log.warning("a message was refused", extra=self._fields(why=str(error)))
        if not self.line.connected:
            self._sender.disconnect()
        elif not self._sender.welcome and now >= self._greet_at:
            self._greet(now)

    def send(self, now: float, about: Callable[[], Mapping[str, Any]]) -> None:
        """Send answers, reports, and a sign of life if it is time for one."""
        if self._heard_ask and self._put(self._wire.encode(Ack(self._ledger.asked))):
            self._heard_ask = False
        while self._under_way < self._pace.under_way:
            data = self._sender.next()
            if data is None or not self._put(data):
                break
            self._sender.sent()
            self._beat_at = now + self._pace.heartbeat
            self._under_way += len(data)
        if self._sender.welcome and now >= min(self._beat_at, self._show_at):
            shows = now >= self._show_at
            if shows:
                self._show_at = now + self._pace.show
            self._put(self._wire.encode(self._sender.heartbeat(about() if shows else {})))
            self._beat_at = now + self._pace.heartbeat

    def say_goodbye(self) -> None:
        """Tell the parent that nothing more will come."""
        self._put(self._wire.encode(Goodbye()))

    def pause(self, now: float) -> float | None:
        """Seconds after which there may be something to say although nothing has arrived."""
        if not self.line.connected:
            return self.line.pause()
        due = min(self._beat_at, self._show_at) if self._sender.welcome else self._greet_at
        return max(due - now, 0.0)

    def close(self) -> None:
        """Disconnect. What is not acknowledged will be sent again."""
        self.line.close()

    def _take(self, message: Message, now: float) -> None:
        match message:
            case Ack(upto):
                waited = self._sender.waiting
                self._sender.acknowledge(upto)
                self._under_way = max(self._under_way - (waited - self._sender.waiting), 0)
            case Resend(since):
                self._sender.resend(since)
                self._under_way = 0
            case Welcome() if self._sender.welcomed(message):
                log.info("the parent lets this node in", extra=self._fields())
                self._show_at = now
                self._under_way = 0
            case Introduce() if self._sender.welcome:
                self._greet(now)
            case Ask(number, about):
                self._take_ask(number, about)
            case Refusal(session, reason) if session == self._session:
                log.error("the parent refuses this node", extra=self._fields(why=reason))
                self._sender.disconnect()
            case _:
                log.debug("a message comes too late", extra=self._fields(message=message))

    def _take_ask(self, number: int, about: Mapping[str, Any]) -> None:
        wanted = self._ledger.asked + 1
        if number > wanted:
            self._put(self._wire.encode(Resend(wanted)))
            return
        self._heard_ask = True
        if number == wanted:
            self._ledger.write(Asked(number, records.Ask(self._ledger.name, about)))

    def _greet(self, now: float) -> None:
        self._session = secrets.randbits(32)
        self._greet_at = now + self._pace.retry
        self._put(self._wire.encode(self._hello(self._session)))

    def _put(self, data: bytes) -> bool:
        there_was_room = self.line.send(data)
        if there_was_room:
            self._metrics.sent(PARENT, len(data))
        return there_was_room

    def _fields(self, **others: object) -> dict[str, Any]:
        return {"fields": {"address": self.line.address, **others}}
