"""What a stream has done, and how long its results took.

Latency is counted from the arrival of the event that made a row final to the moment when the row
can be read. It is kept as a histogram whose classes grow by a sixteenth, so that it costs the
same however long the stream lives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from paneflow.engines.multicore.contract import UnitMetrics

CLASSES = 512
LEAST = 1e-6
STEP = math.log(17 / 16)


@dataclass(frozen=True)
class Latency:
    """Seconds from an event's arrival to the row that it made final."""

    rows: int
    p50: float
    p99: float
    max: float


@dataclass(frozen=True)
class StreamMetrics:
    """A stream as it is now."""

    pushed: int
    """Events that were taken in, late ones included."""
    late: int
    """Events that came when all their windows had been given out; they change nothing."""
    timeless: int
    """Events without a time; they were left out."""
    waiting: int
    """Events that were pushed and not looked at yet."""
    held: int
    """Events that wait for the watermark to reach them."""
    withheld: int
    """Rows that wait for others that may come before them."""
    unread: int
    """Rows that can be read."""
    watermark: int | None
    latency: Latency
    units: tuple[UnitMetrics, ...]
    """What each processing unit has done."""


class Histogram:
    """How often each latency occurred."""

    def __init__(self) -> None:
        self._counts = np.zeros(CLASSES, np.int64)
        self._most = 0.0

    def add(self, seconds: float, times: int) -> None:
        """Note that so many rows took so long."""
        place = int(math.log(max(seconds, LEAST) / LEAST) / STEP)
        self._counts[min(place, CLASSES - 1)] += times
        self._most = max(self._most, seconds)

    def latency(self) -> Latency:
        """What half of the rows, and all but one in a hundred, did not exceed."""
        counts = self._counts.copy()
        total = int(counts.sum())
        return Latency(total, self._below(counts, 0.5), self._below(counts, 0.99), self._most)

    def _below(self, counts: np.ndarray[tuple[int], np.dtype[np.int64]], share: float) -> float:
        if not counts.any():
            return 0.0
        place = int(np.searchsorted(np.cumsum(counts), share * counts.sum()))
        return min(LEAST * math.exp((place + 1) * STEP), self._most)
