"""MQ: a queue with a lock for each source, and one thread that merges, updates and outputs.

It is the baseline of Gulisano et al., and what stream processing engines such as Borealis did.
"""

from __future__ import annotations

import threading

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.multiway.multi_queue_lock_free import LockFreeQueues


class LockedQueues(LockFreeQueues):
    """The same queues, each behind a lock."""

    def __init__(self, sources: int, readers: int, capacity: int) -> None:
        super().__init__(sources, readers, capacity)
        self._locks = [threading.Lock() for _ in range(sources)]

    def offer(self, source: int, times: Array) -> int:
        with self._locks[source]:
            return super().offer(source, times)

    def advance(self, source: int, time: int) -> None:
        with self._locks[source]:
            super().advance(source, time)

    def _look(self, source: int) -> None:
        with self._locks[source]:
            super()._look(source)

    def _dequeue(self, source: int) -> None:
        with self._locks[source]:
            super()._dequeue(source)
