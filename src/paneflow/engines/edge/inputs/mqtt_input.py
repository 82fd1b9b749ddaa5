"""Sensors that publish over MQTT: a child subscribes to their topics. Each topic is a source."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from paneflow.engines.edge.inputs.columns import Columns
from paneflow.engines.edge.inputs.contract import Arrived, own_positions, source_name
from paneflow.engines.edge.inputs.mqtt.client import UNDER_WAY, Client, Login, Message
from paneflow.engines.edge.inputs.mqtt.ledger import Known, Ledger
from paneflow.engines.edge.inputs.mqtt.payloads import Payloads
from paneflow.engines.edge.inputs.mqtt.topics import Topics
from paneflow.errors import InputError

log = logging.getLogger(__name__)

_MESSAGE_BYTES = 16 << 20
_MESSAGES_AT_ONCE = 10_000


class MqttInput:
    """Messages of an MQTT 5 broker, acknowledged when they are in the log.

    Nothing that is published with QoS 1 or 2 is lost: neither while the broker and the child are
    cut off from each other, nor if either dies, provided that the broker keeps its sessions on disk
    and its queues are long enough. (Mosquitto keeps 1,000 messages for each client unless
    `max_queued_messages` says otherwise.) A message that the broker sends again after a break is
    recognised. What is published with QoS 0 may be lost, as MQTT has it.

    Nothing is taken twice either if events are numbered. Without numbers, a child that dies between
    writing its log and acknowledging takes the messages in between again.

    Args:
        name: What the names of its sources begin with.
        address: The broker: `mqtt://HOST:PORT`, or `mqtts://HOST:PORT` for TLS.
        topic: What to subscribe to. A level in braces becomes a column: `home/{house}/{plug}/load`.
        schema: The schema of the events.
        time: The column of their times.
        client_id: By this the broker knows the child again. No two clients may share it.
        payload: `"json"` (an object or an array of objects) or `"arrow"` (an Arrow IPC stream).
        number: The field in which each topic numbers its events, growing from 1 on. It need not be
            a column of the schema.
        user: The name to log in with, if the broker wants one.
        password: And the password.
        ca_file: The certificates to trust with TLS, if not those of the system.
    """

    def __init__(
        self,
        name: str,
        address: str,
        topic: str,
        schema: pa.Schema,
        time: str,
        *,
        client_id: str,
        payload: str = "json",
        number: str | None = None,
        user: str | None = None,
        password: str | None = None,
        ca_file: Path | None = None,
    ) -> None:
        self.name = name
        self._topics = Topics(topic)
        self._payloads = Payloads(Columns(schema, time), payload, number, _MESSAGE_BYTES)
        self._ledger = Ledger(remembered=2 * UNDER_WAY)
        self._session = 0
        self._positions: dict[str, int] = {}
        self._settled: dict[str, int] = {}
        self._refused: Counter[str] = Counter()
        login = Login(user, password, ca_file)
        self._client = Client(address, self._topics.filter, client_id, login, _MESSAGE_BYTES)

    @property
    def refused(self) -> int:
        """Messages that could not be read, or for which there was no room."""
        return self._refused.total() + self._client.dropped

    @property
    def finished(self) -> bool:
        """Never: somebody may publish again."""
        return False

    def start(self, positions: Mapping[str, int]) -> None:
        """Connect, and continue the numbers of each topic."""
        self._positions = own_positions(self.name, positions)
        self._settled = dict(self._positions)
        self._client.start()

    def read(self, most: int) -> list[Arrived]:
        """Events that have arrived, together for each topic."""
        self._client.drain()
        found: dict[str, list[pa.Table]] = {}
        queue = self._client.queue
        for _ in range(_MESSAGES_AT_ONCE):
            if not queue or (len(found) >= most and queue[0].topic not in found):
                break
            message = queue.popleft()
            events = self._new_events(message)
            if events is not None:
                found.setdefault(message.topic, []).append(events)
        # Messages that were refused wait for nothing that is still to be written.
        self.settle({})
        return [
            Arrived(
                source_name(self.name, topic),
                self._positions[topic],
                pa.concat_tables(tables).combine_chunks(),
            )
            for topic, tables in found.items()
        ]

    def settle(self, positions: Mapping[str, int]) -> None:
        """Acknowledge what is in the log."""
        self._settled.update(own_positions(self.name, positions))
        self._client.acknowledge(self._session, self._ledger.settle(self._settled))

    def waits_on(self) -> Sequence[Any]:
        """A socket that is written to when a message arrives."""
        return [self._client.woken.fileno()]

    def pause(self) -> float | None:
        """No pause while messages wait that have not been read."""
        return 0.0 if self._client.queue else None

    def close(self) -> None:
        """Disconnect. The broker keeps what is not acknowledged, and what comes meanwhile."""
        self._client.close()

    def _new_events(self, message: Message) -> pa.Table | None:
        """The events of a message; None if it has none that are new."""
        if message.session > self._session:
            self._ledger.forget()
            self._session = message.session
        digest = hash((message.topic, message.payload))
        if message.qos and message.again:
            known = self._ledger.look(message.identifier, digest)
            if known is Known.LOGGED:
                self._client.acknowledge(message.session, [message.identifier])
            if known is not Known.NEW:
                return None
        events = self._read(message)
        if message.qos:
            position = self._positions.get(message.topic, 0)
            self._ledger.add(message.identifier, digest, message.topic, position)
        return events

    def _read(self, message: Message) -> pa.Table | None:
        """The events of a message behind those of its topic that are known."""
        last = self._positions.get(message.topic, 0)
        try:
            levels = self._topics.read(message.topic)
            events, position = self._payloads.read(message.payload, levels, last)
        except InputError as error:
            self._refuse(message.topic, error)
            return None
        if not events.num_rows:
            return None
        self._positions[message.topic] = position
        return events

    def _refuse(self, topic: str, error: InputError) -> None:
        """Count a message, and say so for the first, second, fourth, ... of its topic."""
        self._refused[topic] += 1
        count = self._refused[topic]
        if count & (count - 1) == 0:
            log.warning(
                "input %r has refused %d messages of %r, the last one because: %s",
                self.name,
                count,
                topic,
                error,
            )
