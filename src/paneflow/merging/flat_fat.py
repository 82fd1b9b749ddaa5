"""FlatFAT: a binary tree of partials in a flat array.

Tangwongsan, Hirzel, Schneider, Wu, "General Incremental Sliding-Window Aggregation", VLDB 2015.
As a stream slides, each new partial takes the leaf of the one that left, and only nodes above it
change. There they all change at once, so that the root is the whole window; but where the window
wraps around the end of the leaves, the root has its parts in the wrong order, and an answer must
be put together from other nodes.

So here a node changes only when the last leaf below it has come. Then every node whose leaves are
all in the window is right, and an answer is put together from the largest of those, in order. If
the window has as many partials as there are leaves, a slide takes log2 n combines, each time: the
more nodes an insert completes, the fewer an answer needs.

Over columns, any range of slices costs at most two combines per level once the tree stands. That
beats walking the slices when windows are few and long, for instance when hundreds of windows of
different lengths share one row of slices.
"""

from __future__ import annotations

from typing import ClassVar

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.merging.contract import Algorithm


def text(shape: Shape, state: str) -> str:
    """Ring a: the leaves; ring t: the inner nodes, the root at 1."""
    arrays = f"{shape.names('a')}, {shape.names('t')}"
    return f"""
        @helper
        def node(i, {arrays}):
            n = len(a0)
            if i < n:
                return {shape.load("t", "i")}
            return {shape.load("a", "i - n")}


        @helper
        def insert({state}, p):
            n = len(a0)
            i = m[1] & (n - 1)
            {shape.store("a", "i", "p")}
            m[1] += 1
            i += n
            leaves = 2
            while i & 1 and leaves <= m[1] - m[0]:
                i >>= 1
                r = combine(node(2 * i, {arrays}), node(2 * i + 1, {arrays}))
                {shape.store("t", "i", "r")}
                leaves *= 2


        @helper
        def evict({state}):
            m[0] += 1


        @helper
        def query({state}):
            width = len(a0)
            x = m[0]
            y = m[1]
            left = identity
            right = identity
            lefts = False
            rights = False
            while x < y:
                if x & 1:
                    r = node(width + (x & (width - 1)), {arrays})
                    left = combine(left, r) if lefts else r
                    lefts = True
                    x += 1
                if y & 1:
                    y -= 1
                    r = node(width + (y & (width - 1)), {arrays})
                    right = combine(r, right) if rights else r
                    rights = True
                x >>= 1
                y >>= 1
                width >>= 1
            if lefts and rights:
                return combine(left, right)
            if lefts:
                return {shape.fresh("left")}
            return {shape.fresh("right")}


        @helper
        def rebuild({state}):
            # Nodes of ever more leaves, as far as these are all in the window.
            width = len(a0) // 2
            x = (m[0] + 1) // 2
            y = m[1] // 2
            while x < y:
                for k in range(x, y):
                    i = width + (k & (width - 1))
                    r = combine(node(2 * i, {arrays}), node(2 * i + 1, {arrays}))
                    {shape.store("t", "i", "r")}
                x = (x + 1) // 2
                y //= 2
                width //= 2
        """


FLAT_FAT = Algorithm("flat_fat", text, rings=("a", "t"), rebuilds=True)


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


class FlatFat:
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
