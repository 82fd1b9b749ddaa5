"""The T-Gate: many sorted sources in, one order out, for several readers, without a lock.

The contract, for the designs that are built on it::

    gate = TupleGate(sources, readers, capacity)   # capacity: tuples of each source, bounded memory

    gate.insert(source, times)     # never decreasing; waits while the source has no room
    gate.offer(source, times, begin) -> int        # the same without waiting: how many were taken
    gate.advance(source, time)     # nothing before this time will come from the source
    gate.idle(source)              # it holds nothing back until it joins again
    gate.join(source) -> int       # it counts again, and must not insert anything before this time
    gate.close(source)             # it has ended

    times, sources, positions = gate.ready(reader) # the next ready tuples, in total order

Sources and readers are numbers from 0. All sources are present at first, and hold everything back
until they show a tuple, fall idle or close. One thread at a time may act for a source, and one for
a reader; different sources and readers need no coordination whatever.

`positions` are those of the tuples in their sources, counted from 0 in the order of insertion: so
whoever inserts a batch keeps the rest of it wherever it likes, before it inserts its times. Each
reader gets every tuple once, in the order (time, source, position), and only when it is ready
(`gate_reading.py`). The arrays belong to the reader, and are overwritten by its next call.

`insert` and `ready` are each one compiled call without the interpreter lock for a whole batch. If a
source has no room, `insert` waits outside of compiled code, where it can be interrupted.
"""

from __future__ import annotations

import threading

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.multiway.arena import NOTHING, room_for
from paneflow.engines.multicore.multiway.gate_reading import take
from paneflow.engines.multicore.multiway.gate_writing import (
    CLOSED_ALREADY,
    REFUSED,
    advance,
    insert,
    join,
    leave,
    room_of,
)
from paneflow.engines.multicore.multiway.merged_runs import Found, room_to_merge
from paneflow.engines.multicore.threads.interrupts import Waiters, put_off
from paneflow.engines.multicore.tuning import tuning


class TupleGate:
    """Merges sources into one order.

    >>> import numpy as np
    >>> gate = TupleGate(sources=2, readers=1, capacity=16)
    >>> gate.insert(0, np.array([1, 4, 9]))
    >>> gate.insert(1, np.array([2, 4]))
    >>> times, sources, positions = gate.ready(0)
    >>> [*zip(times.tolist(), sources.tolist(), positions.tolist())]
    [(1, 0, 0), (2, 1, 0), (4, 0, 1), (4, 1, 1)]
    """

    def __init__(self, sources: int, readers: int, capacity: int) -> None:
        self.capacity = 1 << (capacity - 1).bit_length()
        """Tuples of a source that may wait; a power of two."""
        nodes = max(self.capacity // tuning.tuples_per_node, 2)
        self._memory = room_for(sources, readers, self.capacity, nodes)
        most = min(tuning.taken_at_once, self.capacity * sources)
        self._merging = [room_to_merge(sources, most) for _ in range(readers)]
        self._lock = threading.RLock()
        self._full = Waiters(self._lock)
        """Threads that wait until their source has room."""
        self._taken = 0
        """How many tuples were taken since these were last woken."""
        self._many = max(self.capacity * sources // 2, 1)
        """So many are taken before they are: waking threads costs more than their short waits."""

    def insert(self, source: int, times: Array) -> None:
        """Insert tuples; waits while the source has no room."""
        begin = 0
        while True:
            begin += self.offer(source, times, begin)
            if begin == len(times):
                return
            with put_off, self._lock:
                waiter = self._full.enrol()
            if self.room(source) == 0:
                # Readers wake those that wait, but do not know of places that only writers hold up.
                self._full.sleep(waiter, tuning.full_look)

    def offer(self, source: int, times: Array, begin: int = 0) -> int:
        """Insert tuples from some place on, as far as there is room, and return how many."""
        taken = int(insert(self._memory, source, times, begin, tuning.longest_node))
        if taken == REFUSED:
            raise ValueError(
                f"times of source {source} must be sorted, not before its latest time, and it must "
                f"be present"
            )
        return taken

    def room(self, source: int) -> int:
        """How many more tuples the source has room for."""
        return int(room_of(self._memory, source))

    def advance(self, source: int, time: int) -> None:
        """Say that nothing before a time will come from the source."""
        advance(self._memory, source, time)

    def idle(self, source: int) -> None:
        """Let the source hold nothing back until it joins again."""
        leave(self._memory, source, False)

    def close(self, source: int) -> None:
        """Say that the source has ended."""
        leave(self._memory, source, True)

    def join(self, source: int) -> int | None:
        """Let the source count again; what it inserts must not come before the returned time.

        None if it may insert anything.
        """
        floor = int(join(self._memory, source))
        if floor == CLOSED_ALREADY:
            raise ValueError(f"source {source} is closed and cannot join again")
        return None if floor == NOTHING else floor

    def ready(self, reader: int) -> Found:
        """The next ready tuples of a reader; fewer than there are if there are many."""
        merging, found = self._merging[reader]
        count = int(take(self._memory, reader, merging, found))
        self._taken += count
        if len(self._full) and (count == 0 or self._taken >= self._many):
            with put_off, self._lock:
                self._taken = 0
                self._full.wake()
        return Found(*(column[:count] for column in found))
