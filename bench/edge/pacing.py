"""Events at a fixed rate, made by one thread and sent by another, with a queue between them.

If one thread did both, a slow receiver would slow down the making of events, and the latency of
events that were never made in time would not be counted (coordinated omission). See "An experiment
on coordinated omission" in Friedrich, Wingerath and Ritter, and "Disco", section 5.1.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.edge.stream import SECOND, Feed
from paneflow.engines.edge.inputs.sensor import Sensor

CHUNK = 0.005
"""Seconds; a second is a whole number of chunks."""


@dataclass
class Paced:
    """A stream at a fixed rate.

    Args:
        feed: Where values come from; its batches are chunks.
        sensor: Where they go.
        seconds: How long it lasts.
        chunk: Seconds of events that are made at once.
    """

    feed: Feed
    sensor: Sensor
    seconds: float
    chunk: float = CHUNK
    backlog: list[tuple[float, int]] = field(default_factory=list)
    """The chunks that waited in the queue, and when."""

    def __post_init__(self) -> None:
        self._queue: queue.SimpleQueue[int | None] = queue.SimpleQueue()

    def run(self, begin: int) -> None:
        """Make and send all events from a time on, in microseconds since 1970."""
        sender = threading.Thread(target=self._send, args=(begin,))
        sender.start()
        for number in range(round(self.seconds / self.chunk)):
            # A chunk is there when the time of its last event has come.
            pause = begin / SECOND + (number + 1) * self.chunk - time.time()
            if pause > 0:
                time.sleep(pause)
            self._queue.put(number)
        self._queue.put(None)
        sender.join()

    def _send(self, begin: int) -> None:
        step = round(self.chunk * SECOND)
        while (number := self._queue.get()) is not None:
            self.backlog.append((time.time() - begin / SECOND, self._queue.qsize()))
            self.sensor.push(self.feed.batch(number, begin + number * step))

    @property
    def sustainable(self) -> bool:
        """Whether the queue has not grown.

        Its mean over the last third of the run is compared with that over the middle third. Fewer
        chunks than make a tenth of a second may wait at any time.
        """
        third = self.seconds / 3
        middle = [waiting for when, waiting in self.backlog if third <= when < 2 * third]
        last = [waiting for when, waiting in self.backlog if when >= 2 * third]
        few = 0.1 / self.chunk
        return (
            bool(last) and _mean(last) <= max(few, 1.2 * _mean(middle)) and _mean(last) < 10 * few
        )


def _mean(numbers: Sequence[int]) -> float:
    return sum(numbers) / max(len(numbers), 1)
