"""SlickDeque: the right simple algorithm for each of two laws.

Shein, Chrysanthis, Labrinidis, "SlickDeque: High Throughput and Low Latency Incremental
Sliding-Window Aggregation", EDBT 2018. Which of its two halves runs is decided by the operator:

*Non-Inv*, for a selective combine, one that gives back one of its arguments, as max does. A
partial that loses against a newer one can never win again, since the newer one stays longer: it
is dropped. What remains is a deque in which every entry beats all behind it; the answer stands
in front. An insert compares with the entries it drops and with one that it does not: amortised
fewer than two combines per slide, at worst as many as the window is long; a query needs none.

*Inv*, for an invertible combine: a running answer, from which what leaves is subtracted. With
one query per window that is subtract-on-evict (`subtract.py`), and the code is shared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from paneflow.aggregates.kernels import Shape
from paneflow.aggregates.operator import Array, Component, Operator, Partials
from paneflow.errors import UnsupportedError
from paneflow.merging.contract import Algorithm, Fifo, FifoMerger, refusal
from paneflow.merging.linked import Linked, LinkedFifo, LinkedMerger
from paneflow.merging.subtract import SUBTRACT


def text(shape: Shape, state: str) -> str:
    """m[2], m[3]: the ends of the deque; ring a: its partials; ring z: their positions."""
    lost = " and ".join(same(c, f"r[{k}]", f"p[{k}]") for k, c in enumerate(shape.components))
    return f"""
        @helper
        def insert({state}, p):
            k = len(a0) - 1
            first = m[2]
            last = m[3]
            while last > first:
                r = combine({shape.load("a", "(last - 1) & k")}, p)
                if not ({lost}):
                    break
                last -= 1
            i = last & k
            {shape.store("a", "i", "p")}
            z[i] = m[1]
            m[3] = last + 1
            m[1] += 1


        @helper
        def evict({state}):
            if z[m[2] & (len(a0) - 1)] == m[0]:
                m[2] += 1
            m[0] += 1


        @helper
        def query({state}):
            if m[2] == m[3]:
                return {shape.fresh("identity")}
            i = m[2] & (len(a0) - 1)
            return {shape.fresh(shape.load("a", "i"))}
        """


def same(component: Component, x: str, y: str) -> str:
    """An expression: whether two values of a component are the same to the bit.

    Equality would not do: NaN differs from itself, and -0.0 equals 0.0, so that of two zeros the
    wrong one might be kept.
    """
    if component.dtype == "object":
        return f"({x} is {y} or {x} == {y})"
    if component.width is not None:
        view = ".view(np.int64)" if component.dtype == "float64" else ""
        return f"np.array_equal({x}{view}, {y}{view})"
    if component.dtype == "float64":
        zeros = f"({x} != 0.0 or math.copysign(1.0, {x}) == math.copysign(1.0, {y}))"
        return f"(({x} == {y} and {zeros}) or ({x} != {x} and {y} != {y}))"
    return f"{x} == {y}"


SLICK_DEQUE = Linked("slick_deque", text, ("a",), counters=4, law="selective", live=(2, 3))
SLICK_DEQUE_INV = replace(SUBTRACT, name="slick_deque")


def selects(operator: Operator) -> bool:
    """Whether Non-Inv serves an operator; otherwise Inv does, or it is refused."""
    if operator.selective:
        return True
    why = refusal("invertible", operator)
    if why is not None:
        raise UnsupportedError(
            f"merge='slick_deque' needs a combine that is selective or invertible. It is not "
            f"selective (it does not always give back one of its arguments, as max does), so it "
            f"needs {why}"
        )
    return False


def slick_deque(operator: Operator, size: int = 16) -> Fifo:
    """The streaming face: a window by the half of SlickDeque that suits the operator.

    >>> from paneflow.aggregates.sums import integer_sum
    >>> slick_deque(integer_sum("v")).algorithm.law
    'invertible'
    """
    if selects(operator):
        return LinkedFifo(SLICK_DEQUE, operator, size)
    return Fifo(SLICK_DEQUE_INV, operator, size)


class _NonInv(LinkedMerger):
    algorithm: ClassVar[Linked] = SLICK_DEQUE


class _Inv(FifoMerger):
    algorithm: ClassVar[Algorithm] = SLICK_DEQUE_INV


class SlickDeque:
    """Merges by a deque of candidates, or by subtraction, as the operator allows."""

    name: ClassVar[str] = "slick_deque"

    @classmethod
    def check(cls, operator: Operator) -> None:
        """Refuse an operator that is neither selective nor invertible."""
        selects(operator)

    def __init__(self, operator: Operator, partials: Partials) -> None:
        half = _NonInv if selects(operator) else _Inv
        self._merger: FifoMerger = half(operator, partials)

    def merge(self, lo: Array, hi: Array) -> Partials:
        """The partials lo <= i < hi of each window, combined in order."""
        return self._merger.merge(lo, hi)
