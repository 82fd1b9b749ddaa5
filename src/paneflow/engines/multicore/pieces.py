"""Pieces of windows: what is dealt out to a PU, and what it adds to the windows that pass by.

A window spans about eight pieces, so it never begins and ends in the same one, unless a piece is a
single pane. Of each piece it needs all, or all from some pane on (where it begins), or all up to
some pane (where it ends). Two scans over the panes of each piece hold all three; a part of a window
is then looked up and not computed. This is the two-scan of SBA (Zhang, Akbarinia, Toumani, KDD
2021), with pieces for chunks.
"""

from __future__ import annotations

import numpy as np

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Partials
from paneflow.engines.multicore.cells import Cells
from paneflow.engines.multicore.contents import (
    COUNTS,
    FIRST,
    KEY,
    LAST,
    NUMBER,
    ROWS,
    Contents,
)
from paneflow.engines.multicore.holding import FEW, Loop, order_of, put, taken, taken_across
from paneflow.engines.multicore.panes import Panes
from paneflow.engines.multicore.question import NEVER, Question, Span
from paneflow.engines.multicore.tracing import combine_plainly

PIECES = 8
"""About how many pieces of a window are dealt out."""


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
        self._numbers, self._places = (np.empty(FEW, np.int64) for _ in range(2))

    def warm(self, pieces: Pieces) -> None:
        """Compile everything, by asking for the parts of no window."""
        never = np.full(1, -NEVER)
        self(pieces, Cells(self._question).take(), never, never)

    def __call__(self, pieces: Pieces, panes: Contents, before: Array, now: Array) -> Contents:
        """Parts of the windows with numbers before < w <= now, which may differ by key."""
        n = len(panes)
        # A PU meets panes in the order of their numbers, and holds them in it.
        panes = panes.chosen(order_of(panes.key))
        starts = np.empty(n + 1, np.int64)
        starts = starts[: _begin(n, panes.fields, pieces.together, starts) + 1]
        number, at = self._listed(pieces, panes, starts, before, now)
        scans = np.empty((len(panes.fields), 2 * n), np.int64)
        _scan_fields(scans.size, panes.fields, starts, scans)
        fields = taken_across(scans, at)
        put(number, fields[NUMBER], 0)
        return Contents(
            fields,
            [
                tuple(taken(column, at) for column in self._scanned(k, panes, starts))
                for k in range(len(self._scan))
            ],
        )

    def _listed(
        self, pieces: Pieces, panes: Contents, starts: Array, before: Array, now: Array
    ) -> tuple[Array, Array]:
        """The parts of windows by their number, and where in the scans they are."""
        span = (*pieces.numbers, pieces.together, pieces.parts)
        while True:
            out = self._numbers, self._places
            found = _list_parts(len(panes), panes.fields, starts, span, before, now, *out)
            if found <= len(self._numbers):
                return self._numbers[:found], self._places[:found]
            self._numbers, self._places = (np.empty(2 * found, np.int64) for _ in range(2))

    def _scanned(self, k: int, panes: Contents, starts: Array) -> Partials:
        """Partials up to each pane of its piece, and behind them those from each pane on."""
        operator, held = self._question.operators[k], panes.partials[k]
        scanned = operator.empty(2 * len(panes))
        try:
            self._scan[k](starts, *held, *scanned)
        except Exception:
            neighbours = np.arange(max(len(panes) - 1, 0))
            combine_plainly(operator, neighbours, neighbours + 1, held, held)
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


@Loop
def _begin(fields, together, starts):  # type: ignore[no-untyped-def]
    """Where each piece of each key begins, and the end; how many there are."""
    key, number = fields[KEY], fields[NUMBER]
    found = 0
    for i in range(len(key)):
        if i == 0 or key[i] != key[i - 1] or number[i] // together != number[i - 1] // together:
            starts[found] = i
            found += 1
    starts[found] = len(key)
    return found


@Loop
def _scan_fields(fields, starts, scans):  # type: ignore[no-untyped-def]
    """Up to a pane, a piece begins where it begins; from a pane on, it ends where it ends."""
    n = fields.shape[1]
    for piece in range(len(starts) - 1):
        begin, end = starts[piece], starts[piece + 1]
        for i in range(begin, end):
            scans[KEY, i] = scans[KEY, n + i] = fields[KEY, i]
            scans[FIRST, i] = fields[FIRST, begin]
            scans[LAST, i] = fields[LAST, i]
            scans[FIRST, n + i] = fields[FIRST, i]
            scans[LAST, n + i] = fields[LAST, end - 1]
        for row in range(len(fields)):
            if row == ROWS or row >= COUNTS:
                total = 0
                for i in range(begin, end):
                    total += fields[row, i]
                    scans[row, i] = total
                total = 0
                for i in range(end - 1, begin - 1, -1):
                    total += fields[row, i]
                    scans[row, n + i] = total


@Loop
def _list_parts(fields, starts, span, before, now, number, at):  # type: ignore[no-untyped-def]
    """Lists the parts of windows and where in the scans they are, if there is room; how many."""
    per_window, per_slide, lowest, together, parts = span
    key, pane = fields[KEY], fields[NUMBER]
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
