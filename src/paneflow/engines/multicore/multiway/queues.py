"""Queues of times, one for each source, and how one thread merges them: algorithm 2 of Gulisano et
al., "Efficient Data Streaming Multiway Aggregation Through Concurrent Algorithmic Designs and New
Abstract Data Types".

The output thread looks at the first tuple of every queue to find the next one, so a tuple costs it
as many comparisons as there are sources. Unlike there, an empty queue is waited for only as long as
its source may still bring something earlier, and absent sources are not waited for at all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.engines.multicore.multiway.arena import LINE, NOTHING
from paneflow.merging.machine.atomics import observe, publish

LATEST, TAIL, HEAD = range(3)
"""The words of a source: its latest time, and how many tuples were put in and taken out."""
ABSENT_TIME = 2**62
"""The latest time of a source that is not waited for."""


class QueueMemory(NamedTuple):
    """What threads share; each array holds 64-bit integers."""

    sources: Array
    times: Array
    """For each source its ring of times."""
    capacity: int
    """The tuples of a source; a power of two."""


def room_for_queues(sources: int, capacity: int) -> QueueMemory:
    """Memory for so many tuples of each source."""
    memory = QueueMemory(
        np.zeros(sources * LINE, np.int64), np.zeros(sources * capacity, np.int64), capacity
    )
    memory.sources[LATEST::LINE] = NOTHING
    return memory


@compiled
def enqueue(queues, source, times):  # type: ignore[no-untyped-def]
    """Put in as many tuples as there is room for; how many there were."""
    mine = source * LINE
    tail = queues.sources[mine + TAIL]
    count = min(len(times), queues.capacity - (tail - observe(queues.sources, mine + HEAD)))
    for k in range(count):
        queues.times[source * queues.capacity + ((tail + k) & (queues.capacity - 1))] = times[k]
    if count:
        # In this order: a reader that sees the latest time sees the tuples up to it.
        publish(queues.sources, mine + TAIL, tail + count)
        publish(queues.sources, mine + LATEST, times[count - 1])
    return count


@compiled
def advance_queue(queues, source, time):  # type: ignore[no-untyped-def]
    """Raise the latest time of a source without a tuple."""
    if queues.sources[source * LINE + LATEST] < time:
        publish(queues.sources, source * LINE + LATEST, time)


@compiled
def look(queues, source, known):  # type: ignore[no-untyped-def]
    """What the reader may know of a source: its latest time, and then how much was put in."""
    known[source, LATEST] = observe(queues.sources, source * LINE + LATEST)
    known[source, TAIL] = observe(queues.sources, source * LINE + TAIL)


@compiled
def dequeue(queues, source, known):  # type: ignore[no-untyped-def]
    """Make room for what was taken."""
    publish(queues.sources, source * LINE + HEAD, known[source, HEAD])


@compiled
def merge_queues(queues, known, found):  # type: ignore[no-untyped-def]
    """Take the ready tuples that come next out of what is known; how many there were."""
    sources = len(known)
    limit, of = known[0, LATEST], 0
    for source in range(1, sources):
        if known[source, LATEST] < limit:
            limit, of = known[source, LATEST], source
    heads = np.empty(sources, np.int64)
    mask = queues.capacity - 1
    for source in range(sources):
        heads[source] = ABSENT_TIME
        if known[source, HEAD] < known[source, TAIL]:
            heads[source] = queues.times[source * queues.capacity + (known[source, HEAD] & mask)]
    for count in range(len(found.times)):
        first = 0
        for source in range(1, sources):
            if heads[source] < heads[first]:
                first = source
        time = heads[first]
        if time == ABSENT_TIME or time > limit or (time == limit and first > of):
            return count
        found.times[count] = time
        found.sources[count] = first
        found.positions[count] = known[first, HEAD]
        known[first, HEAD] += 1
        heads[first] = ABSENT_TIME
        if known[first, HEAD] < known[first, TAIL]:
            heads[first] = queues.times[first * queues.capacity + (known[first, HEAD] & mask)]
    return len(found.times)
