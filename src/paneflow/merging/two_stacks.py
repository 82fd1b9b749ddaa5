"""Two-Stacks and Two-Stacks Lite: amortised three combines per slide.

Tangwongsan, Hirzel, Schneider, "In-Order Sliding-Window Aggregation in Worst-Case Constant Time",
VLDB Journal 30 (2021), sections 3 and 4. A queue of two stacks: the back stack knows the merge of
all it holds, and each entry of the front stack the merge of itself and all behind it. When the
front runs out, the back is turned over, which merges every partial once more: a rare step that
costs as much as the window is long, the spike in this algorithm's latency.

Two-Stacks keeps a partial and a merge for every entry. Lite keeps one of the two: behind the
boundary the merges are not needed, before it the partials are not. Queries that ask for
"two_stacks" get Lite; the plain algorithm is here for comparison.
"""

from __future__ import annotations

from typing import ClassVar

from paneflow.aggregates.kernels import Shape
from paneflow.merging.contract import Algorithm, FifoMerger


def lite_text(shape: Shape, state: str) -> str:
    """m[2]: the boundary; ring a: merges before it, partials behind it; cell b: the back."""
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
            if m[0] == m[2]:
                r = identity
                for k in range(m[1] - 1, m[0] - 1, -1):
                    i = k & (len(a0) - 1)
                    r = combine({shape.load("a", "i")}, r)
                    {shape.store("a", "i", "r")}
                m[2] = m[1]
                {shape.store("b", "0", "identity")}
            m[0] += 1


        @helper
        def query({state}):
            if m[0] == m[2]:
                return {shape.fresh(shape.load("b", "0"))}
            i = m[0] & (len(a0) - 1)
            return combine({shape.load("a", "i")}, {shape.load("b", "0")})
        """


TWO_STACKS_LITE = Algorithm("two_stacks_lite", lite_text, ("a",), (("b", 1),), counters=3)


class TwoStacksLite(FifoMerger):
    """Merges by two stacks in one ring."""

    name: ClassVar[str] = "two_stacks_lite"
    algorithm: ClassVar[Algorithm] = TWO_STACKS_LITE


def text(shape: Shape, state: str) -> str:
    """m[2]: the boundary; ring a: partials; ring s: merges of the stack below each entry."""
    return f"""
        @helper
        def insert({state}, p):
            i = m[1] & (len(a0) - 1)
            {shape.store("a", "i", "p")}
            r = p
            if m[1] > m[2]:
                j = (m[1] - 1) & (len(a0) - 1)
                r = combine({shape.load("s", "j")}, p)
            {shape.store("s", "i", "r")}
            m[1] += 1


        @helper
        def evict({state}):
            if m[0] == m[2]:
                r = identity
                for k in range(m[1] - 1, m[0] - 1, -1):
                    i = k & (len(a0) - 1)
                    r = combine({shape.load("a", "i")}, r)
                    {shape.store("s", "i", "r")}
                m[2] = m[1]
            m[0] += 1


        @helper
        def query({state}):
            front = m[0] < m[2]
            back = m[2] < m[1]
            i = m[0] & (len(a0) - 1)
            j = (m[1] - 1) & (len(a0) - 1)
            if front and back:
                return combine({shape.load("s", "i")}, {shape.load("s", "j")})
            if front:
                return {shape.fresh(shape.load("s", "i"))}
            if back:
                return {shape.fresh(shape.load("s", "j"))}
            return {shape.fresh("identity")}
        """


TWO_STACKS = Algorithm("two_stacks", text, ("a", "s"), counters=3)


class TwoStacks(FifoMerger):
    """Merges by two stacks."""

    name: ClassVar[str] = "two_stacks"
    algorithm: ClassVar[Algorithm] = TWO_STACKS
