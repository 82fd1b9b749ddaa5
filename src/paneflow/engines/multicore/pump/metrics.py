"""What a stream has done, and how long its results took.

Latency is the time from the arrival of the event that made a row final to the moment when the row
can be read. It is kept as a histogram whose classes grow by a sixteenth, so its size does not
depend on how long the stream lives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from paneflow.engines.multicore.contract import UnitMetrics
from paneflow.engines.multicore.pump.sources import SourceMetrics, Sources

CLASSES = 512
LEAST = 1e-6
STEP = math.log(17 / 16)


@dataclass(frozen=True)
class Latency:
    """Seconds from the arrival of an event to the row that it made final.

    Attributes:
        rows: How many rows were measured.
        p50: What half of them did not exceed.
        p99: What 99 % of them did not exceed.
        max: The longest.

    Example:
        >>> from paneflow.engines.multicore.pump.metrics import Histogram
        >>> Histogram().latency()
        Latency(rows=0, p50=0.0, p99=0.0, max=0.0)
    """

    rows: int
    p50: float
    p99: float
    max: float


@dataclass(frozen=True)
class StreamMetrics:
    """What a stream has done so far; `stream.metrics()` returns it.

    Attributes:
        pushed: Events that were pushed, late ones included.
        late: Events that arrived after all their windows had been emitted; they change nothing.
        timeless: Events without a time, which were dropped.
        ahead: Events further ahead of the clock than `max_ahead` allows, which were dropped.
        waiting: Events that were pushed and have not been processed.
        held: Events that wait for the watermark to reach them.
        withheld: Rows that wait for others that may come before them.
        unread: Rows that can be read.
        watermark: The time up to which events are final; None before the first.
        latency: How long rows took.
        units: What each processing unit has done.
        sources: What each source has shown: a slow or dead one can be told by it.

    Example:
        >>> import paneflow as pf
        >>> from paneflow import aggregates as A, windows as W
        >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
        >>> with query.open() as stream:
        ...     stream.push([{"t": 1, "v": 5}, {"t": None, "v": 2}])
        ...     stream.metrics().timeless
        1
    """

    pushed: int
    late: int
    timeless: int
    ahead: int
    waiting: int
    held: int
    withheld: int
    unread: int
    watermark: int | None
    latency: Latency
    units: tuple[UnitMetrics, ...]
    sources: tuple[SourceMetrics, ...]

    @property
    def imbalance(self) -> float:
        """How much longer the busiest processing unit has worked than the average one.

        1.0 if all have worked for the same time, or if there is nothing to compare.
        """
        busy = [unit.busy for unit in self.units]
        total = sum(busy)
        return max(busy) * len(busy) / total if total else 1.0


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


def no_metrics(sources: int, timeless: int, ahead: int) -> StreamMetrics:
    """A stream that has not begun; events may have been left out all the same."""
    return StreamMetrics(
        pushed=0,
        late=0,
        timeless=timeless,
        ahead=ahead,
        waiting=0,
        held=0,
        withheld=0,
        unread=0,
        watermark=None,
        latency=Histogram().latency(),
        units=(),
        sources=Sources(sources).metrics(),
    )
