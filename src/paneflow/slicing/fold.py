"""Folding: each event joins its slice, once.

Slices are the gaps between edges, and edges are where any window of the query begins or ends.
Every window is then a whole number of slices, and all windows share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numba
import numpy as np

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.slicing.bounds.ranges import Ranges

compiled = numba.njit(nogil=True, cache=True)


def loop(shape: Shape) -> str:
    return f"""
        def fold(edges, identity, {shape.value_names()}, {shape.names("o")}):
            for s in range(len(edges) - 1):
                p = {shape.fresh("identity")}
                for i in range(edges[s], edges[s + 1]):
                    p = absorb(p, {shape.values("i")})
                {shape.store("o", "s", "p")}
        """


def fold(operator: Operator, inputs: Sequence[Array], edges: Array) -> Partials:
    """The partial of the events between each two edges."""
    partials = operator.empty(len(edges) - 1)
    if operator.fold_many is not None:
        for s, (a, b) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
            partials[0][s] = operator.fold_many(*(v[a:b] for v in inputs), *operator.parameters)
        return partials
    kernel(operator, "fold", loop)(edges, operator.start(), *inputs, *partials)
    return partials


class Edges:
    """Where slices begin and end, and which slices each window is made of."""

    def __init__(self, events: int, windows: Iterable[Ranges]) -> None:
        marked = np.zeros(events + 1, np.bool_)
        for ranges in windows:
            _mark(ranges.lo, marked)
            _mark(ranges.hi, marked)
        self.positions = np.flatnonzero(marked)
        self._slice = np.cumsum(marked) - 1

    def slices(self, positions: Array) -> Array:
        """The number of the slice that begins at each position."""
        return self._slice[positions]


@compiled
def _mark(positions, marked):  # type: ignore[no-untyped-def]
    for position in positions:
        marked[position] = True
