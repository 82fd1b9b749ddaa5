"""The windows of many keys as FiBA trees: partials may enter them late.

Each window is a tree as in `fiba.py`, in a region of one pool of nodes. What lies before the window
is cut off by time, what enters is inserted by time, wherever it belongs.
"""

from __future__ import annotations

import numpy as np

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.merging.contract import filled
from paneflow.merging.fiba import EMPTY_COUNTERS, EMPTY_ROOT
from paneflow.merging.fiba_tree import layout
from paneflow.merging.fiba_tree.bulk import cut
from paneflow.merging.fiba_tree.layout import weave
from paneflow.merging.keyed.fifos import Slides, moved_cells
from paneflow.merging.keyed.regions import FEWEST, Move, Regions, spread


class KeyedTrees:
    """Windows that partials enter in any order, and leave in order of time."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._kernel = kernel(operator, "slide_trees", slide_loop)
        self._regions = Regions()
        self._counters = np.zeros((0, layout.COUNTERS), np.int64)
        self._tree = np.zeros((FEWEST, layout.COLUMNS), np.int64)
        self._store = operator.empty(FEWEST * layout.SLOTS)

    def reserve(self, slots: int) -> None:
        before = len(self._counters)
        self._regions.reserve(slots)
        room = len(self._regions.base) - before
        if room > 0:
            more = np.tile(EMPTY_COUNTERS, (room, 1))
            self._counters = np.append(self._counters, more, axis=0)

    def clear(self, slots: Array) -> None:
        self._regions.free(slots)
        self._counters[slots] = EMPTY_COUNTERS

    def slide(self, slides: Slides, partials: Partials) -> Partials:
        entries = self._counters[slides.slots, layout.LENGTH] + np.diff(slides.first)
        move = self._regions.grow(slides.slots, most_nodes(entries))
        if move is not None:
            self._move(move)
        merged = self._operator.empty(len(slides.lo))
        regions = (self._regions.base, self._regions.size)
        state = (self._counters, *regions, self._operator.start(), self._tree, *self._store)
        self._kernel(slides, *state, *partials, *merged)
        return merged

    def _move(self, move: Move) -> None:
        """Bring nodes to where they now belong; windows that are new begin with an empty root."""
        new = move.old_size == 0
        used = np.where(new, 0, self._counters[move.slots, layout.USED])
        nodes, which = spread(np.zeros_like(used), used)
        source, target = move.old_base[which] + nodes, move.base[which] + nodes
        end = self._regions.end
        self._tree = moved_cells(self._tree, source, target, end, move.fresh)
        slots = layout.SLOTS
        cells = np.arange(slots)
        source, target = ((node[:, None] * slots + cells).ravel() for node in (source, target))
        self._store = tuple(
            moved_cells(column, source, target, end * slots, move.fresh) for column in self._store
        )
        roots = move.base[new]
        self._tree[roots] = EMPTY_ROOT
        empty = filled(self._operator, len(roots))
        for column, identities in zip(self._store, empty, strict=True):
            column[roots * slots + layout.AGGREGATE] = identities


def most_nodes(entries: Array) -> Array:
    """How many nodes trees of so many entries can have, while one more is made on each level."""
    levels = np.ceil(np.log2(entries + 1) / np.log2(layout.MU)).astype(np.int64) + 2
    nodes: Array = entries // (layout.MU - 1) + 2 * levels
    return nodes


def slide_loop(shape: Shape) -> str:
    """Slides the windows of many slots, one after the other; each step cuts, or inserts."""
    cells = (f"{node} * {layout.SLOTS}" for node in ("first_node", "last_node"))
    view = shape.view("a", "all_a", *cells)
    return weave(
        f"""
        def slide_trees(
            slides, counters, bases, sizes, identity, all_tree, {shape.names("all_a")},
            {shape.names("p")}, {shape.names("o")},
        ):
            for which in range(len(slides.slots)):
                slot = slides.slots[which]
                first_node = bases[slot]
                last_node = first_node + sizes[slot]
                m = counters[slot]
                tree = all_tree[first_node:last_node]
                {view}
                entering = slides.first[which]
                stop = slides.first[which + 1]
                for w in range(slides.at[which], slides.at[which + 1]):
                    leaving = True
                    while leaving or (
                        entering < stop and slides.times[entering] < slides.until[w]
                    ):
                        if leaving:
                            leaving = False
                            t = slides.since[w] - 1
                            <cut>
                        else:
                            t = slides.times[entering]
                            p = {shape.load("p", "entering")}
                            entering += 1
                            <insert>
                        <finish>
                    <query>
                    {shape.store("o", "w", "r")}
        """,
        cut=cut(shape),
        insert=layout.insert(shape),
        finish=layout.finish(shape),
        query=layout.query(shape),
    )
