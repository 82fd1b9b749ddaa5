"""SBA: the sequential boundary aggregator, over columns.

Zhang, Akbarinia, Toumani, "Efficient Incremental Computation of Aggregations over Sliding
Windows", KDD 2021 (source document 001, section 4): slices are grouped into chunks; a window is
the left-cumulative aggregate of the chunk it starts in, combined with the cumulative aggregate
of what follows the boundary. At most three combines per slide, amortised, whatever the range.

Windows over a table are not all of one length (slices without events are absent), so a chunk is
not a fixed number of slices: a new boundary is set at the end of the first window that starts at
or behind the last boundary. With equal lengths these are the chunks of the paper.
"""

from __future__ import annotations

from typing import ClassVar

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator, Partials


def loop(shape: Shape) -> str:
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
        self._kernel = kernel(operator, "merge", loop)

    def merge(self, lo: Array, hi: Array) -> Partials:
        merged = self._operator.empty(len(lo))
        self._kernel(lo, hi, self._operator.start(), *self._partials, *merged)
        return merged
