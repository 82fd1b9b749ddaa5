"""FlatFIT: every answer leaves short cuts behind for the next ones.

Shein, Chrysanthis, Labrinidis, "FlatFIT: Accelerated Incremental Sliding-Window Aggregation for
Real-Time Analytics", SSDBM 2017. An entry holds the merge of a stretch that starts with it, and
a link to where that stretch ends. A query follows the links from the oldest entry to the end,
then lets every entry it passed reach the end directly. In a window of n that slides by one, a
whole walk is needed once every n + 1 slides and two or three entries are passed otherwise:
amortised three combines per slide, at worst as many as the window is long.

The way back needs the entries passed in reverse. Instead of keeping them on a stack, the walk
turns each link round as it goes, and the way back sets it to the end.
"""

from __future__ import annotations

from typing import ClassVar

from paneflow.aggregates.kernels import Shape
from paneflow.merging.linked import Linked, LinkedMerger


def text(shape: Shape, state: str) -> str:
    """Ring a: merges of stretches; ring z: the position where each one ends."""
    return f"""
        @helper
        def insert({state}, p):
            i = m[1] & (len(a0) - 1)
            {shape.store("a", "i", "p")}
            m[1] += 1
            z[i] = m[1]


        @helper
        def evict({state}):
            m[0] += 1


        @helper
        def query({state}):
            if m[0] == m[1]:
                return {shape.fresh("identity")}
            k = len(a0) - 1
            start = m[0]
            end = m[1]
            before = start
            at = start
            while z[at & k] != end:
                after = z[at & k]
                z[at & k] = before
                before = at
                at = after
            r = {shape.load("a", "at & k")}
            while at != start:
                at = before
                i = at & k
                before = z[i]
                z[i] = end
                r = combine({shape.load("a", "i")}, r)
                {shape.store("a", "i", "r")}
            return {shape.fresh("r")}
        """


FLAT_FIT = Linked("flat_fit", text, ("a",))


class FlatFit(LinkedMerger):
    """Merges by short cuts that earlier windows left."""

    name: ClassVar[str] = "flat_fit"
    algorithm: ClassVar[Linked] = FLAT_FIT
