"""The memory of a T-Gate: arenas that are laid out once, with index pointers into them.

Every source has an arena of its own: a ring of tuples and a ring of nodes. A shared arena would
invite a deadlock: sources that are ahead would fill it, and the source that everything waits for
could not insert the tuple that makes theirs ready.

A pointer to a node is the number of the node in its source, and below it, in the lowest bits, the
source. Numbers are never used again, so a pointer says for ever which node was meant, and whether
that node has been passed by the readers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import lean
from paneflow.slicing.times import FARTHEST

LINE = 8
"""Words of a cache line: what threads write all the time lies so far apart."""
LEVELS = 4
"""The most levels of a node; each level has a quarter of the nodes of the one below."""

# The words of a source. All but the first three are its writer's own.
FRONTIER = 0
"""The latest time of the source and, as the lowest bit, whether it is absent."""
SHOWN = 1
"""The time of its last tuple."""
ENTERED = 2
"""The epoch in which its writer began to look at nodes; `AWAY` while it does not."""
TUPLES = 3
"""How many tuples it has inserted."""
NODES = 4
"""How many nodes it has used."""
SAFE = 5
"""Nodes with smaller numbers than this may be overwritten: no thread looks at them."""
LEFT, LEFT_IN = 6, 7
"""Nodes with smaller numbers than `LEFT` were passed by all readers by the epoch `LEFT_IN`."""

# The words of a reader. All but the first are its own.
CURSOR = 0
"""The last node that it has opened."""
LIMIT, LIMIT_SOURCE = 1, 2
"""Tuples up to this time and source are ready."""
UNTIL, UNTIL_SOURCE, MORE = 3, 4, 5
"""Up to where all tuples are open, and whether some of them may still have to be given out."""

# The words of a node.
TIME, FIRST, LENGTH, HEIGHT, NEXT = range(5)

NONE = -1
AWAY = 2**62
NOTHING = -FARTHEST - 1
"""The latest time of a source that has shown no tuple."""
PRESENT, ABSENT = 0, 1
CLOSED = 2 * (2**62 - 1) + ABSENT
"""The frontier of a closed source: absent, and beyond every time."""


class GateMemory(NamedTuple):
    """All that threads share; each array holds 64-bit integers."""

    epoch: Array
    sources: Array
    readers: Array
    passed: Array
    """For each reader and source, how many nodes it has left behind."""
    taken: Array
    """For each reader and source, how many tuples it has been given."""
    opened: Array
    """For each reader and source, the position behind the last node it has opened."""
    nodes: Array
    hints: Array
    """For each source and level, the last node that its writer found before its own."""
    times: Array
    """For each source its ring of times."""
    capacity: int
    """The tuples of a source; a power of two."""
    ring: int
    """The nodes of a source; a power of two."""
    bits: int
    """How many bits of a pointer say which source it is."""
    stride: int
    """The cells of a reader in arrays with a cell for each reader and source."""


def room_for(sources: int, readers: int, capacity: int, nodes: int) -> GateMemory:
    """Memory for so many tuples and nodes of each source; both are powers of two."""
    stride = -(-(sources + 1) // LINE) * LINE
    memory = GateMemory(
        np.zeros(LINE, np.int64),
        np.zeros(sources * LINE, np.int64),
        np.zeros(readers * LINE, np.int64),
        np.zeros(readers * stride, np.int64),
        np.zeros(readers * stride, np.int64),
        np.zeros(readers * stride, np.int64),
        np.full((sources * nodes + 1) * LINE, NONE, np.int64),
        np.full(sources * LEVELS, NONE, np.int64),
        np.zeros(sources * capacity, np.int64),
        capacity,
        nodes,
        sources.bit_length(),
        stride,
    )
    # The list begins with a node of no source, whose pointer is the number of sources.
    start = sources * nodes * LINE
    memory.nodes[start + TIME] = NOTHING
    memory.nodes[start + HEIGHT] = LEVELS
    memory.sources[FRONTIER::LINE] = 2 * NOTHING + PRESENT
    memory.sources[SHOWN::LINE] = NOTHING
    memory.sources[ENTERED::LINE] = AWAY
    memory.readers[CURSOR::LINE] = sources
    memory.readers[LIMIT::LINE] = NOTHING
    memory.hints[:] = sources
    return memory


@lean
def source_of(gate, pointer):  # type: ignore[no-untyped-def]
    """The source of a node."""
    return pointer & ((1 << gate.bits) - 1)


@lean
def place_of(gate, pointer):  # type: ignore[no-untyped-def]
    """Where the words of a node are."""
    number = pointer >> gate.bits
    return (source_of(gate, pointer) * gate.ring + (number & (gate.ring - 1))) * LINE


@lean
def tuple_at(gate, source, position):  # type: ignore[no-untyped-def]
    """Where the time of a tuple is."""
    return source * gate.capacity + (position & (gate.capacity - 1))
