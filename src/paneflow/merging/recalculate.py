"""Recalculate: merge every partial of the window anew, each time.

The definition, and the fastest choice for windows of a few partials.
"""

from __future__ import annotations

from typing import ClassVar

from paneflow.aggregates.kernels import Shape
from paneflow.merging.contract import Algorithm, FifoMerger


def text(shape: Shape, state: str) -> str:
    """A ring of the partials themselves."""
    return f"""
        @helper
        def insert({state}, p):
            i = m[1] & (len(a0) - 1)
            {shape.store("a", "i", "p")}
            m[1] += 1


        @helper
        def evict({state}):
            m[0] += 1


        @helper
        def query({state}):
            r = identity
            for i in range(m[0], m[1]):
                r = combine(r, {shape.load("a", "i & (len(a0) - 1)")})
            return r
        """


RECALCULATE = Algorithm("recalculate", text, rings=("a",))


class Recalculate(FifoMerger):
    """Merges by merging everything again."""

    name: ClassVar[str] = "recalculate"
    algorithm: ClassVar[Algorithm] = RECALCULATE
