"""How readers take tuples out of a T-Gate: once each, in total order, and only when ready.

Definition 1 of Gulisano et al. calls a tuple ready if no source's latest time is before its own.
Sources may still insert further tuples of their latest time, and in the total order (time, source,
position) these come before tuples of the same time from later sources. So readiness is decided by
time and source together: a tuple is ready up to the *limit*, the least (latest time, source) of all
sources that are present. The last tuple of the source with that time is ready, too.

An absent source holds nothing back. Its frontier is raised by the reader that goes beyond it, in
one step that fails if the source has come back meanwhile. So a source that comes back knows from
its own frontier what it must not insert any more.

A reader opens nodes in the order of the list, up to the limit. The runs of one source lie one after
another in its ring, so all that a reader remembers of open runs is two positions for each source:
up to where nodes are open, and up to where tuples were given out. It gives out the open tuples that
precede all other nodes (`merged_runs.py`).
"""

from __future__ import annotations

from paneflow.compiling import compiled, lean
from paneflow.engines.multicore.multiway.arena import (
    ABSENT,
    CURSOR,
    FIRST,
    FRONTIER,
    LENGTH,
    LIMIT,
    LIMIT_SOURCE,
    LINE,
    MORE,
    NEXT,
    NONE,
    NOTHING,
    SHOWN,
    TIME,
    UNTIL,
    UNTIL_SOURCE,
    place_of,
    source_of,
)
from paneflow.engines.multicore.multiway.merged_runs import merge_runs
from paneflow.merging.machine.atomics import exchange, observe, publish


@lean
def least_frontier(gate):  # type: ignore[no-untyped-def]
    """The least (latest time, source) of present sources; the last tuple's if all are absent."""
    limit, of = NOTHING, NONE
    last, of_last = NOTHING, NONE
    for source in range(len(gate.sources) // LINE):
        frontier = observe(gate.sources, source * LINE + FRONTIER)
        if frontier & ABSENT:
            shown = observe(gate.sources, source * LINE + SHOWN)
            if shown >= last:
                last, of_last = shown, source
        elif of == NONE or frontier >> 1 < limit:
            limit, of = frontier >> 1, source
    if of == NONE:
        return last, of_last
    return limit, of


@lean
def all_beyond(gate, limit, of):  # type: ignore[no-untyped-def]
    """Whether no source can insert anything before a limit; absent ones are told not to."""
    for source in range(len(gate.sources) // LINE):
        cell = source * LINE + FRONTIER
        least = 2 * (limit + (source < of))
        frontier = observe(gate.sources, cell)
        if frontier < least:
            if not frontier & ABSENT:
                return False
            if not exchange(gate.sources, cell, frontier, least | ABSENT):
                return False
    return True


@lean
def raise_limit(gate, reader):  # type: ignore[no-untyped-def]
    """Find the limit, or one that it had during this call.

    Once no source can insert anything before a limit, it stays so. As long as the source with that
    frontier still has it, nothing needs to be looked at again, however many sources there are.
    """
    mine = reader * LINE
    known, of_known = gate.readers[mine + LIMIT], gate.readers[mine + LIMIT_SOURCE]
    if known != NOTHING and observe(gate.sources, of_known * LINE + FRONTIER) == 2 * known:
        return
    while True:
        limit, of = least_frontier(gate)
        if limit == NOTHING:
            return
        if all_beyond(gate, limit, of):
            break
    # A frontier may have been raised without a tuple, so the last tuple may be behind the limit.
    if limit > known or (limit == known and of > of_known):
        gate.readers[mine + LIMIT] = limit
        gate.readers[mine + LIMIT_SOURCE] = of


@lean
def open_nodes(gate, reader, most):  # type: ignore[no-untyped-def]
    """Open nodes with so many tuples, and say up to where all ready tuples are open.

    Returns whether nodes that are ready are left. Open tuples up to the time and source `UNTIL`
    precede every node that is not open.
    """
    mine, cells = reader * LINE, reader * gate.stride
    limit, of = gate.readers[mine + LIMIT], gate.readers[mine + LIMIT_SOURCE]
    last = gate.readers[mine + CURSOR]
    tuples = 0
    while True:
        pointer = observe(gate.nodes, place_of(gate, last) + NEXT)
        # Without another node, as beyond the limit: nothing comes before it any more.
        node, time, source = 0, limit, of + 1
        if pointer != NONE:
            node = place_of(gate, pointer)
            time, source = gate.nodes[node + TIME], source_of(gate, pointer)
        if time > limit or (time == limit and source > of):
            gate.readers[mine + UNTIL] = limit
            gate.readers[mine + UNTIL_SOURCE] = of
            return False
        if tuples >= most:
            gate.readers[mine + UNTIL] = time
            gate.readers[mine + UNTIL_SOURCE] = source
            return True
        gate.opened[cells + source] = gate.nodes[node + FIRST] + gate.nodes[node + LENGTH]
        tuples += gate.nodes[node + LENGTH]
        # In this order: a writer that sees that a node was left looks for the next one here.
        publish(gate.readers, mine + CURSOR, pointer)
        publish(gate.passed, cells + source_of(gate, last), (last >> gate.bits) + 1)
        last = pointer


@compiled
def take(gate, reader, merging, found):  # type: ignore[no-untyped-def]
    """Take the ready tuples that come next, as many as there is room for; how many there were.

    There are none only if none is ready.
    """
    mine, most = reader * LINE, len(found.times)
    if gate.readers[mine + MORE]:
        # The last call had no room for what it had opened.
        count = merge_runs(gate, reader, merging, found)
        gate.readers[mine + MORE] = count == most
        if count > 0:
            return count
    raise_limit(gate, reader)
    if gate.readers[mine + LIMIT] == NOTHING:
        return 0
    left = True
    count = 0
    while left and count == 0:
        left = open_nodes(gate, reader, most)
        count = merge_runs(gate, reader, merging, found)
    gate.readers[mine + MORE] = count == most
    return count
