"""The nodes below, as a node's loop sees them: let in, heard, acknowledged, and given up."""

from __future__ import annotations

import logging
from typing import Any

from paneflow.engines.edge.links import Receiver
from paneflow.engines.edge.network.sockets import Listener, Received
from paneflow.engines.edge.records import Joined, Left, Reported
from paneflow.engines.edge.running.allowance import Allowance
from paneflow.engines.edge.running.asked import AsksOfOne
from paneflow.engines.edge.running.ledger import Ledger
from paneflow.engines.edge.running.peers import BadMessages, Peer, Terms
from paneflow.engines.edge.running.watched import Watched
from paneflow.engines.edge.wire import (
    Ack,
    Ask,
    Goodbye,
    Heartbeat,
    Hello,
    Introduce,
    Message,
    Numbered,
    Refusal,
    Resend,
    TooLarge,
    Wire,
    WireError,
)

log = logging.getLogger(__name__)


class ChildLinks:
    """Turns what nodes below say into records, and answers them once these are in the log.

    Args:
        listener: The connections.
        wire: How messages are written.
        ledger: What the log says of the nodes below, and what they are asked.
        terms: On which terms they are let in.
        watched: Counts what comes and goes, and takes what heartbeats carry.
        now: The time, by a clock that only goes forward.
    """

    def __init__(
        self,
        listener: Listener,
        wire: Wire,
        ledger: Ledger,
        terms: Terms,
        watched: Watched,
        now: float,
    ) -> None:
        self.listener = listener
        self._wire = wire
        self._ledger = ledger
        self._standings = ledger.standings
        self._terms = terms
        self._watched = watched
        self._metrics = watched.metrics
        self._peers: dict[str, Peer] = {}
        self._connected: dict[bytes, Peer] = {}
        self._bad = BadMessages()
        self._due: list[tuple[bytes, Message]] = []
        for name in self._standings.names():
            self._peers[name] = self._make(name, now)

    @property
    def leaves(self) -> tuple[str, ...]:
        """The child nodes below, as far as they have introduced themselves."""
        return tuple(sorted({leaf for peer in self._peers.values() for leaf in peer.leaves}))

    def receive(self, most_bytes: int, now: float) -> None:
        """Take what has arrived, and write down what it changes."""
        self.listener.read_events()
        for received in self.listener.receive(most_bytes):
            for data in received.messages:
                self._read(received, data, now)

    def answer(self, now: float) -> None:
        """Tell nodes what they may know now that all records are in the log."""
        for connection, message in self._due:
            self._send(connection, message)
        self._due = []
        for peer in self._connected.values():
            peer.receiver.log(peer.allowance.upto(peer.receiver.wanted - 1, now))
            for message in peer.receiver.answers():
                self._send(peer.connection, message)
            self._ask(peer)

    @property
    def expected(self) -> bool:
        """Whether any node below is there, or is still waited for."""
        standings = map(self._standings.of, self._peers)
        return any(standing.here or standing.awaited for standing in standings)

    def silent(self, now: float) -> list[str]:
        """Nodes that windows wait for, and that have not been heard of for too long."""
        return [
            name
            for name, peer in self._peers.items()
            if self._standings.of(name).awaited and now - peer.heard >= self._terms.patience
        ]

    def excuse(self, seconds: float) -> None:
        """Nobody was listened to meanwhile: that is not held against them."""
        for peer in self._peers.values():
            peer.heard += seconds

    def pause(self, now: float) -> float | None:
        """Seconds after which there may be something to do although nothing has arrived."""
        pauses = [
            peer.heard + self._terms.patience - now
            for name, peer in self._peers.items()
            if self._standings.of(name).awaited
        ]
        for peer in self._connected.values():
            pause = peer.allowance.pause(peer.receiver.wanted - 1)
            if pause is not None:
                pauses.append(pause)
        return max(min(pauses), 0.0) if pauses else None

    def close(self) -> None:
        """Stop listening. What is not acknowledged will be sent again."""
        self.listener.close()

    def _read(self, received: Received, data: bytes, now: float) -> None:
        """Take one message, whatever it is."""
        connection = received.connection
        if self._bad.ignores(connection):
            return
        peer = self._connected.get(connection)
        self._metrics.received(peer.receiver.child if peer else "unknown", len(data))
        try:
            message = peer.receiver.read(data) if peer else self._wire.decode(data)
        except WireError as error:
            self._refuse_message(connection, peer, error)
            return
        self._bad.forgive(connection)
        if isinstance(message, Hello):
            self._greet(received, message, now)
        elif peer is None:
            self._due.append((connection, Introduce()))
        else:
            peer.heard = now
            self._take(peer, message)

    def _take(self, peer: Peer, message: Message) -> None:
        name, receiver = peer.receiver.child, peer.receiver
        match message:
            case Numbered(number, report):
                if receiver.take(message):
                    self._ledger.write(Reported(name, number, report))
            case Heartbeat(_, metrics):
                receiver.hear(message)
                self._watched.told(metrics)
                if not self._standings.of(name).here:
                    log.info("a node is there again", extra=_fields(name))
                    self._ledger.write(Joined(name))
            case Ack(upto):
                self._asks(name).acknowledge(upto)
            case Resend(since):
                peer.asked = since - 1
            case Goodbye():
                log.info("a node has left the tree", extra=_fields(name))
                self._watched.forget(name)
                self._ledger.write(Left(name))
                del self._connected[peer.connection]
            case _:
                said = type(message).__name__.lower()
                log.warning("a message that only parents send", extra=_fields(name, message=said))

    def _greet(self, received: Received, hello: Hello, now: float) -> None:
        """Let a node in, or refuse it with a reason."""
        connection, name = received.connection, hello.name
        if not self._terms.belongs(name, received.key):
            reason = (
                f"the name {name!r} does not belong to the key of this node: name the node as its "
                f"key is named in the parent's folder of keys"
            )
            self._refuse(connection, hello, reason)
            return
        known = self._peers.get(name) or self._make(name, now)
        answer = known.receiver.greet(hello, self._terms.digest)
        if isinstance(answer, Refusal):
            self._refuse(connection, hello, answer.reason)
            return
        self._peers[name] = known
        if known.connection not in (b"", connection):
            self._replace(known)
        known.connection, known.session = connection, hello.session
        known.heard, known.leaves, known.asked = now, hello.leaves, 0
        self._connected[connection] = known
        if not self._standings.of(name).here:
            log.info("a node is there", extra=_fields(name, role=hello.role))
            self._ledger.write(Joined(name))
        self._due.append((connection, answer))

    def _replace(self, peer: Peer) -> None:
        """Listen to a node over another connection than before."""
        self._connected.pop(peer.connection, None)
        reason = f"another node named {peer.receiver.child!r} has connected: give each its own name"
        self._due.append((peer.connection, Refusal(peer.session, reason)))

    def _refuse(self, connection: bytes, hello: Hello, reason: str) -> None:
        self._metrics.count(refused=1)
        log.warning("a node was refused", extra=_fields(hello.name, why=reason))
        self._due.append((connection, Refusal(hello.session, reason)))

    def _asks(self, name: str) -> AsksOfOne:
        return self._ledger.asks.get(name, AsksOfOne())

    def _ask(self, peer: Peer) -> None:
        """Ask what has not been asked over this connection."""
        for number, about in self._asks(peer.receiver.child).since(peer.asked + 1):
            self._send(peer.connection, Ask(number, about))
            peer.asked = number

    def _refuse_message(self, connection: bytes, peer: Peer | None, error: WireError) -> None:
        """Note a message that cannot be read; its number is missed and asked for again.

        One that is too large would only come again: its node is to greet, and is told so.
        """
        self._metrics.count(refused=1)
        name = peer.receiver.child if peer else "unknown"
        log.warning("a message was refused", extra=_fields(name, why=str(error)))
        if peer is not None and isinstance(error, TooLarge):
            del self._connected[connection]
            self._due.append((connection, Introduce()))
        if self._bad.count(connection):
            log.error("nothing more is read from a connection", extra=_fields(name))

    def _send(self, connection: bytes, message: Message) -> None:
        data = self._wire.encode(message)
        peer = self._connected.get(connection)
        self._metrics.sent(peer.receiver.child if peer else "unknown", len(data))
        self.listener.send(connection, data)

    def _make(self, name: str, now: float) -> Peer:
        logged = self._standings.of(name).wanted - 1
        receiver = Receiver(name, self._wire, logged)
        return Peer(receiver, Allowance(self._terms.per_second, now, logged), heard=now)


def _fields(child: str, **others: object) -> dict[str, Any]:
    return {"fields": {"child": child, **others}}
