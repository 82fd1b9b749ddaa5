"""The memory of a W-Hive: arenas that are laid out once, with index pointers into them.

Every pointer is a place in an array, and place 0 is none, so fresh memory is ready for use. An
arena is large, but costs only what has been touched: the system lends a page of memory when it is
first written. Places that have been given back are taken again before fresh ones.

Free places are stacks. The top of a stack is one word: the place on top, and above it a tag that
changes whenever the stack does. A thread that has read the top and what lies below it therefore
finds out if others have taken and given back that very place in between (the ABA problem).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import lean
from paneflow.engines.multicore.ticks import AFTER_ALL, BEFORE_ALL
from paneflow.merging.machine.atomics import add, exchange, observe, publish

LINE = 8
"""Words of a cache line: what threads write all the time lies so far apart."""
LEVELS = 6
"""The most levels of the list of winsets; each skips about four times as many as the one below."""
EPOCH, NODES, TABLES, SLOTS, USUAL = (LINE * k for k in range(5))
"""The counters: the epoch, how many fresh nodes, tables and slots have been taken, and the usual
size of a table."""
OF_NODES = 0
"""The stack of free nodes; that of tables with 2**b slots is number b."""
LEAST_BITS, MOST_BITS = 4, 26
TAG_BITS = 32
PLACE = 2**TAG_BITS - 1
NO_ROOM = -1


class HiveMemory(NamedTuple):
    """All that threads share; each array holds 64-bit integers."""

    counters: Array
    spare: Array
    """The tops of the stacks of free places."""
    progress: Array
    """For each writer, the earliest winset that it may still update."""
    taken: Array
    """For each lane, whether a thread is in it."""
    inside: Array
    """For each lane, the epoch at which its thread began to look around; 0 if it does not."""
    heads: Array
    """For each level, the last node that was given out and has that level: the list begins here."""
    number: Array
    """For each node, the time at which its windows begin."""
    table: Array
    """For each node, the first table with its keys."""
    links: Array
    """For each node and level, the next node."""
    below_node: Array
    begin: Array
    """For each table, its first slot."""
    bits: Array
    """For each table, the logarithm of its number of slots."""
    follow: Array
    """For each table, a larger one with keys that it has no room for."""
    below_table: Array
    codes: Array
    """For each slot, key and lane as one number, plus 1; 0 if the slot is free."""
    cells: Array
    """For each slot, where the lane keeps what it knows of the window."""


def room_for(writers: int, nodes: int, tables: int, slots: int) -> HiveMemory:
    """Memory for so many writers and lanes; at most so many nodes, tables and slots are in use."""
    sizes = {
        "counters": LINE * (MOST_BITS + 1),
        "spare": LINE * (MOST_BITS + 1),
        "progress": LINE * writers,
        "taken": LINE * writers,
        "inside": LINE * writers,
        "heads": LEVELS,
        "number": nodes,
        "table": nodes,
        "links": LEVELS * nodes,
        "below_node": nodes,
        "begin": tables,
        "bits": tables,
        "follow": tables,
        "below_table": tables,
        "codes": slots,
        "cells": slots,
    }
    memory = HiveMemory(**{name: np.zeros(size, np.int64) for name, size in sizes.items()})
    memory.progress[:] = BEFORE_ALL
    memory.number[0] = BEFORE_ALL  # node 0 begins the list, and is no node's next one
    memory.counters[[EPOCH, NODES, TABLES, USUAL]] = 1, 1, 1, LEAST_BITS
    return memory


@lean
def take_spare(tops, stack, below):  # type: ignore[no-untyped-def]
    """A free place from a stack; 0 if it is empty."""
    while True:
        top = observe(tops, stack * LINE)
        place = top & PLACE
        if place == 0:
            return 0
        under = observe(below, place)
        if exchange(tops, stack * LINE, top, (((top >> TAG_BITS) + 1) << TAG_BITS) | under):
            return place


@lean
def give_back(tops, stack, below, place):  # type: ignore[no-untyped-def]
    """Put a place on a stack of free ones."""
    while True:
        top = observe(tops, stack * LINE)
        publish(below, place, top & PLACE)
        if exchange(tops, stack * LINE, top, (((top >> TAG_BITS) + 1) << TAG_BITS) | place):
            return


@lean
def new_node(memory):  # type: ignore[no-untyped-def]
    """A node that no other thread knows; NO_ROOM if all are in use."""
    place = take_spare(memory.spare, OF_NODES, memory.below_node)
    if place == 0:
        place = add(memory.counters, NODES, 1)
        if place >= len(memory.number):
            add(memory.counters, NODES, -1)
            return NO_ROOM
    return place


@lean
def new_table(memory, bits):  # type: ignore[no-untyped-def]
    """An empty table with 2**bits slots; NO_ROOM if the memory is used up."""
    if bits > MOST_BITS:
        return NO_ROOM
    place = take_spare(memory.spare, bits, memory.below_table)
    if place != 0:
        return place
    begin = add(memory.counters, SLOTS, 1 << bits)
    if begin + (1 << bits) > len(memory.codes):
        add(memory.counters, SLOTS, -(1 << bits))
        return NO_ROOM
    place = add(memory.counters, TABLES, 1)
    if place >= len(memory.begin):
        add(memory.counters, TABLES, -1)
        return NO_ROOM
    memory.begin[place] = begin
    memory.bits[place] = bits
    return place


@lean
def least_progress(memory):  # type: ignore[no-untyped-def]
    """Nobody will update a winset before this."""
    least = AFTER_ALL
    for at in range(0, len(memory.progress), LINE):
        least = min(least, observe(memory.progress, at))
    return least
