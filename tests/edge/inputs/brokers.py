"""A real MQTT broker for tests, and somebody who publishes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from tests.edge.ports import free_port, is_used
from tests.waiting import PATIENCE, wait_until

MOSQUITTO = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
WITHOUT = "needs mosquitto, the MQTT broker: `apt-get install mosquitto`"


class Broker:
    """Mosquitto on a port of this machine, which may be stopped and started again."""

    def __init__(self, folder: Path, *lines: str, keeps: bool = True, scheme: str = "mqtt") -> None:
        self.port = free_port()
        self.address = f"{scheme}://127.0.0.1:{self.port}"
        self._settings = folder / "mosquitto.conf"
        # As root, the broker would become a user who may not write into this folder.
        user = ["user root"] if os.getuid() == 0 else []
        memory = ["persistence true", f"persistence_location {folder}/"] if keeps else []
        anybody = (
            [] if any("allow_anonymous" in line for line in lines) else ["allow_anonymous true"]
        )
        settings = [f"listener {self.port} 127.0.0.1", "max_queued_messages 0", *anybody]
        self._settings.write_text("\n".join([*settings, *user, *memory, *lines, ""]))
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        assert MOSQUITTO is not None
        self._process = subprocess.Popen(
            [MOSQUITTO, "-c", str(self._settings)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

        started = self._process

        def listens() -> bool:
            assert started.poll() is None, "mosquitto has ended"
            return is_used(self.port)

        wait_until(listens)

    def stop(self) -> None:
        """End it in an orderly way; what it keeps is on the disk then."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)
            self._process = None


class Publisher:
    """A sensor, or whoever else has something to say. It connects for each call."""

    def __init__(self, broker: Broker, ca_file: Path | None = None) -> None:
        self._broker = broker
        self._ca_file = ca_file

    def publish(self, topic: str, *payloads: Any, qos: int = 1, retain: bool = False) -> None:
        """Publish, and wait until the broker has everything."""
        client = mqtt.Client(CallbackAPIVersion.VERSION2)
        if self._ca_file is not None:
            client.tls_set(str(self._ca_file))
        client.connect("127.0.0.1", self._broker.port)
        client.loop_start()
        wait_until(client.is_connected)
        for sent in [client.publish(topic, payload, qos, retain) for payload in payloads]:
            sent.wait_for_publish(PATIENCE)
        client.disconnect()
        client.loop_stop()
