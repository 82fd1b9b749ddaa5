"""SBA: the sequential boundary aggregator.

Zhang, Akbarinia, Toumani, "Efficient Incremental Computation of Aggregations over Sliding
Windows", KDD 2021, section 4: slices are grouped into chunks; a window is
the left-cumulative aggregate of the chunk it starts in, combined with the cumulative aggregate
of what follows the boundary. At most three combines per slide, amortised, whatever the range.

The paper's chunks are about half a window, so that a second thread has time for the left
cumulation. One thread alone does best with chunks of a whole window: then a window has two parts
instead of three, which saves one combine per slide.

Windows over a table are not all of one length (slices without events are absent), so there a
chunk is not a fixed number of slices: a new boundary is set at the end of the first window that
starts at or behind the last boundary. With equal lengths these are the chunks of the paper.
"""

from __future__ import annotations

from typing import ClassVar

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.merging.contract import Algorithm


def text(shape: Shape, state: str) -> str:
    """Ring a: left-cumulative in whole chunks, partials behind; cell b: cumulative behind.

    m[2]: chunk size; m[3]: start of the chunk that is being filled; m[4]: end of the chunk in
    which the window starts.
    """
    return f"""
        @helper
        def insert({state}, p):
            mask = len(a0) - 1
            i = m[1] & mask
            {shape.store("a", "i", "p")}
            m[1] += 1
            if m[1] - m[3] < m[2]:
                r = combine({shape.load("b", "0")}, p)
                {shape.store("b", "0", "r")}
                return
            r = p
            for k in range(m[1] - 2, max(m[3], m[0]) - 1, -1):
                i = k & mask
                r = combine({shape.load("a", "i")}, r)
                {shape.store("a", "i", "r")}
            m[3] = m[1]
            {shape.store("b", "0", "identity")}


        @helper
        def evict({state}):
            m[0] += 1
            if m[0] == m[4]:
                m[4] += m[2]


        @helper
        def query({state}):
            mask = len(a0) - 1
            if m[0] == m[3]:
                return {shape.fresh(shape.load("b", "0"))}
            if m[0] > m[3]:
                r = identity
                for k in range(m[0], m[1]):
                    r = combine(r, {shape.load("a", "k & mask")})
                return {shape.fresh("r")}
            r = {shape.load("a", "m[0] & mask")}
            for k in range(m[4], m[3], m[2]):
                r = combine(r, {shape.load("a", "k & mask")})
            if m[1] > m[3]:
                return combine(r, {shape.load("b", "0")})
            return {shape.fresh("r")}
        """


SBA = Algorithm(
    "sba",
    text,
    rings=("a",),
    cells=(("b", 1),),
    counters=5,
    initial=lambda size: {2: size, 4: size},
)


def ranges_loop(shape: Shape) -> str:
    """Left-cumulative up to the boundary, cumulative behind it."""
    return f"""
        def merge(lo, hi, identity, {shape.names("p")}, {shape.names("o")}):
            longest = 1
            for w in range(len(lo)):
                longest = max(longest, hi[w] - lo[w])
            {shape.like("left", "p", "longest")}
            boundary = 0
            end = 0
            start = 0
            cumulative = identity
            for w in range(len(lo)):
                if lo[w] >= boundary:
                    start = lo[w]
                    boundary = hi[w]
                    end = boundary
                    p = identity
                    for i in range(boundary - 1, start - 1, -1):
                        p = combine({shape.load("p", "i")}, p)
                        {shape.store("left", "i - start", "p")}
                    {shape.store("o", "w", "p")}
                    cumulative = identity
                else:
                    for i in range(end, hi[w]):
                        cumulative = combine(cumulative, {shape.load("p", "i")})
                    end = hi[w]
                    p = combine({shape.load("left", "lo[w] - start")}, cumulative)
                    {shape.store("o", "w", "p")}
        """


class Sba:
    """Merges by boundaries, in amortised constant time per window."""

    name: ClassVar[str] = "sba"

    def __init__(self, operator: Operator, partials: Partials) -> None:
        self._operator = operator
        self._partials = partials
        self._kernel = kernel(operator, "merge", ranges_loop)

    def merge(self, lo: Array, hi: Array) -> Partials:
        merged = self._operator.empty(len(lo))
        self._kernel(lo, hi, self._operator.start(), *self._partials, *merged)
        return merged
