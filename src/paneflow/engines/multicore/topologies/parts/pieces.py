"""Pieces of windows: what a PU is responsible for, and what it adds to the windows that pass by.

A window spans about eight pieces, so it never begins and ends in the same one, unless a piece is a
single pane. It needs each piece whole, or from some pane on (where it begins), or up to some pane
(where it ends). A scan over the panes of a piece from the left has the first and the last of these,
and one from the right has the other, so a part of a window is looked up rather than computed. This
is the two-scan of SBA (Zhang, Akbarinia, Toumani, KDD 2021), with pieces for chunks.
"""

from __future__ import annotations

import numpy as np

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Partials
from paneflow.engines.multicore.threads.short_loops import Loop, order_of, taken
from paneflow.engines.multicore.ticks import AFTER_ALL
from paneflow.engines.multicore.topologies.parts.cells import Cells
from paneflow.engines.multicore.topologies.parts.contents import (
    COUNTS,
    FIRST,
    KEY,
    LAST,
    NUMBER,
    ROWS,
    Contents,
)
from paneflow.engines.multicore.topologies.parts.panes import Panes
from paneflow.engines.multicore.topologies.parts.question import Question, Span
from paneflow.engines.multicore.tracing import combine_plainly
from paneflow.errors import UnsupportedError

LARGEST = 2**63 - 2**10
PIECES = 8
"""About how many pieces a window has. It decides how float sums are grouped: no matter of speed."""


class Pieces(Panes):
    """Panes, and how many of them stay together in one piece."""

    def __init__(self, span: Span) -> None:
        few = Panes(span).per_window
        super().__init__(span, -(-PIECES // few))
        self.together = max(1, self.per_window // PIECES)
        self.parts = (self.per_window + self.together - 2) // self.together + 1
        """The largest number of pieces that one window overlaps. Its part j has the number
        (w - base) * parts + j, where base is the last window that had ended before; w itself may
        be too large to be multiplied."""


class PartsOf:
    """What panes add to windows."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._scan = [kernel(op, "scan", scan_loop) for op in question.operators]

    def warm(self, pieces: Pieces) -> None:
        """Compile everything, by asking for the parts of no windows."""
        never = np.full(1, -AFTER_ALL)
        self(pieces, Cells(self._question).take(), never, never, 0)

    def __call__(
        self, pieces: Pieces, panes: Contents, before: Array, now: Array, base: int
    ) -> tuple[Contents, int]:
        """The parts of windows with before < w <= now, where both may differ by key.

        Also returns how many panes were scanned for them.
        """
        n = len(panes)
        if n and int(panes.number[-1]) // pieces.per_slide - base > LARGEST // pieces.parts:
            raise UnsupportedError(
                f"events lie so far apart that strategy 'pane_line' cannot number windows which "
                f"slide by {pieces.span.slide}: choose another strategy, such as 'active'"
            )
        # Panes come in the order of their numbers.
        order = order_of(panes.key)
        starts, sides = np.empty(n + 1, np.int64), np.zeros(n, np.int64)
        fields, at, found, scanned = self._listed(
            pieces, panes, order, starts, sides, (before, now, base)
        )
        starts = starts[: found + 1]
        return Contents(
            fields,
            [
                tuple(taken(column, at) for column in self._scanned(k, panes, order, starts, sides))
                for k in range(len(self._scan))
            ],
        ), scanned

    def _listed(
        self,
        pieces: Pieces,
        panes: Contents,
        order: Array,
        starts: Array,
        sides: Array,
        ended: tuple[Array, Array, int],
    ) -> tuple[Array, Array, int, int]:
        """Parts of windows, their places in the scans, and how many pieces and panes to scan."""
        span = (*pieces.numbers, pieces.together, pieces.parts)
        room = 2 * (len(panes) // pieces.together + 1)
        while True:
            fields, at = np.empty((len(panes.fields), room), np.int64), np.empty(room, np.int64)
            listed, found, scanned = _list_parts(
                len(panes) * len(panes.fields),
                panes.fields,
                order,
                span,
                ended,
                starts,
                sides,
                fields,
                at,
            )
            if listed <= room:
                return fields[:, :listed].copy(), at[:listed], found, scanned
            room = listed

    def _scanned(
        self, k: int, panes: Contents, order: Array, starts: Array, sides: Array
    ) -> Partials:
        """Partials up to each pane of its piece, followed by those from each pane on."""
        operator, held = self._question.operators[k], panes.partials[k]
        scanned = operator.empty(2 * len(panes))
        try:
            self._scan[k](order, starts, sides, *held, *scanned)
        except Exception:
            combine_plainly(operator, order[:-1], order[1:], held, held)
            raise
        return scanned


def scan_loop(shape: Shape) -> str:
    """A loop that scans each piece from the left, from the right, or both."""
    return f"""
        def scan(order, starts, sides, {shape.names("s")}, {shape.names("o")}):
            n = len(order)
            for piece in range(len(starts) - 1):
                begin = starts[piece]
                end = starts[piece + 1]
                if sides[piece] & 1:
                    {shape.store("o", "begin", shape.load("s", "order[begin]"))}
                    for i in range(begin + 1, end):
                        p = {shape.load("o", "i - 1")}
                        q = {shape.load("s", "order[i]")}
                        {shape.merge_at("o", "i", "p", "q")}
                if sides[piece] & 2:
                    {shape.store("o", "n + end - 1", shape.load("s", "order[end - 1]"))}
                    for i in range(end - 2, begin - 1, -1):
                        p = {shape.load("s", "order[i]")}
                        q = {shape.load("o", "n + i + 1")}
                        {shape.merge_at("o", "n + i", "p", "q")}
        """


@Loop
def _list_parts(  # type: ignore[no-untyped-def]
    fields, order, span, ended, starts, sides, parts, at
):
    """List parts of windows and their places in the scans, as far as there is room for them.

    Each piece begins at one of `starts`, and `sides` says from which sides it has to be scanned: 1
    from the left, 2 from the right. Returns the number of parts, of pieces, and of panes to scan.
    """
    per_window, per_slide, lowest, together, most = span
    before, now, base = ended
    key, pane = fields[KEY], fields[NUMBER]
    n = len(order)
    sums = np.empty((len(fields) - COUNTS + 1, n + 1), np.int64)
    sums[:, 0] = 0
    pieces, beyond = 0, 0
    for i in range(n):
        p = order[i]
        sums[0, i + 1] = sums[0, i] + fields[ROWS, p]
        for row in range(COUNTS, len(fields)):
            sums[row - COUNTS + 1, i + 1] = sums[row - COUNTS + 1, i] + fields[row, p]
        if i == 0 or key[p] != key[order[i - 1]] or pane[p] >= beyond:
            starts[pieces] = i
            pieces += 1
            beyond = (pane[p] // together + 1) * together
    starts[pieces] = n
    found, scanned = 0, 0
    for piece in range(pieces):
        begin, end = starts[piece], starts[piece + 1]
        head = order[begin]
        k = key[head] if lowest == 0 else 0
        lo, hi = begin, begin
        first = max((pane[head] - per_window) // per_slide + 1, lowest, before[k] + 1)
        for window in range(first, min(pane[order[end - 1]] // per_slide, now[k]) + 1):
            start = window * per_slide
            while lo < end and pane[order[lo]] < start:
                lo += 1
            while hi < end and pane[order[hi]] < start + per_window:
                hi += 1
            if lo < hi:
                sides[piece] |= 1 if lo == begin else 2
                if found < len(at):
                    part = pane[head] // together - start // together
                    parts[NUMBER, found] = (window - base) * most + part
                    parts[KEY, found] = key[head]
                    parts[FIRST, found] = fields[FIRST, order[lo]]
                    parts[LAST, found] = fields[LAST, order[hi - 1]]
                    parts[ROWS, found] = sums[0, hi] - sums[0, lo]
                    for row in range(COUNTS, len(fields)):
                        parts[row, found] = sums[row - COUNTS + 1, hi] - sums[row - COUNTS + 1, lo]
                    at[found] = hi - 1 if lo == begin else n + lo
                found += 1
        scanned += (end - begin) * ((sides[piece] & 1) + (sides[piece] >> 1))
    return found, pieces, scanned
