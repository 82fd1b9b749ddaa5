"""The winsets of a W-Hive: a lock-free list in order of time, with shortcuts.

Algorithm 5 of Gulisano et al., "Efficient data streaming multiway aggregation through concurrent
algorithmic designs and new abstract data types". A winset is a node. Every node is on level 0,
about one in four of them on each further level, and a search goes from the highest level down. A
node is linked with one compare-and-swap per level. The one on level 0 makes it part of the list;
the others are shortcuts, and a search that misses one only takes longer.

What is different here:

*Which winset is final.* The paper asks whether the time of the first winset is among the times that
writers announced. A writer that has announced an earlier winset, and not linked it yet, would be
overtaken. So the first winset is given out only if it is before all announced times, and these are
read before the list.

*Memory.* The node that was given out last stays as the head of its levels: what is linked behind it
by writers that still stand there is not lost. So each level has a head of its own, and every other
node that was given out can be used again, once all writers that may stand on it have left. Writers
say in which epoch they entered; the output begins a new epoch after it has moved the heads.
"""

from __future__ import annotations

import numpy as np

from paneflow.compiling import lean, pasted
from paneflow.engines.multicore.multiway.hive_memory import (
    EPOCH,
    LEVELS,
    LINE,
    NO_ROOM,
    OF_NODES,
    USUAL,
    give_back,
    new_node,
    new_table,
)
from paneflow.merging.machine.atomics import exchange, fence, observe, publish


@pasted
def height(number):  # type: ignore[no-untyped-def]
    """On how many levels a winset is: the same in every run, as if drawn at random."""
    bits = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93) >> np.uint64(40)
    levels = 1
    while levels < LEVELS and bits & np.uint64(3) == np.uint64(0):
        bits >>= np.uint64(2)
        levels += 1
    return levels


@lean
def enter(memory, lane):  # type: ignore[no-untyped-def]
    """Nothing that the thread in this lane can see from here on is used again until it leaves."""
    publish(memory.inside, lane * LINE, observe(memory.counters, EPOCH))
    fence()


@lean
def leave(memory, lane):  # type: ignore[no-untyped-def]
    """The thread in this lane stands on no node any more."""
    publish(memory.inside, lane * LINE, 0)


@lean
def _before(memory, number, level, at):  # type: ignore[no-untyped-def]
    """The last node of a level that begins before a time; `at` is one that does."""
    while True:
        right = observe(memory.links, at * LEVELS + level)
        if right == 0 or memory.number[right] >= number:
            return at
        at = right


@lean
def winset(memory, number, trail):  # type: ignore[no-untyped-def]
    """The node of a winset, linked by this thread if by nobody else; NO_ROOM if there is no room.

    There is none either for a winset that was given out: its writer has broken its word.
    `trail` holds, for each level, a node before this one, or 0; it is moved on.
    """
    if memory.number[observe(memory.heads, 0)] >= number:
        return NO_ROOM
    at = 0
    for level in range(LEVELS - 1, -1, -1):
        for other in (observe(memory.heads, level), trail[level]):
            if memory.number[at] < memory.number[other] < number:
                at = other
        at = _before(memory, number, level, at)
        trail[level] = at
    right = observe(memory.links, at * LEVELS)
    if right != 0 and memory.number[right] == number:
        return right
    new = new_node(memory)
    if new == NO_ROOM:
        return NO_ROOM
    bits = observe(memory.counters, USUAL)
    table = new_table(memory, bits)
    if table == NO_ROOM:
        give_back(memory.spare, OF_NODES, memory.below_node, new)
        return NO_ROOM
    memory.number[new] = number
    memory.table[new] = table
    publish(memory.follow, table, 0)
    levels = height(number)
    for level in range(levels):
        at = trail[level]
        while True:
            at = _before(memory, number, level, at)
            right = observe(memory.links, at * LEVELS + level)
            if right != 0 and memory.number[right] <= number:
                if level == 0 and memory.number[right] == number:  # another writer was faster
                    give_back(memory.spare, bits, memory.below_table, table)
                    give_back(memory.spare, OF_NODES, memory.below_node, new)
                    return right
                continue
            publish(memory.links, new * LEVELS + level, right)
            if exchange(memory.links, at * LEVELS + level, right, new):
                break
        trail[level] = at
    return new


@lean
def first_final(memory, least):  # type: ignore[no-untyped-def]
    """The first winset, if it is before a time that all writers have passed; 0 if it is not."""
    first = observe(memory.links, observe(memory.heads, 0) * LEVELS)
    if first == 0 or memory.number[first] >= least:
        return 0
    return first


@lean
def behead(memory, node, levels_held, retired):  # type: ignore[no-untyped-def]
    """Let the list begin after its first node; what it began with before may be retired.

    `levels_held` counts for each node of how many levels it is the head, and `retired` is a queue
    of nodes and the epochs in which they were: both belong to the output.
    """
    levels = height(memory.number[node])
    levels_held[node] = levels
    for level in range(levels):
        before = observe(memory.heads, level)
        publish(memory.heads, level, node)
        if before != 0:
            levels_held[before] -= 1
            if levels_held[before] == 0:
                end = retired.ends[1]
                retired.nodes[end % len(retired.nodes)] = before
                retired.epochs[end % len(retired.nodes)] = observe(memory.counters, EPOCH)
                retired.ends[1] = end + 1


@lean
def reclaim(memory, retired):  # type: ignore[no-untyped-def]
    """Make retired nodes free that no writer can stand on."""
    if retired.ends[0] == retired.ends[1]:
        return
    epoch = observe(memory.counters, EPOCH) + 1
    publish(memory.counters, EPOCH, epoch)
    fence()
    for at in range(0, len(memory.inside), LINE):
        since = observe(memory.inside, at)
        if since != 0:
            epoch = min(epoch, since)
    while retired.ends[0] < retired.ends[1]:
        place = retired.ends[0] % len(retired.nodes)
        if retired.epochs[place] >= epoch:
            return
        give_back(memory.spare, OF_NODES, memory.below_node, retired.nodes[place])
        retired.ends[0] += 1
