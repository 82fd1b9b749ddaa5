"""Subtract-on-evict: a running merge, from which what leaves is taken out again.

Hirzel, Schneider, Tangwongsan, "Sliding-Window Aggregation Algorithms: Tutorial", DEBS 2017. One
combine for what enters, one inversion for what leaves, whatever the range. It needs a combine that
can be undone (a sum, not a maximum), and undone exactly: over floats every step leaves a rounding
error behind, and over months the answer drifts away from the sum of what is inside. Floats are
therefore refused.
"""

from __future__ import annotations

from typing import ClassVar

from paneflow.aggregates.kernels import Shape
from paneflow.merging.contract import Algorithm, FifoMerger


def text(shape: Shape, state: str) -> str:
    """Ring a: the partials; cell b: the merge of all inside."""
    return f"""
        @helper
        def insert({state}, p):
            i = m[1] & (len(a0) - 1)
            {shape.store("a", "i", "p")}
            m[1] += 1
            r = combine({shape.load("b", "0")}, p)
            {shape.store("b", "0", "r")}


        @helper
        def evict({state}):
            i = m[0] & (len(a0) - 1)
            r = invert({shape.load("b", "0")}, {shape.load("a", "i")})
            {shape.store("b", "0", "r")}
            m[0] += 1


        @helper
        def query({state}):
            return {shape.fresh(shape.load("b", "0"))}
        """


SUBTRACT = Algorithm("subtract", text, ("a",), (("b", 1),), law="invertible")


class Subtract(FifoMerger):
    """Merges by adding what enters and subtracting what leaves."""

    name: ClassVar[str] = "subtract"
    algorithm: ClassVar[Algorithm] = SUBTRACT
