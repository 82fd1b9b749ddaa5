"""The thread of a sensor: owns its socket, greets, sends, and hears acknowledgements."""

from __future__ import annotations

import socket
import threading

import zmq

from paneflow.engines.edge.inputs.sensors.messages import (
    ACKNOWLEDGED,
    HELLO,
    REFUSED,
    WELCOME,
    Hello,
    Welcome,
    body_of,
    read_head,
    read_welcome,
    write_head,
    write_hello,
)
from paneflow.engines.edge.inputs.sensors.outbox import Outbox
from paneflow.engines.edge.network.keys import Keys
from paneflow.engines.edge.network.sockets import Uplink
from paneflow.errors import InputError

_GREET_AGAIN = 2_000
"""Milliseconds without an answer that is due from the child, before the sensor greets again."""
_FEW_MESSAGES = 100
"""Messages that are sent before the socket is asked what has arrived."""


class Line:
    """A connection, and what waits for it. Callers hold `changed` while they look or change."""

    def __init__(
        self,
        address: str,
        name: str,
        token: str,
        keys: Keys | None,
        child_key: bytes | None,
        most_bytes: int,
    ) -> None:
        self.address = address
        self.changed = threading.Condition()
        self.outbox = Outbox(most_bytes)
        self.welcome: Welcome | None = None
        """What the child takes, once it has said so."""
        self.failure: InputError | None = None
        """Why the child takes nothing more."""
        self.closed = False
        self._name = name
        self._token = token
        self._greetings = 0
        self._welcomed = False
        self._uplink = Uplink(zmq.Context.instance(), address, keys, child_key)
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._thread = threading.Thread(target=self._run, name=f"sensor {name}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Let the thread see what has changed."""
        try:
            self._waker.send(b"!")
        except (BlockingIOError, OSError):
            return  # it is awake already, or closed

    def close(self) -> None:
        """Disconnect, without waiting for acknowledgements."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        self.wake()
        self._thread.join()

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._uplink.events, zmq.POLLIN)
        poller.register(self._woken, zmq.POLLIN)
        try:
            while not self.closed and self.failure is None:
                full = self._send()
                poller.register(self._uplink.socket, zmq.POLLIN | (zmq.POLLOUT if full else 0))
                owed = self._uplink.connected and (not self._welcomed or self.outbox.waiting)
                pause = self._uplink.pause()
                ready = poller.poll(
                    _GREET_AGAIN if owed else None if pause is None else int(pause * 1000) + 1
                )
                self._drain()
                self._look_at_connection()
                self._hear()
                if owed and not ready:
                    self._greet()
        finally:
            with self.changed:
                self.closed = True
                self.changed.notify_all()
            self._uplink.close()
            self._woken.close()
            self._waker.close()

    def _drain(self) -> None:
        try:
            while self._woken.recv(4096):
                pass
        except BlockingIOError:
            return

    def _look_at_connection(self) -> None:
        """Greet over a connection that has been made anew."""
        before = self._uplink.connected
        if self._uplink.read_events():
            self._greet()
        elif before and not self._uplink.connected:
            self._welcomed = False

    def _greet(self) -> None:
        """Say who this is. Nothing else is sent until the child has said how far it has come."""
        self._greetings += 1
        self._welcomed = False
        with self.changed:
            hello = Hello(self._name, self._token, self.outbox.behind)
        self._uplink.send(write_head(HELLO, self._greetings) + write_hello(hello))

    def _hear(self) -> None:
        for message in self._uplink.receive():
            with self.changed:
                try:
                    self._take(message)
                except InputError as error:
                    self.failure = error
                self.changed.notify_all()

    def _take(self, message: bytes) -> None:
        kind, number = read_head(message)
        if kind == ACKNOWLEDGED:
            self.outbox.acknowledge(number)
        elif kind == WELCOME and number == self._greetings:
            self.welcome = read_welcome(body_of(message))
            self.outbox.welcome(self.welcome.taken)
            self._welcomed = True
        elif kind == REFUSED:
            which = f"batch {number} of " if self._welcomed and number else ""
            reason = body_of(message).decode(errors="replace")
            raise InputError(f"the child refused {which}sensor {self._name!r}: {reason}")

    def _send(self) -> bool:
        """Send what waits; say whether some of it has to wait until the socket takes more."""
        for _ in range(_FEW_MESSAGES):
            with self.changed:
                parcel = self.outbox.next() if self._welcomed else None
            if parcel is None:
                return False
            frames: list[bytes | memoryview] = [write_head(parcel.kind, parcel.number)]
            if parcel.body is not None:
                frames.append(memoryview(parcel.body))
            try:
                self._uplink.socket.send_multipart(frames, zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return True
            with self.changed:
                self.outbox.sent()
        return True
