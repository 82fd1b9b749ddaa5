"""The connection to an MQTT broker: a thread of paho's that queues what arrives.

The session outlives the connection: the broker keeps messages that are not acknowledged while the
child is away. They are acknowledged by hand, when the child has them in its log.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from paneflow.errors import InputError

log = logging.getLogger(__name__)

UNDER_WAY = 1_000
"""Messages that the broker sends without having heard that earlier ones are in the log."""
_MOST_UNCONFIRMED = 10_000
"""Messages with QoS 0 that may wait: the broker does not stop sending them by itself."""
_KEEP_ALIVE = 30
"""Seconds without a word after which either end asks whether the other one is there."""
_REMEMBERED = 7 * 24 * 3600
"""Seconds for which the broker is asked to keep the session of a child that is away."""


class Message(NamedTuple):
    """A message as it came."""

    session: int
    """How many sessions the broker has lost before."""
    identifier: int
    qos: int
    again: bool
    topic: str
    payload: bytes


class Login(NamedTuple):
    """How to get in.

    `ca_file` holds the certificates to trust, if not those of the system.
    """

    user: str | None = None
    password: str | None = None
    ca_file: Path | None = None


class _Place(NamedTuple):
    host: str
    port: int
    secure: bool


class Client:
    """Subscribes to a filter of topics, connects again whenever it is cut off, and queues."""

    def __init__(
        self, address: str, filter: str, client_id: str, login: Login, most_bytes: int
    ) -> None:
        place = _place(address)  # checked before anything is open
        self.queue: deque[Message] = deque()
        self.dropped = 0
        """Messages with QoS 0 for which there was no room, and topics that are no text."""
        self.woken, self._waker = socket.socketpair()
        self.woken.setblocking(False)
        self._waker.setblocking(False)
        self._address = address
        self._filter = filter
        self._session = 0
        self._connected = False
        self._client = mqtt.Client(
            CallbackAPIVersion.VERSION2, client_id, protocol=mqtt.MQTTv5, manual_ack=True
        )
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_connect_fail = self._on_connect_fail
        self._client.on_subscribe = self._on_subscribe
        self._client.on_message = self._on_message
        self._client.reconnect_delay_set(1, 30)
        if login.user is not None:
            self._client.username_pw_set(login.user, login.password)
        if place.secure:
            trusted = None if login.ca_file is None else str(login.ca_file)
            self._client.tls_set_context(ssl.create_default_context(cafile=trusted))
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = _REMEMBERED
        properties.ReceiveMaximum = UNDER_WAY
        properties.MaximumPacketSize = most_bytes
        self._client.connect_async(
            place.host, place.port, _KEEP_ALIVE, clean_start=False, properties=properties
        )

    def start(self) -> None:
        """Connect, now or as soon as the broker is there."""
        self._client.loop_start()

    def acknowledge(self, session: int, identifiers: list[int]) -> None:
        """Tell the broker what it may forget, unless it has lost the session.

        While the connection is broken, nothing is told: the broker will send these messages again.
        """
        for identifier in identifiers:
            if self._connected and session == self._session:
                self._client.ack(identifier, 1)

    def drain(self) -> None:
        """Notice that there is something in the queue."""
        try:
            while self.woken.recv(4096):
                pass
        except BlockingIOError:
            return

    def close(self) -> None:
        """Disconnect. The broker keeps the session."""
        self._client.disconnect()
        self._client.loop_stop()
        self.woken.close()
        self._waker.close()

    def _on_connect(
        self, client: mqtt.Client, data: Any, flags: Any, code: ReasonCode, properties: Any
    ) -> None:
        if code.is_failure:
            log.error("the broker at %s refused the connection: %s", self._address, code)
            return
        if not flags.session_present:
            self._session += 1
        self._connected = True
        # Retained messages are old news: whoever subscribes again would take them a second time.
        options = SubscribeOptions(qos=1, retainHandling=SubscribeOptions.RETAIN_DO_NOT_SEND)
        client.subscribe(self._filter, options=options)

    def _on_disconnect(
        self, client: mqtt.Client, data: Any, flags: Any, code: ReasonCode, properties: Any
    ) -> None:
        self._connected = False
        if code.is_failure:
            log.warning("the connection to the broker at %s broke: %s", self._address, code)

    def _on_connect_fail(self, client: mqtt.Client, data: Any) -> None:
        log.warning("the broker at %s cannot be reached; it is tried again", self._address)

    def _on_subscribe(
        self, client: mqtt.Client, data: Any, mid: int, codes: list[ReasonCode], properties: Any
    ) -> None:
        for code in codes:
            if code.is_failure:
                log.error("the broker refused to send %r: %s", self._filter, code)

    def _on_message(self, client: mqtt.Client, data: Any, message: mqtt.MQTTMessage) -> None:
        if message.qos == 0 and len(self.queue) >= _MOST_UNCONFIRMED:
            self.dropped += 1
            return
        try:
            topic = message.topic
        except UnicodeDecodeError:
            self.dropped += 1
            client.ack(message.mid, message.qos)
            return
        self.queue.append(
            Message(
                self._session, message.mid, message.qos, message.dup, topic, bytes(message.payload)
            )
        )
        try:
            self._waker.send(b"!")
        except (BlockingIOError, OSError):
            return  # it is awake already, or closed


def _place(address: str) -> _Place:
    """Where the broker is, and whether it speaks TLS."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("mqtt", "mqtts"):
        raise InputError(
            f"{address!r} is not the address of a broker: expected 'mqtt://HOST:PORT', or "
            f"'mqtts://HOST:PORT' for TLS"
        )
    secure = parts.scheme == "mqtts"
    return _Place(host, port or (8883 if secure else 1883), secure)
