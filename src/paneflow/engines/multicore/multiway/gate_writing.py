"""How writers insert: algorithm 4 of Gulisano et al., "Efficient Data Streaming Multiway
Aggregation Through Concurrent Algorithmic Designs and New Abstract Data Types", over arenas.

The gate is a list of nodes in the order of their first tuples (time, source, position), with
shortcuts: a skip list. A node holds a *run*, consecutive tuples of one source. A writer finds its
place from where it inserted last, which it remembers for each level, links a node by comparing and
swapping one pointer on each level, and then raises its source's frontier, which makes tuples ready.

The lowest level is the truth; a shortcut may be missing. All links lead forward.

Nodes behind all readers are used again. A writer therefore announces the epoch in which it begins
to look at nodes. Nodes that readers left in some epoch are overwritten when every writer that looks
at nodes has begun in a later epoch. It has then seen that they were left, and has not followed any
pointer to them.

These functions are compiled, and `tests/multicore/multiway/interleaving.py` runs their text step by
step: whatever threads share is read and written by the functions of `merging/atomics.py`, but for
the words of a node and the tuples, which are written before a node is linked.
"""

from __future__ import annotations

from paneflow.compiling import compiled, lean
from paneflow.engines.multicore.multiway.arena import (
    ABSENT,
    AWAY,
    CLOSED,
    CURSOR,
    ENTERED,
    FIRST,
    FRONTIER,
    HEIGHT,
    LEFT,
    LEFT_IN,
    LENGTH,
    LEVELS,
    LINE,
    NEXT,
    NODES,
    NONE,
    SAFE,
    SHOWN,
    TIME,
    TUPLES,
    place_of,
    source_of,
    tuple_at,
)
from paneflow.merging.machine.atomics import add, exchange, fence, observe, publish

CLOSED_ALREADY = -(2**63)
REFUSED = -1
SCATTERING = 0x9E3779B97F4A7C15 - 2**64
"""An odd number without a pattern: the bits in the middle of its multiples look random."""


@lean
def least_of(gate, counts, source):  # type: ignore[no-untyped-def]
    """The count of the reader that is furthest behind."""
    least = observe(counts, source)
    for cell in range(gate.stride + source, len(counts), gate.stride):
        least = min(least, observe(counts, cell))
    return least


@lean
def precedes(gate, pointer, time, source):  # type: ignore[no-untyped-def]
    """Whether a node comes before a run that its source is about to insert."""
    other = gate.nodes[place_of(gate, pointer) + TIME]
    return other < time or (other == time and source_of(gate, pointer) <= source)


@lean
def height_of(pointer):  # type: ignore[no-untyped-def]
    """How many levels a node has: a quarter of the nodes have two or more, and so on."""
    scattered = (pointer * SCATTERING) >> 33
    height = 1
    while height < LEVELS and scattered & 3 == 0:
        height += 1
        scattered >>= 2
    return height


@lean
def drop_old_hints(gate, source):  # type: ignore[no-untyped-def]
    """Forget nodes that all readers have left, and begin at a reader if no node is left."""
    for hint in range(source * LEVELS, (source + 1) * LEVELS):
        pointer = gate.hints[hint]
        if pointer != NONE:
            of = source_of(gate, pointer)
            if pointer >> gate.bits < least_of(gate, gate.passed, of):
                gate.hints[hint] = NONE
    if gate.hints[source * LEVELS] == NONE:
        # Nothing is ever inserted before the last node that a reader has opened.
        gate.hints[source * LEVELS] = observe(gate.readers, CURSOR)


@lean
def follow(gate, source, level, pointer, time):  # type: ignore[no-untyped-def]
    """The last node of a level that precedes a run, from a node on."""
    while True:
        after = observe(gate.nodes, place_of(gate, pointer) + NEXT + level)
        if after == NONE or not precedes(gate, after, time, source):
            return pointer
        pointer = after
        above = source * LEVELS + level + 1
        taller = gate.nodes[place_of(gate, pointer) + HEIGHT] > level + 1
        if taller and gate.hints[above] == NONE:
            gate.hints[above] = pointer  # a level without a hint gets one from the level below


@lean
def find_place(gate, source, time):  # type: ignore[no-untyped-def]
    """Make the hints of a source the last nodes before a run, on each level that has one."""
    drop_old_hints(gate, source)
    best = NONE
    for level in range(LEVELS - 1, -1, -1):
        pointer = gate.hints[source * LEVELS + level]
        if pointer == NONE:
            pointer = best
        elif best != NONE:
            begun = gate.nodes[place_of(gate, best) + TIME]
            if precedes(gate, pointer, begun, source_of(gate, best)):
                pointer = best
        if pointer != NONE:
            best = follow(gate, source, level, pointer, time)
            gate.hints[source * LEVELS + level] = best


@lean
def link(gate, source, time, first, length):  # type: ignore[no-untyped-def]
    """Insert a run as a node."""
    number = gate.sources[source * LINE + NODES]
    gate.sources[source * LINE + NODES] = number + 1
    pointer = number << gate.bits | source
    height = height_of(pointer)
    node = place_of(gate, pointer)
    gate.nodes[node + TIME] = time
    gate.nodes[node + FIRST] = first
    gate.nodes[node + LENGTH] = length
    gate.nodes[node + HEIGHT] = height
    for level in range(LEVELS):
        gate.nodes[node + NEXT + level] = NONE
    find_place(gate, source, time)
    for level in range(height):
        before = gate.hints[source * LEVELS + level]
        while before != NONE:
            before = follow(gate, source, level, before, time)
            link_of = place_of(gate, before) + NEXT + level
            after = observe(gate.nodes, link_of)
            if after == NONE or not precedes(gate, after, time, source):
                publish(gate.nodes, node + NEXT + level, after)
                if exchange(gate.nodes, link_of, after, pointer):
                    break
        gate.hints[source * LEVELS + level] = pointer


@lean
def has_node(gate, source):  # type: ignore[no-untyped-def]
    """Whether a source may use its next node: no thread looks at what was there before."""
    mine = source * LINE
    wanted = gate.sources[mine + NODES] - gate.ring
    if wanted < gate.sources[mine + SAFE]:
        return True
    if gate.sources[mine + LEFT] <= wanted:
        gate.sources[mine + LEFT] = least_of(gate, gate.passed, source)
        if gate.sources[mine + LEFT] <= wanted:
            return False
        gate.sources[mine + LEFT_IN] = add(gate.epoch, 0, 1)
    fence()
    for other in range(len(gate.sources) // LINE):
        entered = observe(gate.sources, other * LINE + ENTERED)
        if other != source and entered <= gate.sources[mine + LEFT_IN]:
            return False
    gate.sources[mine + SAFE] = gate.sources[mine + LEFT]
    return True


@lean
def in_order(gate, source, times, begin):  # type: ignore[no-untyped-def]
    """Whether a source is present, and its times neither decrease nor come too late."""
    frontier = observe(gate.sources, source * LINE + FRONTIER)
    last = frontier >> 1
    wrong = frontier & ABSENT
    for i in range(begin, len(times)):
        wrong |= times[i] < last
        last = times[i]
    return not wrong


@lean
def room_left(gate, source):  # type: ignore[no-untyped-def]
    """How many tuples fit into the ring of a source."""
    return gate.capacity - gate.sources[source * LINE + TUPLES] + least_of(gate, gate.taken, source)


@compiled
def insert(gate, source, times, begin, longest):  # type: ignore[no-untyped-def]
    """Insert tuples as runs of at most some length, while there is room; how many there were."""
    if not in_order(gate, source, times, begin):
        return REFUSED
    mine = source * LINE
    at = begin
    publish(gate.sources, mine + ENTERED, observe(gate.epoch, 0))
    fence()
    while at < len(times):
        first = gate.sources[mine + TUPLES]
        length = min(min(room_left(gate, source), longest), len(times) - at)
        if length == 0 or not has_node(gate, source):
            break
        for k in range(length):
            gate.times[tuple_at(gate, source, first + k)] = times[at + k]
        gate.sources[mine + TUPLES] = first + length
        link(gate, source, times[at], first, length)
        at += length
        publish(gate.sources, mine + SHOWN, times[at - 1])
        publish(gate.sources, mine + FRONTIER, 2 * times[at - 1])
    publish(gate.sources, mine + ENTERED, AWAY)
    return at - begin


@compiled
def advance(gate, source, time):  # type: ignore[no-untyped-def]
    """Raise the frontier of a present source without a tuple."""
    if observe(gate.sources, source * LINE + FRONTIER) < 2 * time:
        publish(gate.sources, source * LINE + FRONTIER, 2 * time)


@compiled
def leave(gate, source, closing):  # type: ignore[no-untyped-def]
    """Let a source hold nothing back any more: for the time being, or for ever."""
    cell = source * LINE + FRONTIER
    while True:
        frontier = observe(gate.sources, cell)
        # Readers raise the frontier of an absent source.
        if exchange(gate.sources, cell, frontier, CLOSED if closing else frontier | ABSENT):
            return


@compiled
def join(gate, source):  # type: ignore[no-untyped-def]
    """Let a source hold back tuples again; the time before which it must not insert any."""
    cell = source * LINE + FRONTIER
    while True:
        frontier = observe(gate.sources, cell)
        if frontier == CLOSED:
            return CLOSED_ALREADY
        if exchange(gate.sources, cell, frontier, frontier & ~ABSENT):
            return frontier >> 1


@compiled
def room_of(gate, source):  # type: ignore[no-untyped-def]
    """How many tuples a source can insert now."""
    return room_left(gate, source)
