"""MQ-LF: a queue without a lock for each source, and one thread that merges, updates and outputs.

It is the baseline of Gulisano et al. that shows what queues cost even without locks. Each queue is
a ring with one writer and one reader.
"""

from __future__ import annotations

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.multiway.arena import NOTHING
from paneflow.engines.multicore.multiway.merged_runs import Found
from paneflow.engines.multicore.multiway.queues import (
    ABSENT_TIME,
    HEAD,
    LATEST,
    advance_queue,
    dequeue,
    enqueue,
    look,
    merge_queues,
    room_for_queues,
)
from paneflow.engines.multicore.tuning import tuning


class LockFreeQueues:
    """A merger (`source_front.py`) of queues; sources leave and join in the reader's thread."""

    def __init__(self, sources: int, readers: int, capacity: int) -> None:
        assert readers == 1
        self._memory = room_for_queues(sources, 1 << (capacity - 1).bit_length())
        self._known = np.zeros((sources, 3), np.int64)
        self._absent = np.zeros(sources, np.bool_)
        self._limit: int | None = None
        self._found = Found(*(np.zeros(tuning.taken_at_once, np.int64) for _ in Found._fields))

    def offer(self, source: int, times: Array) -> int:
        """Put in as many tuples as there is room for, and return how many."""
        return int(enqueue(self._memory, source, times))

    def advance(self, source: int, time: int) -> None:
        """Say that nothing before a time will come from the source."""
        advance_queue(self._memory, source, time)

    def idle(self, source: int) -> None:
        """Let the source hold nothing back until it joins again."""
        self._absent[source] = True

    close = idle

    def join(self, source: int) -> int | None:
        """Let the source count again; what it puts in must not come before the returned time."""
        self._absent[source] = False
        return self._limit

    def ready(self, reader: int) -> Found:
        """The next ready tuples; fewer than there are if there are many."""
        for source in range(len(self._known)):
            self._look(source)
        self._known[self._absent, LATEST] = ABSENT_TIME
        limit = int(self._known[:, LATEST].min())
        before = self._known[:, HEAD].copy()
        count = int(merge_queues(self._memory, self._known, self._found))
        for source in np.flatnonzero(self._known[:, HEAD] > before).tolist():
            self._dequeue(source)
        found = Found(*(column[:count] for column in self._found))
        if limit not in (NOTHING, ABSENT_TIME):
            self._limit = limit + 1
        elif count:
            self._limit = int(found.times[-1]) + 1
        return found

    def _look(self, source: int) -> None:
        look(self._memory, source, self._known)

    def _dequeue(self, source: int) -> None:
        dequeue(self._memory, source, self._known)
