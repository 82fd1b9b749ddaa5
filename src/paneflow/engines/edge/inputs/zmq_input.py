"""Sensors that send events to a child over ZeroMQ: the child's end. `sensor.py` is the other one.

A message that cannot be taken is refused: its sensor is told why, and has to be started again by
somebody who has read that. The other sensors go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import zmq

from paneflow.engines.edge.inputs.arrow_streams import read_events
from paneflow.engines.edge.inputs.columns import Columns
from paneflow.engines.edge.inputs.contract import Arrived, own_positions, source_name
from paneflow.engines.edge.inputs.sensors.messages import (
    BATCH,
    END,
    HELLO,
    WELCOME,
    Head,
    MessageError,
    Welcome,
    body_of,
    read_head,
    read_hello,
    write_head,
    write_welcome,
)
from paneflow.engines.edge.inputs.sensors.sessions import Answer, Session, Sessions
from paneflow.engines.edge.network.keys import Keys
from paneflow.engines.edge.network.sockets import Context, Limits, Listener
from paneflow.errors import InputError

log = logging.getLogger(__name__)

LIMITS = Limits(queued_messages=32)
"""Messages of sensors are large, so few of them may wait in memory before a sensor has to."""
_ROOM_FOR_HEADS = 1024
_BYTES_AT_ONCE = 64 << 20
"""Events that are read at once; sensors wait with the others, so they take no memory here."""


class ZmqInput:
    """The sensors that connect to one address.

    Args:
        name: What the names of its sources begin with.
        address: Where to listen: `tcp://127.0.0.1:7001`, or `tcp://127.0.0.1:*` for any free port.
        schema: The schema of the events.
        time: The column of their times.
        context: The ZeroMQ context; its authenticator decides who may connect.
        keys: The child's own keys. Needed unless the address stays on this machine.
        belongs: Whether a sensor may use a name, given the name and the key that it has proved to
            own. A sensor named `gateway/plug-7` uses the key of `gateway`.
        limits: What a connection may cost.
    """

    def __init__(
        self,
        name: str,
        address: str,
        schema: pa.Schema,
        time: str,
        *,
        context: Context | None = None,
        keys: Keys | None = None,
        belongs: Callable[[str, str], bool] = lambda name, key: True,
        limits: Limits = LIMITS,
    ) -> None:
        self.name = name
        self.refused = 0
        self._columns = Columns(schema, time)
        self._belongs = belongs
        self._most_bytes = limits.message_bytes - _ROOM_FOR_HEADS
        self._sessions = Sessions({})
        self._listener = Listener(context or zmq.Context.instance(), address, keys, limits)

    @property
    def address(self) -> str:
        """Where sensors connect, with the port that was chosen."""
        return self._listener.address

    @property
    def finished(self) -> bool:
        """Never: another sensor may connect."""
        return False

    def start(self, positions: Mapping[str, int]) -> None:
        """Continue behind the last batch of each sensor that is in the log."""
        self._sessions = Sessions(own_positions(self.name, positions))

    def read(self, most: int) -> list[Arrived]:
        """Batches that have arrived."""
        self._listener.read_events()
        arrived: list[Arrived] = []
        read = 0
        while len(arrived) < most and read < _BYTES_AT_ONCE:
            try:
                sender, *frames = self._listener.socket.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                break
            read += sum(map(len, frames))
            part = self._hear(sender.bytes, frames)
            if part is not None:
                arrived.append(part)
        return arrived

    def settle(self, positions: Mapping[str, int]) -> None:
        """Tell sensors what they may forget."""
        self._answer(self._sessions.settle(own_positions(self.name, positions)))

    def waits_on(self) -> Sequence[Any]:
        """The socket that sensors send to, and the one that tells of failed handshakes."""
        return [self._listener.socket, self._listener.events]

    def pause(self) -> float | None:
        """Everything that arrives makes a socket readable."""
        return None

    def close(self) -> None:
        """Stop listening. Sensors keep what is not acknowledged, and connect again."""
        self._listener.close()

    def _hear(self, connection: bytes, frames: list[zmq.Frame]) -> Arrived | None:
        """Take one message, or refuse it."""
        head = Head(0, 0)
        try:
            head = read_head(frames[0].buffer if frames else b"")
            if head.kind == HELLO:
                self._greet(connection, head.number, frames[0])
                return None
            return self._take(connection, head, frames)
        except InputError as error:
            self._refuse(connection, head, error)
            return None

    def _greet(self, connection: bytes, number: int, frame: zmq.Frame) -> None:
        hello = read_hello(body_of(frame.bytes))
        key = _key_of(frame)
        if not self._belongs(hello.name.partition("/")[0], key):
            raise InputError(
                f"the name {hello.name!r} does not belong to this sensor's key: name the sensor "
                f"like its key, or like its key with '/' and something else behind it"
            )
        self._answer(self._sessions.greet(connection, number, hello))

    def _take(self, connection: bytes, head: Head, frames: list[zmq.Frame]) -> Arrived | None:
        """A batch, or the end of a source, unless it has been taken or is not its turn."""
        if head.kind not in (BATCH, END):
            raise MessageError(f"a sensor sent a message of kind {head.kind}, which is not known")
        session = self._sessions.session(connection)
        if session is None or head.number <= session.given:
            return None
        if head.number != session.given + 1:
            raise MessageError(
                f"batch {head.number} came after batch {session.given}: use paneflow's Sensor"
            )
        events = self._events(frames) if head.kind == BATCH else None
        session.given = head.number
        return Arrived(source_name(self.name, session.name), head.number, events, events is None)

    def _events(self, frames: list[zmq.Frame]) -> pa.Table:
        if len(frames) != 2:
            raise MessageError(f"a batch came in {len(frames)} frames instead of two")
        return self._columns.fit(read_events(frames[1].buffer, self._most_bytes))

    def _refuse(self, connection: bytes, head: Head, error: InputError) -> None:
        session = self._sessions.session(connection)
        self.refused += 1
        log.warning(
            "input %r refused batch %d of %s: %s",
            self.name,
            head.number,
            repr(session.name) if session else "a sensor that has not greeted",
            error,
        )
        self._answer([self._sessions.refuse(connection, head.number, str(error))])

    def _answer(self, answers: list[Answer]) -> None:
        for connection, kind, number, text in answers:
            session = self._sessions.session(connection)
            body = text.encode()
            if kind == WELCOME and session is not None:
                body = self._welcome(session)
            self._listener.send(connection, write_head(kind, number) + body)

    def _welcome(self, session: Session) -> bytes:
        columns = self._columns
        return write_welcome(Welcome(session.given, columns.time, self._most_bytes, columns.schema))


def _key_of(frame: zmq.Frame) -> str:
    """The key that the sender has proved to own; empty where nobody needs one."""
    try:
        return str(frame.get("User-Id"))
    except zmq.ZMQError:
        return ""
