"""Folding: each event joins its slice, once.

Slices are the gaps between edges, and edges are where any window of the query begins or ends.
Every window is then a whole number of slices, and all windows share them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paneflow.aggregates._functions.roles import folding
from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.compiling import compiled
from paneflow.slicing import ordering


def loop(shape: Shape) -> str:
    """Slice by slice, event by event, in total order."""
    if shape.gathers:
        return f"""
        def fold(edges, identity, {shape.value_names()}, {shape.names("o")}):
            for s in range(len(edges) - 1):
                p = gather(edges[s], edges[s + 1], {shape.value_names()})
                {shape.store("o", "s", "p")}
        """
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
    partials = operator.empty(max(len(edges) - 1, 0))
    if operator.fold_many is not None:
        for s, (a, b) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
            partials[0][s] = operator.fold_many(*(v[a:b] for v in inputs), *operator.parameters)
        return partials
    with folding(operator, inputs, edges):
        kernel(operator, "fold", loop)(edges, operator.start(), *inputs, *partials)
    return partials


class Edges:
    """Where slices begin and end, and which slice begins at which position."""

    def __init__(self, events: int, lo: Array, hi: Array) -> None:
        self._slice = np.zeros(events + 1, np.int32)
        if len(lo) + events <= ordering.FEW:
            self._slice[lo] = self._slice[hi] = 1
            self.positions = np.flatnonzero(self._slice)
            self._slice[self.positions] = np.arange(len(self.positions))
        else:
            self.positions = np.empty(events + 1, np.int64)
            self.positions = self.positions[: _number(lo, hi, self._slice, self.positions)]

    def slices(self, positions: Array) -> Array:
        """The number of the slice that begins at each position."""
        if len(positions) <= ordering.FEW:
            return self._slice[positions].astype(np.int64)
        out = np.empty(len(positions), np.int64)
        _look_up(self._slice, positions, out)
        return out


@compiled
def _number(lo, hi, marked, positions):  # type: ignore[no-untyped-def]
    """Mark the bounds, replace each mark by its number, and list the marked positions."""
    for position in lo:
        marked[position] = 1
    for position in hi:
        marked[position] = 1
    found = 0
    for i in range(len(marked)):
        if marked[i]:
            positions[found] = i
            marked[i] = found
            found += 1
    return found


@compiled
def _look_up(numbers, positions, out):  # type: ignore[no-untyped-def]
    for i in range(len(positions)):
        out[i] = numbers[positions[i]]
