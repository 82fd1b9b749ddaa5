"""The operations of a W-Hive, each one compiled call for a whole batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled, lean
from paneflow.engines.multicore.multiway.hive_memory import (
    LEAST_BITS,
    LEVELS,
    LINE,
    MOST_BITS,
    NO_ROOM,
    USUAL,
    least_progress,
)
from paneflow.engines.multicore.multiway.winset_keys import empty_out, slot_of, slots_in
from paneflow.engines.multicore.multiway.winset_list import (
    behead,
    enter,
    first_final,
    leave,
    reclaim,
    winset,
)
from paneflow.merging.machine.atomics import breathe, exchange, observe, publish

LOOK = 20
"""Microseconds between looks at lanes that other threads are in."""


class Bounds(NamedTuple):
    """Which winsets an event updates."""

    edges: Array
    """Times at which windows begin or end, as progressions (phase, step)."""
    range: int
    """How long a winset is; 0 if winsets are slices, which reach from edge to edge."""
    slide: int
    offset: int
    least: int
    """Winsets that begin before this are closed to the events."""


class Own(NamedTuple):
    """What one lane has for itself."""

    fields: Array
    """How many events each cell has, and how many of them have the values of each set."""
    free: Array
    """A stack of free cells."""
    left: Array
    """One number: how many cells are free."""
    seen: Array
    """For each key, the slice that it was last seen in; empty if winsets are windows."""
    spot: Array
    """For each key, its cell in that slice."""


class Events(NamedTuple):
    """The events of a batch, or those of them that one writer is responsible for."""

    key: Array
    t: Array
    present: Array
    """Which events have all values, for each set that is counted; empty rows if all have."""
    share: int
    shares: int
    """Only events whose key leaves this remainder when divided by the number of shares."""


class Pairs(NamedTuple):
    """Room for pairs of an event and a cell that it contributes to."""

    which: Array
    cells: Array


class Retired(NamedTuple):
    """A queue of nodes that were given out, until they can be used again."""

    nodes: Array
    epochs: Array
    ends: Array


class Released(NamedTuple):
    """Room for what final winsets hold."""

    number: Array
    """The winsets."""
    until: Array
    """For each winset, where what it holds ends."""
    codes: Array
    cells: Array


@lean
def _stretch(edges, t):  # type: ignore[no-untyped-def]
    """The edges before and after a time."""
    low = t - (t - edges[0, 0]) % edges[0, 1]
    high = low + edges[0, 1]
    for e in range(1, len(edges)):
        edge = t - (t - edges[e, 0]) % edges[e, 1]
        low = max(low, edge)
        high = min(high, edge + edges[e, 1])
    return low, high


@lean
def _count_in(fields, present, cell, i):  # type: ignore[no-untyped-def]
    fields[0, cell] += 1
    for row in range(1, len(fields)):
        fields[row, cell] += present.shape[1] == 0 or present[row - 1, i]


@lean
def _cell(memory, node, code, own):  # type: ignore[no-untyped-def]
    """The lane's cell of a key in a winset, perhaps a new one; NO_ROOM if there is no room."""
    slot, fresh = slot_of(memory, node, code)
    if slot == NO_ROOM:
        return np.int64(NO_ROOM)
    if fresh:
        own.left[0] -= 1
        memory.cells[slot] = own.free[own.left[0]]
    return memory.cells[slot]


@lean
def _winsets(memory, bounds, t, low, trail, nodes):  # type: ignore[no-untyped-def]
    """Find the winsets of a time, which is in the slice that begins at `low`; returns how many."""
    first = last = low
    if bounds.range != 0:
        since = t - bounds.offset
        last = bounds.offset + since // bounds.slide * bounds.slide
        first = bounds.offset + ((since - bounds.range) // bounds.slide + 1) * bounds.slide
    found = 0
    for number in range(max(first, bounds.least), last + 1, max(bounds.slide, 1)):
        nodes[found] = winset(memory, number, trail)
        if nodes[found] == NO_ROOM:
            return NO_ROOM
        found += 1
    return found


@compiled
def place(memory, lane, own, bounds, events, start, pairs):  # type: ignore[no-untyped-def]
    """Find the cells of events, from one on; count the events in them and list the pairs.

    Goes from one stretch of events with the same winsets to the next, and there from winset to
    winset, so that one table is in the cache at a time. Returns how far it came, and how many
    pairs there are; the lane must have as many free cells as there is room for pairs. It has not
    come on at all if a single event has more winsets than that, and NO_ROOM says that the memory
    is used up.
    """
    key, t = events.key, events.t
    lanes = len(memory.taken) // LINE
    most = 1 if bounds.range == 0 else (bounds.range - 1) // bounds.slide + 1
    trail = np.zeros(LEVELS, np.int64)
    nodes = np.zeros(most, np.int64)
    listed, i = 0, start
    enter(memory, lane)
    while i < len(t):
        if events.shares > 1 and key[i] % events.shares != events.share:
            i += 1
            continue
        low, high = _stretch(bounds.edges, t[i])
        found = _winsets(memory, bounds, t[i], low, trail, nodes)
        if found == NO_ROOM:
            leave(memory, lane)
            return NO_ROOM, listed
        fitting = len(t) if found == 0 else (len(pairs.which) - listed) // found
        end = i
        while end < len(t) and end - i < fitting and low <= t[end] < high:
            end += 1
        if end == i:
            break
        for k in range(found):
            for e in range(i, end):
                if events.shares > 1 and key[e] % events.shares != events.share:
                    continue
                if len(own.seen) and own.seen[key[e]] == low:
                    cell = own.spot[key[e]]
                else:
                    cell = _cell(memory, nodes[k], key[e] * lanes + lane, own)
                    if cell == NO_ROOM:
                        leave(memory, lane)
                        return NO_ROOM, listed
                    if len(own.seen):
                        own.seen[key[e]] = low
                        own.spot[key[e]] = cell
                _count_in(own.fields, events.present, cell, e)
                pairs.which[listed] = e
                pairs.cells[listed] = cell
                listed += 1
        i = end
    leave(memory, lane)
    return i, listed


@compiled
def free_lane(memory):  # type: ignore[no-untyped-def]
    """Take the first lane that no thread is in; there are as many lanes as writers."""
    while True:
        for at in range(0, len(memory.taken), LINE):
            if observe(memory.taken, at) == 0 and exchange(memory.taken, at, 0, 1):
                return at // LINE


@compiled
def free_among(memory, lanes, looks):  # type: ignore[no-untyped-def]
    """Take one of some lanes, as soon as no thread is in it; -1 if it was none at so many looks."""
    for _ in range(looks):
        for lane in lanes:
            at = lane * LINE
            if observe(memory.taken, at) == 0 and exchange(memory.taken, at, 0, 1):
                return lane
        breathe(LOOK)
    return np.int64(-1)


@compiled
def release_lane(memory, lane):  # type: ignore[no-untyped-def]
    """Let another thread have the lane, with all that was written in it."""
    publish(memory.taken, lane * LINE, 0)


@compiled
def pass_on(memory, writer, number):  # type: ignore[no-untyped-def]
    """The writer will update no winset before this one any more."""
    if number > observe(memory.progress, writer * LINE):
        publish(memory.progress, writer * LINE, number)


@compiled
def final_slots(memory, most):  # type: ignore[no-untyped-def]
    """How many winsets are final, at most so many, and how many slots they have.

    Also returns the bound before which they are, as it may have moved when they are taken.
    """
    least = least_progress(memory)
    winsets, slots = 0, 0
    node = first_final(memory, least)
    while node != 0 and winsets < most:
        winsets += 1
        slots += slots_in(memory, node)
        node = observe(memory.links, node * LEVELS)
        if node != 0 and memory.number[node] >= least:
            break
    return winsets, slots, least


@compiled
def release(memory, winsets, least, released, levels_held, retired):  # type: ignore[no-untyped-def]
    """Give out the first winsets, which are final, and reclaim memory; returns what they hold."""
    found = 0
    for k in range(winsets):
        node = first_final(memory, least)
        before = found
        found = empty_out(memory, node, released.codes, released.cells, found)
        released.number[k] = memory.number[node]
        released.until[k] = found
        behead(memory, node, levels_held, retired)
        bits = LEAST_BITS
        while bits < MOST_BITS and (1 << bits) < 2 * (found - before):
            bits += 1
        publish(memory.counters, USUAL, bits)
    reclaim(memory, retired)
    return found


@compiled
def arrange(released, winsets, found, lanes, row_of, seen, stamp, out):  # type: ignore[no-untyped-def]
    """Number the windows of winsets, and sort what lanes know of them by lane.

    Returns how many windows there are.
    """
    number, key, target, cells, starts = out
    starts[:] = 0
    for e in range(found):
        starts[released.codes[e] % lanes + 1] += 1
    for w in range(lanes):
        starts[w + 1] += starts[w]
    ends = starts.copy()
    rows, begin = 0, 0
    for k in range(winsets):
        for e in range(begin, released.until[k]):
            of = released.codes[e] // lanes
            lane = released.codes[e] % lanes
            if seen[of] != stamp + k:
                seen[of] = stamp + k
                row_of[of] = rows
                number[rows] = released.number[k]
                key[rows] = of
                rows += 1
            target[ends[lane]] = row_of[of]
            cells[ends[lane]] = released.cells[e]
            ends[lane] += 1
        begin = released.until[k]
    return rows
