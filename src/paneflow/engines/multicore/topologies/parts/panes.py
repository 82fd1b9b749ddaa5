"""Panes: the pieces of which windows are made, each folded once, however many windows share it.

A pane is as long as the slide, if the slide divides the range; otherwise every slide is cut in
two, where windows begin and where they end (Krishnamurthy et al., "On-the-fly sharing for streamed
aggregation", 2006). It may be cut further. Panes are numbered consecutively; window w consists of
`per_window` panes from number w * per_slide on.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.threads.short_loops import Loop
from paneflow.engines.multicore.ticks import AFTER_ALL
from paneflow.engines.multicore.topologies.parts.contents import Contents
from paneflow.engines.multicore.topologies.parts.messages import Work
from paneflow.engines.multicore.topologies.parts.question import Inputs, Span


class Panes:
    """The panes of one span; each pane of the thesis is cut into `pieces`."""

    def __init__(self, span: Span, pieces: int = 1) -> None:
        rest = span.range % span.slide
        edges = [0, rest, span.slide] if rest else [0, span.slide]
        cuts = {
            a + (b - a) * k // pieces for a, b in itertools.pairwise(edges) for k in range(pieces)
        }
        self.span = span
        self.cuts = np.array(sorted(cuts), np.int64)
        self.per_slide = len(cuts)
        self.per_window = span.range // span.slide * len(cuts) + sorted(cuts).index(rest)
        self.widths = np.diff(self.cuts, append=span.slide)

    def at(self, tick: int) -> int:
        """The number of the pane that a tick falls into; all before it are complete by then."""
        slides, rest = divmod(tick - self.span.offset, self.span.slide)
        number = slides * self.per_slide + int(np.searchsorted(self.cuts, rest, "right")) - 1
        return AFTER_ALL if tick == AFTER_ALL else min(number, AFTER_ALL)

    def full(self, panes: Contents) -> Array:
        """Which panes of a count window have all their events."""
        full: Array = panes.rows == self.widths[panes.number % self.per_slide]
        return full

    @property
    def numbers(self) -> tuple[int, int, int]:
        """Panes in a window, panes in a slide, and the lowest number of a window, for kernels."""
        return self.per_window, self.per_slide, self.span.least


@dataclass(frozen=True, eq=False)
class Share:
    """What one PU gets of a message: for each span its events and the numbers of their panes.

    Every PU gets every message, if only to learn how far the stream has come.
    """

    work: Work
    events: list[tuple[Inputs, Array] | None]

    def __len__(self) -> int:
        return sum(len(mine[1]) for mine in self.events if mine is not None)


class Dealer:
    """Hands the events of a batch to the PUs that are responsible for their panes.

    This is the sender's part in chapter 9 of the thesis: PU (pane / together) mod P, where
    `together` panes stay together; if keys are to be spread, shifted by the key's hash.
    """

    def __init__(
        self,
        panes: list[Panes],
        together: list[int],
        spread: bool,
        workers: int,
    ) -> None:
        self._panes = panes
        self._together = together
        self._spread = spread
        self._workers = workers

    def shares(self, work: Work) -> list[Share]:
        """One for each PU."""
        dealt: list[list[tuple[Inputs, Array] | None]] = [[] for _ in range(self._workers)]
        for panes, together in zip(self._panes, self._together, strict=True):
            for mine, events in zip(dealt, self._deal(work, panes, together), strict=True):
                mine.append(events)
        return [Share(work, mine) for mine in dealt]

    def _deal(self, work: Work, panes: Panes, together: int) -> list[tuple[Inputs, Array] | None]:
        events = work.events
        if events is None or (work.behind and panes.span.by_count):
            return [None] * self._workers
        numbers = np.empty(len(work), np.int64)
        starts = np.zeros(self._workers + 2, np.int64)
        order = np.empty(len(work), np.int64)
        _deal_out(
            len(work),
            work.ticks(panes.span),
            events.key,
            (panes.span.slide, panes.span.offset),
            panes.cuts,
            panes.per_window if panes.span.range < panes.span.slide else panes.per_slide,
            together,
            self._spread,
            self._workers,
            numbers,
            starts,
            order,
        )
        dealt: list[tuple[Inputs, Array] | None] = []
        for rank in range(self._workers):
            mine = order[starts[rank] : starts[rank + 1]]
            if not len(mine):
                dealt.append(None)
                continue
            # Consecutive events are passed on as a view.
            side_by_side = int(mine[-1] - mine[0]) + 1 == len(mine)
            which = slice(int(mine[0]), int(mine[-1]) + 1) if side_by_side else mine
            dealt.append((events.part(which), numbers[which]))
        return dealt


@Loop
def _deal_out(  # type: ignore[no-untyped-def]
    ticks, key, span, cuts, used, together, spread, workers, numbers, starts, order
):
    """Number the panes of events, and sort events by PU; those in gaps between windows go last."""
    slide, offset = span
    owners = np.empty(len(ticks), np.int64)
    for i in range(len(ticks)):
        since = ticks[i] - offset
        slides = since // slide
        rest = since - slides * slide
        at = len(cuts) - 1
        while cuts[at] > rest:
            at -= 1
        numbers[i] = slides * len(cuts) + at
        owners[i] = workers
        if at < used:
            turn = numbers[i] // together
            if spread:
                turn += np.int64(
                    (np.uint64(key[i]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)
                )
            owners[i] = turn % workers
        starts[owners[i] + 1] += 1
    places = np.empty(workers + 1, np.int64)
    for rank in range(workers + 1):
        starts[rank + 1] += starts[rank]
        places[rank] = starts[rank]
    for i in range(len(ticks)):
        order[places[owners[i]]] = i
        places[owners[i]] += 1
