"""The readings, sent as if they came now: a thread that writes a file for each minute of theirs."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from paneflow.demo.plugs import Readings

FILE = 60
"""Seconds of the plugs' time in a file. Spark may miss one in a list and take it after the next."""


class Feed(threading.Thread):
    """Writes readings in the order of their arrival, `speed` times as fast as they were taken."""

    def __init__(self, readings: Readings, folder: Path, speed: float) -> None:
        super().__init__(name="feed", daemon=True)
        self._readings = readings
        self._folder = folder
        self._speed = speed
        self._stopped = threading.Event()
        self.sent = 0
        self.clock = 0.0
        """Seconds of the plugs' time that have been sent."""

    def run(self) -> None:
        """Send everything that has not been sent."""
        begun = time.monotonic() - self.clock / self._speed
        while self.clock < self._readings.arrival[-1]:
            ahead = begun + (self.clock + FILE) / self._speed - time.monotonic()
            if self._stopped.wait(max(ahead, 0)):
                return
            self.send()

    def send(self) -> None:
        """Send the next minute."""
        edge = self.clock + FILE
        upto = int(np.searchsorted(self._readings.arrival, edge, side="right"))
        # Spark does not see a file whose name begins with a dot, and takes the oldest files first.
        draft = self._folder / f".{edge:06.0f}"
        pq.write_table(self._readings.table.slice(self.sent, upto - self.sent), draft)
        os.utime(draft, (edge, edge))
        self.sent, self.clock = upto, edge
        draft.rename(self._folder / f"{edge:06.0f}.parquet")

    def stop(self) -> None:
        """Send no more."""
        self._stopped.set()
