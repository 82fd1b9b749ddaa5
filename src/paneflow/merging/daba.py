"""DABA and DABA Lite: a constant number of combines for every single operation.

Tangwongsan, Hirzel, Schneider, "In-Order Sliding-Window Aggregation in Worst-Case Constant Time",
VLDB Journal 30 (2021). Two-Stacks turns its back stack over all at once when
the front runs out. DABA (the de-amortised banker's aggregator) begins while the front still
lasts, and does one small step of the turn with every insert and every evict. Positions divide
the window, oldest first:

```
F ───────── L ───────── R ───────── A ───────── B ───────── E
 merged to B  merged to R  merged from R  merged to B  merged from B
```
F is the next to leave and E the next to come; "merged to B" is the merge of an entry and all
after it up to B, "merged from R" that of an entry and all before it down to R. What lies between
L and B is a turn half done: each step finishes one entry at L, and carries one at A back into
the right order. There are as many entries between L and R as between R and A, and

    (R - L) + (A - R) + (B - A) + 1 = (B - F) - (E - B)

or the window is empty. An insert or an evict takes one from the right-hand side, the step that
follows takes one from the left: the turn is done exactly when the back has grown as long as the
front, and the next turn begins with equal halves.

Combines: DABA at most 4 for an insert, 3 for an evict and 1 for a query. Lite keeps one partial
for each entry and two more: between R and A, and behind B, it has the partials themselves, and
remembers the two merges anybody asks for. It needs at most 3, 2 and 1. Queries get Lite; plain DABA
is here for comparison.
"""

from __future__ import annotations

from typing import ClassVar

from paneflow.aggregates.kernels import Shape
from paneflow.merging.contract import Algorithm, FifoMerger

# Counters: m[0] F, m[1] E, m[2] L, m[3] R, m[4] A, m[5] B.


def text(shape: Shape, state: str) -> str:
    """Ring a: the partials; ring s: the merges of the picture above."""
    return f"""
        @helper
        def step({state}):
            k = len(a0) - 1
            if m[0] == m[5]:
                # No front: at most one entry, which is a whole front by itself.
                m[2] = m[3] = m[4] = m[5] = m[1]
                return
            if m[2] == m[5]:
                # The turn is done, and L, R, A, B are one: begin the next.
                m[2] = m[0]
                m[4] = m[5] = m[1]
            first = m[2] & k
            if m[2] == m[3]:
                m[3] += 1
                m[4] += 1
            else:
                last = (m[4] - 1) & k
                r = combine({shape.load("s", "first")}, {shape.load("s", "last")})
                if m[4] < m[5]:
                    after = m[4] & k
                    r = combine(r, {shape.load("s", "after")})
                    q = combine({shape.load("a", "last")}, {shape.load("s", "after")})
                    {shape.store("s", "last", "q")}
                else:
                    q = {shape.load("a", "last")}
                    {shape.store("s", "last", "q")}
                {shape.store("s", "first", "r")}
                m[4] -= 1
            m[2] += 1


        @helper
        def insert({state}, p):
            k = len(a0) - 1
            i = m[1] & k
            {shape.store("a", "i", "p")}
            if m[5] < m[1]:
                r = combine({shape.load("s", "(m[1] - 1) & k")}, p)
                {shape.store("s", "i", "r")}
            else:
                {shape.store("s", "i", "p")}
            m[1] += 1
            step({state})


        @helper
        def evict({state}):
            m[0] += 1
            step({state})


        @helper
        def query({state}):
            k = len(a0) - 1
            if m[0] == m[1]:
                return {shape.fresh("identity")}
            if m[5] == m[1]:
                return {shape.fresh(shape.load("s", "m[0] & k"))}
            return combine({shape.load("s", "m[0] & k")}, {shape.load("s", "(m[1] - 1) & k")})
        """


DABA = Algorithm("daba", text, ("a", "s"), counters=6)


class Daba(FifoMerger):
    """Merges by two stacks that are turned over a step at a time."""

    name: ClassVar[str] = "daba"
    algorithm: ClassVar[Algorithm] = DABA


def lite_text(shape: Shape, state: str) -> str:
    """Ring a: merges, or partials where merges are not needed; cells b: the back, and R to B."""
    return f"""
        @helper
        def step({state}):
            k = len(a0) - 1
            if m[0] == m[5]:
                m[2] = m[3] = m[4] = m[5] = m[1]
                return
            if m[2] == m[5]:
                # What was behind B now lies between R and the new B.
                m[2] = m[0]
                m[4] = m[5] = m[1]
                {shape.store("b", "1", shape.load("b", "0"))}
            if m[2] == m[3]:
                m[3] += 1
                m[4] += 1
            else:
                first = m[2] & k
                r = combine({shape.load("a", "first")}, {shape.load("b", "1")})
                {shape.store("a", "first", "r")}
                m[4] -= 1
                if m[4] + 1 < m[5]:
                    i = m[4] & k
                    r = combine({shape.load("a", "i")}, {shape.load("a", "(m[4] + 1) & k")})
                    {shape.store("a", "i", "r")}
            m[2] += 1


        @helper
        def insert({state}, p):
            i = m[1] & (len(a0) - 1)
            {shape.store("a", "i", "p")}
            if m[5] < m[1]:
                r = combine({shape.load("b", "0")}, p)
                {shape.store("b", "0", "r")}
            else:
                {shape.store("b", "0", "p")}
            m[1] += 1
            step({state})


        @helper
        def evict({state}):
            m[0] += 1
            step({state})


        @helper
        def query({state}):
            i = m[0] & (len(a0) - 1)
            if m[0] == m[1]:
                return {shape.fresh("identity")}
            if m[5] == m[1]:
                return {shape.fresh(shape.load("a", "i"))}
            return combine({shape.load("a", "i")}, {shape.load("b", "0")})
        """


DABA_LITE = Algorithm("daba_lite", lite_text, ("a",), (("b", 2),), counters=6)


class DabaLite(FifoMerger):
    """Merges as DABA does, keeping one partial for each slice."""

    name: ClassVar[str] = "daba_lite"
    algorithm: ClassVar[Algorithm] = DABA_LITE
