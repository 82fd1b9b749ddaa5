"""What must hold for a FiBA tree between any two operations, as code that checks it.

Written without the functions it checks: only combine is shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.merging.fiba_tree.layout import (
    AGGREGATE,
    BOTH,
    CHAINS,
    CHILD,
    FREE,
    LEFT,
    LENGTH,
    LEVEL,
    MOST,
    MU,
    NEWEST,
    NEXT,
    NODES,
    NONE,
    OLDEST,
    PARENT,
    RIGHT,
    ROOT,
    SIZE,
    SLOTS,
    SPINE,
    TIME,
    TOP,
    UNTOUCHED,
    USED,
)

Partial = tuple[Any, ...]


def check(operator: Operator, counters: Array, tree: Array, store: Partials) -> None:
    """Raise AssertionError where a tree is not as it must be."""
    _Checker(operator, counters, tree, store).check()


class _Checker:
    def __init__(self, operator: Operator, counters: Array, tree: Array, store: Partials) -> None:
        self.m = [int(c) for c in counters]
        self.tree = tree
        self.store = store
        self.identity = operator.start()
        self.combine = kernel(operator, "combine_two", _combine_two)

    def check(self) -> None:
        root = self.m[ROOT]
        expect(self.cell(root, PARENT) == NONE, "the root has a parent")
        nodes = list(self.below(root))
        self.check_spines()
        self.check_times()
        for x in nodes:
            found, expected = self.partial(x, AGGREGATE), self.aggregate(x)
            expect(
                all(map(_equal, found, expected)), f"node {x} keeps {found} instead of {expected}"
            )
        self.check_counts(nodes)

    def check_node(self, x: int) -> None:
        size, level = self.cell(x, SIZE), self.cell(x, LEVEL)
        if self.cell(x, SPINE) & LEFT == 0:
            least = MU - 1
        else:
            # Without entries may be: a leaf that is the root, a node above leaves that is not.
            least = 0 if (level == 0) == (x == self.m[ROOT]) else 1
        expect(least <= size < MOST, f"node {x} holds {size} entries")
        expect(self.cell(x, NEXT) == UNTOUCHED, f"node {x} is still touched")
        for c in self.children(x):
            expect(self.cell(c, PARENT) == x, f"node {c} does not know its parent {x}")
            expect(self.cell(c, LEVEL) == level - 1, f"node {c} is not one level below {x}")

    def check_spines(self) -> None:
        """Marks and fingers: every first child of the left spine is on it, and so on."""
        root = self.m[ROOT]
        expect(self.cell(root, SPINE) == BOTH, "the root is not on both spines")
        for x in self.below(root):
            for i, c in enumerate(self.children(x)):
                spine = self.cell(x, SPINE) & LEFT if i == 0 else 0
                spine |= self.cell(x, SPINE) & RIGHT if i == self.cell(x, SIZE) else 0
                expect(self.cell(c, SPINE) == spine, f"node {c} has a wrong spine")
            if self.cell(x, LEVEL) == 0:
                oldest = bool(self.cell(x, SPINE) & LEFT)
                newest = bool(self.cell(x, SPINE) & RIGHT)
                expect(oldest == (x == self.m[OLDEST]), "the oldest leaf is another")
                expect(newest == (x == self.m[NEWEST]), "the newest leaf is another")

    def check_times(self) -> None:
        times = list(self.times(self.m[ROOT]))
        expect(len(times) == self.m[LENGTH], f"{len(times)} entries, {self.m[LENGTH]} counted")
        expect(all(a < b for a, b in pairwise(times)), "times do not increase")

    def check_counts(self, nodes: list[int]) -> None:
        """Every node ever used is either in the tree or free, and no touch is pending."""
        expect(len(nodes) == self.m[NODES], f"{len(nodes)} nodes, {self.m[NODES]} counted")
        free, x = set(), self.m[FREE]
        while x != NONE:
            expect(x not in free, "the free list is a ring")
            free.add(x)
            x = self.cell(x, NEXT)
        expect(free.isdisjoint(nodes), "a node of the tree is free")
        expect(len(free) + len(nodes) == self.m[USED] <= len(self.tree), "a node is lost")
        expect(self.m[TOP] == NONE and set(self.m[CHAINS:]) == {NONE}, "a touch is pending")

    def aggregate(self, x: int) -> Partial:
        """What a node must keep, merged in the order in which the tree merges."""
        spine, parent = self.cell(x, SPINE), self.cell(x, PARENT)
        terms: list[Partial] = []
        size, children = self.cell(x, SIZE), self.children(x)
        for i in range(size + 1):
            left_out = (i == 0 and spine & LEFT) or (i == size and spine & RIGHT)
            if children and not left_out:
                terms.append(self.partial(children[i], AGGREGATE))
            if i < size:
                terms.append(self.partial(x, i))
        if spine in (LEFT, RIGHT) and parent != self.m[ROOT]:
            terms.insert(len(terms) if spine == LEFT else 0, self.partial(parent, AGGREGATE))
        merged = terms[0] if terms else self.identity
        for term in terms[1:]:
            merged = self.combine(*merged, *term)
        return merged

    def below(self, x: int) -> Iterator[int]:
        """All nodes of a subtree; checked first, since a wrong one might lead anywhere."""
        self.check_node(x)
        yield x
        for c in self.children(x):
            yield from self.below(c)

    def times(self, x: int) -> Iterator[int]:
        children = list(self.children(x))
        for i in range(self.cell(x, SIZE)):
            if children:
                yield from self.times(children[i])
            yield self.cell(x, TIME + i)
        if children:
            yield from self.times(children[-1])

    def children(self, x: int) -> list[int]:
        if self.cell(x, LEVEL) == 0:
            return []
        return [self.cell(x, CHILD + i) for i in range(self.cell(x, SIZE) + 1)]

    def partial(self, x: int, i: int) -> Partial:
        return tuple(column[x * SLOTS + i] for column in self.store)

    def cell(self, x: int, column: int) -> int:
        return int(self.tree[x, column])


def expect(holds: bool, otherwise: str) -> None:
    """Raise AssertionError with a reason, also where assertions are switched off."""
    if not holds:
        raise AssertionError(otherwise)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray | np.floating):
        return bool(np.array_equal(a, b, equal_nan=True))
    return bool(a == b)


def _combine_two(shape: Shape) -> str:
    p, q = shape.names("p"), shape.names("q")
    return f"""
        def combine_two({p}, {q}):
            return combine(({p},), ({q},))
        """
