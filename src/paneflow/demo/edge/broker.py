"""A real MQTT broker, mosquitto, on a free port of this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType

from paneflow.demo.edge.layout import free_ports
from paneflow.errors import UnsupportedError

HOW_TO_GET_IT = "apt-get install mosquitto"
PLACES = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin")
"""Where the broker may be although no command line finds it there."""
STARTS_WITHIN = 20.0


def find_broker() -> str | None:
    """The program, if it is installed."""
    return shutil.which("mosquitto", path=os.pathsep.join([os.environ.get("PATH", ""), *PLACES]))


class Broker:
    """Runs while a `with` block does, and keeps its queues on the disk."""

    def __init__(self, program: str, folder: Path) -> None:
        (self.port,) = free_ports(1)
        self.address = f"mqtt://127.0.0.1:{self.port}"
        self._program = program
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Broker:
        self._folder.mkdir(parents=True)
        settings = self._folder / "mosquitto.conf"
        lines = [
            f"listener {self.port} 127.0.0.1",
            "allow_anonymous true",
            "persistence true",
            f"persistence_location {self._folder.resolve()}/",
            "max_queued_messages 0",
            f"log_dest file {self._folder.resolve()}/mosquitto.log",
            # Started by root, it would become a user who may not write here.
            *(["user root"] if os.geteuid() == 0 else []),
        ]
        settings.write_text("\n".join([*lines, ""]), encoding="utf-8")
        self._process = subprocess.Popen(
            [self._program, "-c", str(settings)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + STARTS_WITHIN
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > end:
                self._stop()
                raise UnsupportedError(
                    f"{self._program} does not start: see {self._folder / 'mosquitto.log'}"
                )
            time.sleep(0.02)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def _listens(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0
