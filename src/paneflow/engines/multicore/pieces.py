"""Pieces of windows: what is dealt out to a PU, and what it adds to the windows that pass by.

A window spans about eight pieces, so it never begins and ends in the same one, unless a piece is a
single pane. Of each piece it needs all, or all from some pane on (where it begins), or all up to
some pane (where it ends). Two scans over the panes of each piece hold all three; a part of a window
is then looked up and not computed. This is the two-scan of SBA (Zhang, Akbarinia, Toumani, KDD
2021), with pieces for chunks.
"""

from __future__ import annotations

import numba
import numpy as np

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Partials
from paneflow.engines.multicore.cells import Contents
from paneflow.engines.multicore.holding import FEW, held, order_of, taken
from paneflow.engines.multicore.panes import Panes
from paneflow.engines.multicore.question import Question, Span
from paneflow.engines.multicore.tracing import combining

PIECES = 8
"""About how many pieces of a window are dealt out."""

compiled = numba.njit(nogil=True, cache=True)


class Pieces(Panes):
    """Panes, and how many of them stay together in one piece."""

    def __init__(self, span: Span) -> None:
        few = Panes(span).per_window
        super().__init__(span, -(-PIECES // few))
        self.together = max(1, self.per_window // PIECES)
        self.parts = (self.per_window + self.together - 2) // self.together + 1
        """Pieces that one window has something of, at most: its part j has the number
        w * parts + j."""


class PartsOf:
    """What panes add to windows."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._scan = [kernel(op, "scan", scan_loop) for op in question.operators]

    def __call__(self, pieces: Pieces, panes: Contents, before: Array, now: Array) -> Contents:
        """Parts of the windows with numbers before < w <= now, which may differ by key."""
        n = len(panes)
        # A PU meets panes in the order of their numbers, and holds them in it.
        panes = panes.chosen(order_of(panes.key))
        few = n <= FEW
        starts = np.empty(n + 1, np.int64)
        begin = _begin_few if few else _begin
        starts = starts[: begin(panes.key, panes.number, pieces.together, starts) + 1]
        span = (*pieces.numbers, pieces.together, pieces.parts)
        list_parts = _list_few_parts if few else _list_parts
        out = np.zeros(0, np.int64), np.zeros(0, np.int64)
        found = list_parts(panes.number, panes.key, starts, span, before, now, *out)
        out = np.empty(found, np.int64), np.empty(found, np.int64)
        list_parts(panes.number, panes.key, starts, span, before, now, *out)
        number, at = out
        first, last = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64)
        (_bound_few if few else _bound)(panes.first, panes.last, starts, first, last)
        return Contents(
            number,
            taken(panes.key, at % n) if n else at,
            taken(_sums(panes.rows, starts), at),
            taken(first, at),
            taken(last, at),
            [taken(_sums(counts, starts), at) for counts in panes.counts],
            [
                tuple(taken(column, at) for column in self._scanned(k, panes, starts))
                for k in range(len(self._scan))
            ],
        )

    def _scanned(self, k: int, panes: Contents, starts: Array) -> Partials:
        """Partials up to each pane of its piece, and behind them those from each pane on."""
        operator, held = self._question.operators[k], panes.partials[k]
        scanned = operator.empty(2 * len(panes))
        try:
            self._scan[k](starts, *held, *scanned)
        except Exception:
            neighbours = np.arange(max(len(panes) - 1, 0))
            with combining(operator, neighbours, neighbours + 1, held, held):
                raise
        return scanned


def scan_loop(shape: Shape) -> str:
    """Piece by piece, from the left and from the right."""
    return f"""
        def scan(starts, {shape.names("s")}, {shape.names("o")}):
            n = len(s0)
            for piece in range(len(starts) - 1):
                i = starts[piece]
                {shape.store("o", "i", shape.load("s", "i"))}
                for i in range(starts[piece] + 1, starts[piece + 1]):
                    p = {shape.load("o", "i - 1")}
                    q = {shape.load("s", "i")}
                    {shape.merge_at("o", "i", "p", "q")}
                i = starts[piece + 1] - 1
                {shape.store("o", "n + i", shape.load("s", "i"))}
                for i in range(starts[piece + 1] - 2, starts[piece] - 1, -1):
                    p = {shape.load("s", "i")}
                    q = {shape.load("o", "n + i + 1")}
                    {shape.merge_at("o", "n + i", "p", "q")}
        """


def _sums(values: Array, starts: Array) -> Array:
    """Sums up to each pane of its piece, and behind them from each pane on."""
    sums = np.empty(2 * len(values), np.int64)
    (_add_few_up if len(values) <= FEW else _add_up)(values, starts, sums)
    return sums


@compiled
def _begin(key, number, together, starts):  # type: ignore[no-untyped-def]
    """Where each piece of each key begins, and the end; how many there are."""
    found = 0
    for i in range(len(key)):
        if i == 0 or key[i] != key[i - 1] or number[i] // together != number[i - 1] // together:
            starts[found] = i
            found += 1
    starts[found] = len(key)
    return found


@compiled
def _bound(pane_first, pane_last, starts, first, last):  # type: ignore[no-untyped-def]
    """Up to a pane, a piece begins where it begins; from a pane on, it ends where it ends."""
    n = len(pane_first)
    for piece in range(len(starts) - 1):
        for i in range(starts[piece], starts[piece + 1]):
            first[i] = pane_first[starts[piece]]
            last[i] = pane_last[i]
            first[n + i] = pane_first[i]
            last[n + i] = pane_last[starts[piece + 1] - 1]


@compiled
def _add_up(values, starts, sums):  # type: ignore[no-untyped-def]
    n = len(values)
    for piece in range(len(starts) - 1):
        total = 0
        for i in range(starts[piece], starts[piece + 1]):
            total += values[i]
            sums[i] = total
        total = 0
        for i in range(starts[piece + 1] - 1, starts[piece] - 1, -1):
            total += values[i]
            sums[n + i] = total


@compiled
def _list_parts(pane, key, starts, span, before, now, number, at):  # type: ignore[no-untyped-def]
    """Lists the parts of windows and where in the scans they are, if there is room; how many."""
    per_window, per_slide, lowest, together, parts = span
    n = len(pane)
    found = 0
    for piece in range(len(starts) - 1):
        begin, end = starts[piece], starts[piece + 1]
        k = key[begin] if lowest == 0 else 0
        lo, hi = begin, begin
        first = max((pane[begin] - per_window) // per_slide + 1, lowest, before[k] + 1)
        for window in range(first, min(pane[end - 1] // per_slide, now[k]) + 1):
            start = window * per_slide
            while lo < end and pane[lo] < start:
                lo += 1
            while hi < end and pane[hi] < start + per_window:
                hi += 1
            if lo < hi:
                if found < len(number):
                    number[found] = window * parts + pane[begin] // together - start // together
                    at[found] = hi - 1 if lo == begin else n + lo
                found += 1
    return found


@held
def _add_few_up(*arguments):  # type: ignore[no-untyped-def]
    _add_up(*arguments)


@held
def _list_few_parts(*arguments):  # type: ignore[no-untyped-def]
    return _list_parts(*arguments)


@held
def _begin_few(*arguments):  # type: ignore[no-untyped-def]
    return _begin(*arguments)


@held
def _bound_few(*arguments):  # type: ignore[no-untyped-def]
    _bound(*arguments)
