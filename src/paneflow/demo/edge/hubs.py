"""Houses: in each, a hub sends what its plugs read, over MQTT or over ZeroMQ."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import paho.mqtt.client as mqtt
import pyarrow as pa
from paho.mqtt.enums import CallbackAPIVersion

from paneflow.demo.edge.layout import HOUSES, Addresses, topic
from paneflow.engines.edge.inputs.sensor import Sensor
from paneflow.errors import UnsupportedError

CHILD_OF = {house: child for child, houses in HOUSES.items() for house in houses}
TOGETHER = 10
"""Readings in a message, at most."""
NOBODY_SUBSCRIBES = 0x10
"""What an MQTT 5 broker answers to a message that nobody wants."""
LONGEST = 60.0
"""Seconds after which a broker or a child that does not answer is taken to be dead."""


class Hubs(Protocol):
    """The hubs of all houses."""

    def send(self, house: str, readings: pa.Table) -> None:
        """Send readings of a house. They are kept until they have been taken."""

    def flush(self) -> None:
        """Wait until all that was sent is where it cannot be lost."""


@contextmanager
def over_zmq(at: Addresses) -> Iterator[Hubs]:
    """Hubs that are connected to their child nodes."""
    with ExitStack() as stack:
        yield ZmqHubs(
            {
                house: stack.enter_context(Sensor(at.listen[child], f"hub-{house}"))
                for house, child in CHILD_OF.items()
            }
        )


class ZmqHubs:
    """A connection for each house."""

    def __init__(self, sensors: Mapping[str, Sensor]) -> None:
        self._sensors = sensors

    def send(self, house: str, readings: pa.Table) -> None:
        """Push the readings; a child that is dead gets them when it is back."""
        self._sensors[house].push(readings, timeout=LONGEST)

    def flush(self) -> None:
        """Wait until the children have everything in their logs."""
        for sensor in self._sensors.values():
            sensor.flush(timeout=LONGEST)


@contextmanager
def over_mqtt(port: int) -> Iterator[Hubs]:
    """Hubs that publish at a broker, to which all children have subscribed."""
    hubs = MqttHubs(port)
    try:
        hubs.wait_for_subscribers()
        yield hubs
    finally:
        hubs.close()


class MqttHubs:
    """One connection for all houses. Each has a topic, and numbers its readings."""

    def __init__(self, port: int) -> None:
        self._numbers = dict.fromkeys(CHILD_OF, 0)
        self._sent: list[mqtt.MQTTMessageInfo] = []
        self._unwanted: set[int] = set()
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        self._client.max_inflight_messages_set(100)
        self._client.on_publish = self._on_publish
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    def wait_for_subscribers(self) -> None:
        """Publish nothing until somebody hears it."""
        end = time.monotonic() + LONGEST
        for house in CHILD_OF:
            while not self._is_heard(house):
                if time.monotonic() > end:
                    raise UnsupportedError(
                        f"no child has subscribed to {topic(CHILD_OF[house], house)}: see the logs "
                        f"of the nodes"
                    )
                time.sleep(0.1)

    def send(self, house: str, readings: pa.Table) -> None:
        """Publish the readings, a few in each message."""
        for start in range(0, readings.num_rows, TOGETHER):
            several = [self._payload(house, r) for r in readings.slice(start, TOGETHER).to_pylist()]
            self._publish(house, several)
        self._sent = [one for one in self._sent if not one.is_published()]

    def flush(self) -> None:
        """Wait until the broker has everything."""
        for one in self._sent:
            one.wait_for_publish(LONGEST)

    def close(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        self._client.loop_stop()

    def _payload(self, house: str, reading: dict[str, Any]) -> dict[str, Any]:
        """A reading as JSON: its house is in the topic."""
        self._numbers[house] += 1
        told = {name: reading[name] for name in ("plug", "load", "work")}
        return {"n": self._numbers[house], "ts": reading["ts"].isoformat(), **told}

    def _is_heard(self, house: str) -> bool:
        asked = self._publish(house, [])
        asked.wait_for_publish(LONGEST)
        return asked.mid not in self._unwanted

    def _publish(self, house: str, payload: list[dict[str, Any]]) -> mqtt.MQTTMessageInfo:
        sent = self._client.publish(topic(CHILD_OF[house], house), json.dumps(payload), qos=1)
        self._sent.append(sent)
        return sent

    def _on_publish(
        self, client: mqtt.Client, data: Any, identifier: int, code: Any, properties: Any
    ) -> None:
        if code.value == NOBODY_SUBSCRIBES:
            self._unwanted.add(identifier)
