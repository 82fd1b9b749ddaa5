"""FiBA: a finger B-tree, for partials that come out of order.

Tangwongsan, Hirzel, Schneider, "Optimal and General Out-of-Order Sliding-Window Aggregation",
VLDB 2019; for many entries at once see `fiba_tree/bulk.py`. Entries are ordered by time in a B-tree
that is entered from its newest and its oldest leaf. Inner nodes know the merge of all below them,
as in any tree. Nodes on the left and right spine know the merge of what lies between them and the
root, so a change near either end does not climb to the root, and the whole window is the merge of
three aggregates: oldest leaf, root, newest leaf.

Combines, amortised, with n entries, d of them newer (or older) than what is inserted: 3.3 for an
insert in order and about 12 + 7 log2 d at most out of order, 4 for an eviction, O(log m) for that
of the m oldest at once, which also gives back their nodes; never more than 2 for a query, O(log n)
for a range. Kept are the n entries and an aggregate for every three of them at most.

Other than in the paper, nodes on the left spine may get thin: entries leave nowhere else, so no
node has to borrow from another or merge with one.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, ClassVar

import numpy as np

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Component, Operator, Partials
from paneflow.errors import InputError, UnsupportedError
from paneflow.merging.contract import Merger
from paneflow.merging.fiba_tree import layout
from paneflow.merging.fiba_tree.bulk import cut, pour
from paneflow.merging.fiba_tree.invariants import check
from paneflow.merging.fiba_tree.layout import state, weave

EMPTY_COUNTERS = np.full(layout.COUNTERS, layout.NONE, np.int64)
"""The counters of a tree that is a single leaf without entries."""
EMPTY_COUNTERS[[layout.LENGTH, layout.ROOT, layout.OLDEST, layout.NEWEST]] = 0
EMPTY_COUNTERS[[layout.NODES, layout.USED]] = 1

EMPTY_ROOT = np.zeros(layout.COLUMNS, np.int64)
"""That leaf."""
EMPTY_ROOT[[layout.PARENT, layout.SPINE, layout.NEXT]] = layout.NONE, layout.BOTH, layout.UNTOUCHED


class Fiba:
    """The streaming face: partials by time, in any order.

    >>> from paneflow.aggregates.extremes import max
    >>> from paneflow.aggregates.values import Kind
    >>> (operator,) = max("v").operators({"v": Kind.FLOAT})
    >>> window = Fiba(operator)
    >>> window.insert(10, 3.0)
    >>> window.insert(30, 1.0)
    >>> window.insert(20, 2.0)
    >>> window.query()
    (3.0,)
    >>> window.bulk_evict(10)
    >>> window.query()
    (2.0,)
    >>> window.range_query(25, 40)
    (1.0,)
    """

    def __init__(self, operator: Operator, capacity: int = 16) -> None:
        self.operator = operator
        self._insert = kernel(operator, "insert_one", _insert_one)
        self._cut = kernel(operator, "cut_one", _cut_one)
        self._query = kernel(operator, "query_one", _query_one)
        self._range = kernel(operator, "range_one", _range_one)
        self._pour = kernel(operator, "pour_all", _pour_all)
        self._casts = tuple(_cast(c) for c in operator.components)
        self._identity = operator.start()
        self.counters = EMPTY_COUNTERS.copy()
        nodes = _most_nodes(capacity)
        self.tree = np.zeros((nodes, layout.COLUMNS), np.int64)
        self.tree[0] = EMPTY_ROOT
        self.store = operator.empty(nodes * layout.SLOTS)
        for column, identity in zip(self.store, self._identity, strict=True):
            column[layout.AGGREGATE] = identity

    def insert(self, t: int, *partial: Any) -> None:
        """Add a partial, given by its components, at a time.

        Where that time has an entry already, the two are combined, the new one second.
        """
        components = (cast(x) for cast, x in zip(self._casts, partial, strict=True))
        arguments = (index(t), *components)
        if not self._insert(*self.state, *arguments):
            self._grow(2 * len(self.tree))
            self._insert(*self.state, *arguments)

    def bulk_insert(self, times: Array, *columns: Array) -> None:
        """Add many partials, given by columns of their components, at times in any order.

        As if inserted one after the other, only cheaper.
        """
        times, columns = self._batch(times, columns)
        self._grow(_most_nodes(len(self) + len(times)))
        self._pour(*self.state, times, *columns)

    def evict(self) -> None:
        """Drop the oldest entry."""
        if len(self) == 0:
            raise UnsupportedError("evict of an empty window: insert a partial first")
        oldest = self.counters[layout.OLDEST]
        self._cut(*self.state, self.tree[oldest, layout.TIME])

    def bulk_evict(self, t: int) -> None:
        """Drop every entry whose time is at most t."""
        self._cut(*self.state, index(t))

    def query(self) -> tuple[Any, ...]:
        """All partials inside, merged in order of time; the identity if there are none."""
        merged: tuple[Any, ...] = self._query(*self.state)
        return merged

    def range_query(self, since: int, until: int) -> tuple[Any, ...]:
        """The partials with since <= time < until, merged in order of time."""
        merged: tuple[Any, ...] = self._range(*self.state, index(since), index(until))
        return merged

    def check(self) -> None:
        """Verify shape, order, links and every stored aggregate; for tests."""
        check(self.operator, self.counters, self.tree, self.store)

    def __len__(self) -> int:
        return int(self.counters[layout.LENGTH])

    @property
    def state(self) -> tuple[Any, ...]:
        """The arguments of the compiled functions."""
        return (self.counters, self._identity, self.tree, *self.store)

    @property
    def stored(self) -> int:
        """How many partials are kept now: the entries, and one aggregate for each node."""
        return int(self.counters[layout.LENGTH] + self.counters[layout.NODES])

    def _batch(self, times: Array, columns: tuple[Array, ...]) -> tuple[Array, Partials]:
        """A batch in order of time; equal times keep their order."""
        times = np.asarray(times)
        if not np.can_cast(times.dtype, np.int64):
            raise InputError(
                f"bulk_insert takes times that are int64, not {times.dtype}: convert them first"
            )
        typed = tuple(
            np.ascontiguousarray(column, c.dtype)
            for column, c in zip(columns, self.operator.components, strict=True)
        )
        if any(len(column) != len(times) for column in typed):
            raise InputError(
                f"bulk_insert takes one partial for each of the {len(times)} times, but columns "
                f"of {', '.join(str(len(column)) for column in typed)} were given"
            )
        times = np.ascontiguousarray(times, np.int64)
        if np.any(times[1:] < times[:-1]):
            order = np.argsort(times, kind="stable")
            times, typed = times[order], tuple(column[order] for column in typed)
        return times, typed

    def _grow(self, nodes: int) -> None:
        """Make room for as many nodes; those there keep their places."""
        if nodes <= len(self.tree):
            return
        nodes = max(nodes, 2 * len(self.tree))
        tree = np.zeros((nodes, layout.COLUMNS), np.int64)
        tree[: len(self.tree)] = self.tree
        store = self.operator.empty(nodes * layout.SLOTS)
        for new, old in zip(store, self.store, strict=True):
            new[: len(old)] = old
        self.tree, self.store = tree, store


class FibaMerger(Merger):
    """The columnar face: positions are times, so a window is a range of them."""

    name: ClassVar[str] = "fiba"

    def __init__(self, operator: Operator, partials: Partials) -> None:
        self._operator = operator
        self._partials = partials
        self._kernel = kernel(operator, "merge", _merge_loop)

    def merge(self, lo: Array, hi: Array) -> Partials:
        merged = self._operator.empty(len(lo))
        longest = int((hi - lo).max()) if len(lo) else 0
        window = Fiba(self._operator, longest)
        self._kernel(lo, hi, *window.state, *self._partials, *merged)
        return merged


def _most_nodes(entries: int) -> int:
    """How many nodes a tree of so many entries can have, with the thin ones on its left spine."""
    return entries // (layout.MU - 1) + layout.LEVELS


def _cast(component: Component) -> Callable[[Any], Any]:
    """Gives components the type for which the functions were compiled."""
    if component.dtype == "object":
        return _itself
    if component.width is not None:
        return lambda row: np.ascontiguousarray(row, component.dtype)
    return {"int64": int, "uint64": np.uint64, "float64": float, "bool": bool}[component.dtype]


def _itself(x: Any) -> Any:
    return x


def _insert_one(shape: Shape) -> str:
    """Refuses, by giving False, where nodes might run out."""
    return weave(
        f"""
        def insert_one({state(shape)}, t, {shape.names("x")}):
            if len(tree) - m[{layout.NODES}] < tree[m[{layout.ROOT}], {layout.LEVEL}] + 2:
                return False
            p = ({shape.names("x")},)
            <insert>
            <finish>
            return True
        """,
        insert=layout.insert(shape),
        finish=layout.finish(shape),
    )


def _cut_one(shape: Shape) -> str:
    return weave(
        f"""
        def cut_one({state(shape)}, t):
            <cut>
            <finish>
        """,
        cut=cut(shape),
        finish=layout.finish(shape),
    )


def _query_one(shape: Shape) -> str:
    return weave(
        f"""
        def query_one({state(shape)}):
            <query>
            return r
        """,
        query=layout.query(shape),
    )


def _range_one(shape: Shape) -> str:
    """Down to the node that the range cuts in two, from there down both edges of the range.

    What lies between the edges is on no spine, and so known by its aggregates.
    """
    child = layout.aggregate(shape, f"tree[x, {layout.CHILD} + i]")
    return weave(
        f"""
        def range_one({state(shape)}, since, until):
            x = m[{layout.ROOT}]
            while True:
                <since>
                <until>
                if lo < hi or tree[x, {layout.LEVEL}] == 0:
                    break
                x = tree[x, {layout.CHILD} + lo]
            if lo >= hi:
                return {shape.fresh("identity")}
            r = {layout.entry(shape, "x", "lo")}
            for i in range(lo + 1, hi):
                if tree[x, {layout.LEVEL}] > 0:
                    r = combine(r, {child})
                r = combine(r, {layout.entry(shape, "x", "i")})
            top = x
            while tree[x, {layout.LEVEL}] > 0:
                x = tree[x, {layout.CHILD} + lo]
                <since>
                for i in range(tree[x, {layout.SIZE}], lo, -1):
                    if tree[x, {layout.LEVEL}] > 0:
                        r = combine({child}, r)
                    r = combine({layout.entry(shape, "x", "i - 1")}, r)
            x = top
            while tree[x, {layout.LEVEL}] > 0:
                x = tree[x, {layout.CHILD} + hi]
                <until>
                for i in range(hi):
                    if tree[x, {layout.LEVEL}] > 0:
                        r = combine(r, {child})
                    r = combine(r, {layout.entry(shape, "x", "i")})
            return {shape.fresh("r")}
        """,
        since=_entries_before("since", "lo"),
        until=_entries_before("until", "hi"),
    )


def _entries_before(t: str, k: str) -> str:
    """How many entries of the node x are before a time."""
    return weave(
        f"""
        {k} = 0
        while {k} < tree[x, {layout.SIZE}] and tree[x, {layout.TIME} + {k}] < {t}:
            {k} += 1
        """
    )


def _pour_all(shape: Shape) -> str:
    return weave(
        f"""
        def pour_all({state(shape)}, times, {shape.names("x")}):
            <pour>
        """,
        pour=pour(shape),
    )


def _merge_loop(shape: Shape) -> str:
    """Moves one window over all slices: each step cuts, or adds a slice."""
    return weave(
        f"""
        def merge(lo, hi, {state(shape)}, {shape.names("p")}, {shape.names("o")}):
            end = 0
            for w in range(len(lo)):
                end = max(end, lo[w])
                for step in range(end - 1, hi[w]):
                    if step < end:
                        t = lo[w] - 1
                        <cut>
                    else:
                        t = step
                        p = {shape.load("p", "t")}
                        <append>
                    <finish>
                end = max(end, hi[w])
                <query>
                {shape.store("o", "w", "r")}
        """,
        cut=cut(shape),
        append=layout.append(shape),
        finish=layout.finish(shape),
        query=layout.query(shape),
    )
