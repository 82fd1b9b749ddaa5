"""The keys of a winset: a lock-free hash table that grows.

The paper takes the table of Michael, whose number of buckets is fixed. Here a slot is looked for
among a few neighbours of the place that the hash names, and taken by one compare-and-swap. If all
of them are taken, the search goes on in a table of twice the size, which the first thread that
needs it adds. What has a slot keeps it, so nothing is ever moved, and no thread waits for another.

A slot belongs to a key and a *lane*. A thread that updates windows is in a lane of its own, and
each lane keeps its own partials of a window, which the output combines in the order of the lanes.
So partials may have any size, and no thread ever waits for a cell: only slots are fought for. If
partials are the same to the bit however they are grouped, a thread takes the first lane that is
free, so there are no more partials of a window than threads that run at a time. If they are not,
such as float sums, every writer has its lane, and results do not depend on how threads are
scheduled.
"""

from __future__ import annotations

import numpy as np

from paneflow.compiling import lean, pasted
from paneflow.engines.multicore.multiway.hive_memory import (
    LEAST_BITS,
    NO_ROOM,
    give_back,
    new_table,
)
from paneflow.merging.machine.atomics import exchange, observe, publish

NEIGHBOURS = 1 << LEAST_BITS
"""How many slots of a table a key may be in."""


@pasted
def home(code, bits):  # type: ignore[no-untyped-def]
    """The slot at which the search for a key begins."""
    x = (np.uint64(code) ^ (np.uint64(code) >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(x >> np.uint64(64 - bits))


@lean
def slot_of(memory, node, code):  # type: ignore[no-untyped-def]
    """The slot of a key and lane in a winset, and whether it is new; NO_ROOM if there is none.

    Only the thread in that lane asks for it, so nobody takes another slot for it meanwhile.
    """
    table = memory.table[node]
    while True:
        bits = memory.bits[table]
        begin, at, mask = memory.begin[table], home(code, bits), (1 << bits) - 1
        for k in range(NEIGHBOURS):
            slot = begin + ((at + k) & mask)
            found = observe(memory.codes, slot)
            if found == code + 1:
                return slot, False
            if found == 0 and exchange(memory.codes, slot, 0, code + 1):
                return slot, True
        following = observe(memory.follow, table)
        if following == 0:
            following = new_table(memory, bits + 1)
            if following == NO_ROOM:
                return np.int64(NO_ROOM), False
            publish(memory.follow, following, 0)
            if not exchange(memory.follow, table, 0, following):
                give_back(memory.spare, bits + 1, memory.below_table, following)
                following = observe(memory.follow, table)
        table = following


@lean
def slots_in(memory, node):  # type: ignore[no-untyped-def]
    """How many slots the tables of a winset have."""
    slots = 0
    table = memory.table[node]
    while table != 0:
        slots += 1 << memory.bits[table]
        table = observe(memory.follow, table)
    return slots


@lean
def empty_out(memory, node, codes, cells, found):  # type: ignore[no-untyped-def]
    """Write out what is in the slots of a final winset, and make its tables free.

    Returns how many have been found, added to those before. No writer looks into these tables.
    """
    table = memory.table[node]
    while table != 0:
        begin, bits = memory.begin[table], memory.bits[table]
        for slot in range(begin, begin + (1 << bits)):
            if memory.codes[slot] != 0:
                codes[found] = memory.codes[slot] - 1
                cells[found] = memory.cells[slot]
                memory.codes[slot] = 0
                found += 1
        following = observe(memory.follow, table)
        publish(memory.follow, table, 0)
        give_back(memory.spare, bits, memory.below_table, table)
        table = following
    return found
