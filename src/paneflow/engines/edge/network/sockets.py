"""The two ends of a connection: a listener for the nodes below, an uplink to the parent.

Both carry opaque messages and never wait. A listener tells connections apart by ids of its own, so
a node cannot take another's place by using its name: who a node is, is settled by its greeting and
its key. An uplink tells when a connection has been made anew, because the greeting is due then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import zmq
from zmq.utils.monitor import recv_monitor_message

from paneflow.engines.edge.network.addresses import stays_here
from paneflow.engines.edge.network.keys import Keys, KeysError
from paneflow.errors import PaneflowError

log = logging.getLogger(__name__)

Context = zmq.Context[zmq.Socket[bytes]]

_UPLINK_EVENTS = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)
_LISTENER_EVENTS = zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL


class AddressError(PaneflowError):
    """An address that nobody can listen at, or connect to, from here."""


@dataclass(frozen=True)
class Limits:
    """What a connection may cost, and when it counts as broken. Times are in seconds."""

    message_bytes: int = 64 << 20
    queued_messages: int = 1_000
    """In either direction, for each connection."""
    heartbeat: float = 2.0
    silence: float = 10.0
    """After that long without an answer to a heartbeat, a connection is broken."""
    reconnect: float = 0.05
    reconnect_most: float = 2.0
    """The longest pause between two attempts, and the one after a parent has refused a key."""
    linger: float = 0.5


STANDARD = Limits()


class Received(NamedTuple):
    """What arrived at once, and where it came from."""

    connection: bytes
    key: str
    """The key that the sender has proved to own; empty where nobody needs one."""
    messages: list[bytes]


class Listener:
    """Takes messages from any number of nodes, and answers them."""

    def __init__(
        self, context: Context, address: str, keys: Keys | None, limits: Limits = STANDARD
    ) -> None:
        _check_secure(address, keys)
        self.socket = context.socket(zmq.ROUTER)
        _configure(self.socket, address, limits)
        if keys is not None:
            self.socket.curve_server = True
            self.socket.curve_secretkey = keys.secret
            self.socket.curve_publickey = keys.public
            self.socket.zap_domain = b"paneflow"
        self.events = self.socket.get_monitor_socket(_LISTENER_EVENTS)
        try:
            self.socket.bind(address)
        except zmq.ZMQError as error:
            self.close()
            raise _unusable(address, error) from None
        self.address = _bound_to(self.socket)
        self.failed_handshakes = 0

    def receive(self, most_bytes: int) -> Iterator[Received]:
        """Messages that have arrived, until that many bytes have been given."""
        given = 0
        while given < most_bytes:
            try:
                sender, *frames = self.socket.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            given += sum(len(frame) for frame in frames)
            yield Received(sender.bytes, _key_of(sender), [frame.bytes for frame in frames])

    def send(self, connection: bytes, message: bytes) -> None:
        """Send a message, or drop it if the connection is gone or does not keep up."""
        try:
            self.socket.send_multipart([connection, message], zmq.NOBLOCK)
        except (zmq.Again, zmq.ZMQError) as error:
            log.debug("a message could not be sent", extra=_fields(self.address, why=str(error)))

    def read_events(self) -> None:
        """Log connections that broke off before anybody could tell who it was."""
        for _ in _read(self.events):
            self.failed_handshakes += 1
            why = "it does not speak this protocol, or expects another key of this node"
            log.warning("a connection was refused", extra=_fields(self.address, why=why))

    def close(self) -> None:
        """Stop listening; what was sent has a moment to leave."""
        _close(self.socket, self.events)


class Uplink:
    """The connection to a node's parent. It is made again whenever it breaks."""

    def __init__(
        self,
        context: Context,
        address: str,
        keys: Keys | None,
        parent_key: bytes | None,
        limits: Limits = STANDARD,
    ) -> None:
        _check_secure(address, keys)
        if keys is not None and parent_key is None:
            raise KeysError(
                f"the public key of the node at {address} is missing, so nobody could know who "
                "answers there. Copy it into the folder of keys"
            )
        self.address = address
        self.socket = context.socket(zmq.DEALER)
        _configure(self.socket, address, limits)
        if keys is not None and parent_key is not None:
            self.socket.curve_serverkey = parent_key
            self.socket.curve_secretkey = keys.secret
            self.socket.curve_publickey = keys.public
        self.events = self.socket.get_monitor_socket(_UPLINK_EVENTS)
        try:
            self.socket.connect(address)
        except zmq.ZMQError as error:
            self.close()
            raise _unusable(address, error) from None
        self.connected = False
        self._complained = False
        self._reconnect = limits.reconnect_most
        self._again_at: float | None = None
        """When to connect anew after a refusal: ZeroMQ itself takes that as final."""

    def receive(self) -> Iterator[bytes]:
        """Messages that have arrived."""
        while True:
            try:
                yield from self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return

    def send(self, *messages: bytes) -> bool:
        """Send messages, all at once; say whether there was room for them."""
        try:
            self.socket.send_multipart(messages, zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def read_events(self) -> bool:
        """Whether there is a connection that was not there before."""
        anew = False
        if self._again_at is not None and time.monotonic() >= self._again_at:
            self._again_at = None
            self.socket.disconnect(self.address)
            self.socket.connect(self.address)
        for event in _read(self.events):
            kind = event["event"]
            if kind == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._complained = False
            elif kind == zmq.EVENT_DISCONNECTED:
                if self.connected:
                    log.info("the connection to the parent is gone", extra=_fields(self.address))
            else:
                refused = kind == zmq.EVENT_HANDSHAKE_FAILED_AUTH
                self._complain(refused)
                if refused:
                    self._again_at = time.monotonic() + self._reconnect
            self.connected = anew = kind == zmq.EVENT_HANDSHAKE_SUCCEEDED
        return anew

    def pause(self) -> float | None:
        """Seconds after which `read_events` has something to do although nothing has happened."""
        return None if self._again_at is None else max(self._again_at - time.monotonic(), 0.0)

    def _complain(self, unknown: bool) -> None:
        """Log why there is no connection: once, although it is tried again and again."""
        if self._complained:
            return
        self._complained = True
        if unknown:
            why = "it does not know the key of this node: copy the public key into its folder"
            log.error("the parent refuses this node", extra=_fields(self.address, why=why))
        else:
            log.warning("the parent did not complete a handshake", extra=_fields(self.address))

    def close(self) -> None:
        """Disconnect; what was sent has a moment to leave."""
        _close(self.socket, self.events)


def _check_secure(address: str, keys: Keys | None) -> None:
    if keys is None and not stays_here(address):
        raise KeysError(
            f"{address} can be reached from other machines, and this node has no keys, so anybody "
            "could read events and send their own. Make keys with `paneflow keys make FOLDER` and "
            "name the folder in the configuration, or use an address of this machine, such as "
            "tcp://127.0.0.1:7001"
        )


def _configure(socket: zmq.Socket[bytes], address: str, limits: Limits) -> None:
    socket.maxmsgsize = limits.message_bytes
    socket.sndhwm = socket.rcvhwm = limits.queued_messages
    socket.heartbeat_ivl = round(limits.heartbeat * 1000)
    socket.heartbeat_timeout = round(limits.silence * 1000)
    socket.heartbeat_ttl = round(limits.silence * 1000)
    socket.handshake_ivl = round(limits.silence * 1000)
    socket.reconnect_ivl = round(limits.reconnect * 1000)
    socket.reconnect_ivl_max = round(limits.reconnect_most * 1000)
    socket.linger = round(limits.linger * 1000)
    # Listening with IPv6 on an address of IPv4 would show all of them as mapped to IPv6.
    socket.ipv6 = "[" in address


def _unusable(address: str, error: zmq.ZMQError) -> AddressError:
    return AddressError(
        f"{address} cannot be used ({zmq.strerror(error.errno or 0)}): choose another address, or "
        f"stop what uses this one"
    )


def _close(socket: zmq.Socket[bytes], events: zmq.Socket[bytes]) -> None:
    if not socket.closed:
        socket.disable_monitor()
        events.close()
        socket.close()


def _bound_to(socket: zmq.Socket[bytes]) -> str:
    endpoint = socket.last_endpoint
    return endpoint.decode() if isinstance(endpoint, bytes) else str(endpoint)


def _key_of(frame: zmq.Frame) -> str:
    try:
        return str(frame.get("User-Id"))
    except zmq.ZMQError:
        return ""


def _read(events: zmq.Socket[bytes]) -> Iterator[Any]:
    while True:
        try:
            yield recv_monitor_message(events, zmq.NOBLOCK)
        except zmq.Again:
            return


def _fields(address: str, **others: object) -> dict[str, Any]:
    return {"fields": {"address": address, **others}}
