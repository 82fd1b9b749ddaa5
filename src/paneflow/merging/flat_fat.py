"""FlatFAT: a binary tree of partials in a flat array.

Tangwongsan, Hirzel, Schneider, Wu, "General Incremental Sliding-Window Aggregation", VLDB 2015.
As a stream slides, each new partial takes the leaf of the one that left, and only nodes above it
change. There they all change at once, so that the root is the whole window; but where the window
wraps around the end of the leaves, the root has its parts in the wrong order, and an answer must
be put together from other nodes.

So here the stream is cut into laps, each with a tree of its own, and a node is made only when the
last leaf below it has come. A lap ends when its first leaf leaves the window: a window of n slices
makes laps of n leaves, whatever n is. It then consists of the end of one lap and the beginning of
the next, and either is put together from the largest nodes that fit. On the way from the root to
the newest leaf each level adds a node to one of the two, or one that this leaf completes. So every
slide takes at most ceil(log2 n) combines: the more nodes an insert completes, the fewer an answer
needs.

Over columns, any range of slices costs at most two combines per level once the tree stands. That
beats walking the slices when windows are few and long, for instance when hundreds of windows of
different lengths share one row of slices.
"""

from __future__ import annotations

from typing import ClassVar

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.merging.contract import Algorithm, Merger

OLD, NEW, SETTLED = 2, 3, 4
"""Counters: where the last lap began, where this one did, and the position up to which its last
nodes, those with fewer leaves than there is room for, are made."""


def text(shape: Shape, state: str) -> str:
    """Ring a: the leaves; ring t: each inner node, where the right half of its leaves begins."""
    arrays = f"{shape.names('a')}, {shape.names('t')}"
    return f"""
        @helper
        def node(first, leaves, {arrays}):
            n = len(a0)
            if leaves == 1:
                return {shape.load("a", "first & (n - 1)")}
            return {shape.load("t", "(first + leaves // 2) & (n - 1)")}


        @helper
        def insert({state}, p):
            n = len(a0)
            i = m[1] & (n - 1)
            {shape.store("a", "i", "p")}
            m[1] += 1
            half = 1
            while not (m[1] - m[{NEW}]) & half:
                i = m[1] - half
                r = combine(node(i - half, half, {arrays}), node(i, half, {arrays}))
                i &= n - 1
                {shape.store("t", "i", "r")}
                half *= 2


        @helper
        def this_lap({state}, settle):
            # From its end to its beginning: so these are the lap's last nodes, if it ends here.
            n = len(a0)
            right = identity
            leaves = m[1] - m[{NEW}]
            found = False
            while leaves:
                last = leaves & -leaves
                i = m[{NEW}] + leaves
                r = node(i - last, last, {arrays})
                right = combine(r, right) if found else r
                if settle and found:
                    i &= n - 1
                    {shape.store("t", "i", "right")}
                found = True
                leaves -= last
            if settle:
                m[{SETTLED}] = m[1]
            return right


        @helper
        def evict({state}):
            m[0] += 1
            if m[0] > m[{NEW}]:
                if m[{SETTLED}] != m[1]:
                    this_lap({state}, True)
                m[{OLD}] = m[{NEW}]
                m[{NEW}] = m[1]


        @helper
        def query({state}):
            right = this_lap({state}, m[0] == m[{NEW}])
            if m[0] >= m[{NEW}]:
                return {shape.fresh("right")}
            left = identity
            leaf = m[0] - m[{OLD}]
            end = m[{NEW}] - m[{OLD}]
            found = False
            while leaf < end:
                room = leaf & -leaf
                leaves = room
                while leaves > 1 and leaf + leaves // 2 >= end:
                    leaves //= 2
                r = node(m[{OLD}] + leaf, leaves, {arrays})
                left = combine(left, r) if found else r
                found = True
                leaf += room
            if m[1] > m[{NEW}]:
                return combine(left, right)
            return {shape.fresh("left")}
        """


FLAT_FAT = Algorithm("flat_fat", text, rings=("a", "t"), counters=5)


BLOCK = 64
"""Slices to a leaf of the columnar tree."""


def build_loop(shape: Shape) -> str:
    """Cumulate each block from both sides; the leaves of the tree are whole blocks."""
    return f"""
        def build({shape.names("p")}, {shape.names("l")}, {shape.names("r")}, {shape.names("t")}):
            n = len(t0) // 2
            for b in range(n):
                start = b * {BLOCK}
                end = min(start + {BLOCK}, len(p0))
                x = {shape.load("p", "start")}
                {shape.store("r", "start", "x")}
                for i in range(start + 1, end):
                    x = combine(x, {shape.load("p", "i")})
                    {shape.store("r", "i", "x")}
                {shape.store("t", "n + b", "x")}
                y = {shape.load("p", "end - 1")}
                {shape.store("l", "end - 1", "y")}
                for i in range(end - 2, start - 1, -1):
                    y = combine({shape.load("p", "i")}, y)
                    {shape.store("l", "i", "y")}
            for i in range(n - 1, 0, -1):
                x = combine({shape.load("t", "2 * i")}, {shape.load("t", "2 * i + 1")})
                {shape.store("t", "i", "x")}
        """


def query_loop(shape: Shape) -> str:
    """The ends of a range from the cumulated blocks, what lies between from the tree.

    With a number of leaves that is no power of two some inner nodes join the last leaves to the
    first; a range never needs one of those.
    """
    state = ", ".join(shape.names(prefix) for prefix in "plrt")
    return f"""
        def merge(lo, hi, identity, {state}, {shape.names("o")}):
            n = len(t0) // 2
            for w in range(len(lo)):
                if lo[w] == hi[w]:
                    {shape.store("o", "w", "identity")}
                    continue
                a = lo[w] // {BLOCK}
                b = (hi[w] - 1) // {BLOCK}
                if a == b:
                    x = {shape.load("p", "lo[w]")}
                    for i in range(lo[w] + 1, hi[w]):
                        x = combine(x, {shape.load("p", "i")})
                    {shape.store("o", "w", "x")}
                    continue
                left = {shape.load("l", "lo[w]")}
                right = {shape.load("r", "hi[w] - 1")}
                a += n + 1
                b += n
                while a < b:
                    if a & 1:
                        left = combine(left, {shape.load("t", "a")})
                        a += 1
                    if b & 1:
                        b -= 1
                        right = combine({shape.load("t", "b")}, right)
                    a >>= 1
                    b >>= 1
                x = combine(left, right)
                {shape.store("o", "w", "x")}
        """


class FlatFat(Merger):
    """Merges by a tree, in logarithmic time per window of any length.

    Blocks of slices are cumulated from both sides, so that only whole blocks need the tree.
    """

    name: ClassVar[str] = "flat_fat"

    def __init__(self, operator: Operator, partials: Partials) -> None:
        self._operator = operator
        n = len(partials[0])
        left, right = operator.empty(n), operator.empty(n)
        tree = operator.empty(2 * -(-n // BLOCK))
        kernel(operator, "build", build_loop)(*partials, *left, *right, *tree)
        self._state = (*partials, *left, *right, *tree)
        self._kernel = kernel(operator, "merge", query_loop)

    def merge(self, lo: Array, hi: Array) -> Partials:
        merged = self._operator.empty(len(lo))
        self._kernel(lo, hi, self._operator.start(), *self._state, *merged)
        return merged
