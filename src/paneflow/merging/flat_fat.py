"""FlatFAT: a binary tree of partials in one flat array.

Tangwongsan, Hirzel, Schneider, Wu, "General Incremental Sliding-Window Aggregation", VLDB 2015.
Once the tree stands, any range of slices costs at most two combines per level. That beats
walking the slices when windows are few and long, for instance when hundreds of windows of
different lengths share one row of slices.
"""

from __future__ import annotations

from typing import ClassVar

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator, Partials


def build_loop(shape: Shape) -> str:
    """Leaves are the slices; each inner node combines its two children."""
    return f"""
        def build({shape.names("p")}, {shape.names("t")}):
            n = len(p0)
            for i in range(n):
                x = {shape.load("p", "i")}
                {shape.store("t", "n + i", "x")}
            for i in range(n - 1, 0, -1):
                x = combine({shape.load("t", "2 * i")}, {shape.load("t", "2 * i + 1")})
                {shape.store("t", "i", "x")}
        """


def query_loop(shape: Shape) -> str:
    """From both ends of the range upwards, taking every node that lies wholly inside."""
    # With a number of leaves that is no power of two some inner nodes join the last leaves to
    # the first; a range never needs one of those.
    return f"""
        def merge(lo, hi, identity, {shape.names("t")}, {shape.names("o")}):
            n = len(t0) // 2
            for w in range(len(lo)):
                a = lo[w] + n
                b = hi[w] + n
                left = identity
                right = identity
                while a < b:
                    if a & 1:
                        left = combine(left, {shape.load("t", "a")})
                        a += 1
                    if b & 1:
                        b -= 1
                        right = combine({shape.load("t", "b")}, right)
                    a >>= 1
                    b >>= 1
                p = combine(left, right)
                {shape.store("o", "w", "p")}
        """


class FlatFat:
    """Merges by a tree, in logarithmic time per window of any length."""

    name: ClassVar[str] = "flat_fat"

    def __init__(self, operator: Operator, partials: Partials) -> None:
        self._operator = operator
        self._tree = operator.empty(2 * len(partials[0]))
        kernel(operator, "build", build_loop)(*partials, *self._tree)
        self._kernel = kernel(operator, "merge", query_loop)

    def merge(self, lo: Array, hi: Array) -> Partials:
        merged = self._operator.empty(len(lo))
        self._kernel(lo, hi, self._operator.start(), *self._tree, *merged)
        return merged
