"""A front that puts nothing in order: events go on as they were pushed, to be read by workers.

Partials that commute need no order, so events do not wait for the watermark, nor for other sources.
Only times are looked at here, to move the watermark and to find events behind it. These are the few
that have to be told apart: some join windows that are open, others are late (`stragglers.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.intake.as_pushed import chosen_across
from paneflow.engines.multicore.intake.front import Arrival, Behind, Front, arrive, joined
from paneflow.engines.multicore.intake.held_events import SortedRun
from paneflow.engines.multicore.intake.unread import ReadEvents, Unread
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.engines.multicore.tuning import tuning
from paneflow.slicing.ordering import is_sorted

if TYPE_CHECKING:
    from paneflow.query import Query

Steps = list[Unread | Batch | int]


class UnorderedFront(Front):
    """Takes what arrives, and gives it to workers unread."""

    def __init__(self, query: Query, schema: pa.Schema, sources: int, workers: int) -> None:
        super().__init__(query, schema, sources)
        self._shares = workers
        self._passed_on = BEFORE_ALL
        """The last watermark that was returned."""

    def take_unread(self, arrivals: list[Arrival]) -> Steps:
        """Take in what has arrived; returns what to feed, and watermarks, in order."""
        steps: Steps = []
        parts: list[Arrival] = []
        rows = at = 0
        # All workers get about as much, and not so much that they wait for each other.
        total = sum(arrival.rows for arrival in arrivals)
        short = total < tuning.short_push * len(arrivals)
        each = min(total // (1 if short else self._shares), tuning.dealt_at_once)
        each = max(each, tuning.dealt_least)
        while at < len(arrivals):
            reached = self.watermark
            known, several = self._let_in_known(arrivals, at, each - rows)
            if known == at:
                together = self._looked_at_together(arrivals, at)
                known = at + len(together)
                if not self._let_in_unread(together):
                    if parts:
                        self._pass_on(parts, rows, reached, steps)
                        parts, rows = [], 0
                    for arrival in together:
                        self._take_one(arrival, steps)
                    at = known
                    continue
                several = sum(arrival.rows for arrival in together)
            parts += arrivals[at:known]
            at = known
            rows += several
            if rows >= each:
                self._pass_on(parts, rows, self.watermark, steps)
                parts, rows = [], 0
        if parts:
            self._pass_on(parts, rows, self.watermark, steps)
        return steps

    def _let_in_known(self, arrivals: list[Arrival], begin: int, most: int) -> tuple[int, int]:
        """Let in pushes from one on that are known to be in order and not behind the watermark.

        It ends with the first that is not, or once there are so many events. Returns the place
        behind the last, and how many events there are.
        """
        if self._single and not self._asleep:
            return self._let_in_alone(arrivals, begin, most)
        at, rows = begin, 0
        while at < len(arrivals) and rows < most:
            source, span = arrivals[at].source, arrivals[at].span
            if span is None or source in self._asleep or not self._move_on(source, *span):
                break
            rows += arrivals[at].rows
            at += 1
        return at, rows

    def _let_in_alone(self, arrivals: list[Arrival], begin: int, most: int) -> tuple[int, int]:
        """The same of a single source: short pushes are many, so each takes few steps."""
        watermark, frontier, lateness = self.watermark, int(self._frontiers[0]), self._lateness
        at, rows = begin, 0
        while at < len(arrivals) and rows < most:
            arrival = arrivals[at]
            span = arrival.span
            if span is None or span[0] < watermark:
                break
            # Comparisons, because `max` takes longer than all the rest.
            if span[1] > frontier:
                frontier = span[1]
                if frontier - lateness > watermark:
                    watermark = frontier - lateness
            rows += arrival.rows
            at += 1
        self._frontiers[0], self._watermark[0] = frontier, watermark
        return at, rows

    def _looked_at_together(self, arrivals: list[Arrival], begin: int) -> list[Arrival]:
        """Short pushes whose times have to be looked at, from one on, or a single push.

        To join short pushes here is a copy, but takes fewer steps.
        """
        end, rows = begin + 1, arrivals[begin].rows
        while end < len(arrivals) and arrivals[begin].span is None:
            rows += arrivals[end].rows
            alone = arrivals[end].span is not None or arrivals[end].batch is None
            if alone or arrivals[begin].batch is None or rows > tuning.looked_at_together:
                break
            end += 1
        return arrivals[begin:end]

    def _take_one(self, arrival: Arrival, steps: Steps) -> None:
        """Take in a push of which some events are behind the watermark, or no push."""
        if arrival.batch is None:
            self._pass_over(arrival)
            if self.watermark > self._passed_on:
                steps.append(self.watermark)
                self._passed_on = self.watermark
            return
        self._wake(arrival)
        limit = self._behind_among([arrival])
        if limit is None:
            self._pass_on([arrival], arrival.rows, self.watermark, steps)
        else:
            self._tell_apart(arrival, limit, steps)

    def _wake(self, arrival: Arrival) -> None:
        """Wait for its source again, if that was silent."""
        if arrival.source in self._asleep:
            self._come_back(arrival.source)

    def _let_in_unread(self, arrivals: list[Arrival]) -> bool:
        """Let in pushes of which no event is behind the watermark; else nothing changes."""
        if arrivals[0].batch is None or any(a.source in self._asleep for a in arrivals):
            return False
        before = self._frontiers.copy(), self._watermark.copy()
        if self._behind_among(arrivals) is None:
            return True
        self._frontiers, self._watermark = before
        return False

    def _move_on(self, source: int, begin: int, end: int) -> bool:
        """Move a source's frontier by events in order, unless they begin behind the watermark."""
        watermark = self.watermark
        if begin < watermark:
            return False
        self._frontiers[source] = max(self._frontiers[source], end)
        least = end if self._single else int(self._frontiers.min())
        if least - self._lateness > watermark and least > BEFORE_ALL:
            self._watermark[0] = least - self._lateness
        return True

    def _behind_among(self, arrivals: list[Arrival]) -> Array | None:
        """Move frontiers and watermark; returns which watermark each event behind it has met.

        None if no event is behind it: that is so wherever a source is in order.
        """
        t = self._times(joined(arrivals).column(0))
        alone = self._single or len(arrivals) == 1
        if alone and is_sorted(t) and self._move_on(arrivals[0].source, int(t[0]), int(t[-1])):
            return None
        behind, limit = np.zeros(len(t), np.bool_), np.full(len(t), BEFORE_ALL)
        columns = (t, self._sources_of(arrivals), self._frontiers, self._watermark)
        arrive(*columns, self._lateness, behind, limit)
        return limit if behind.any() else None

    def _tell_apart(self, arrival: Arrival, limit: Array, steps: Steps) -> None:
        """Pass a push on of which some events are behind the watermark."""
        before, behind = self._passed_on, limit > BEFORE_ALL
        batch = joined([arrival])
        t, source = self._times(batch.column(0)), self._sources_of([arrival])
        whole = [] if arrival.whole is None else chosen_across([arrival.whole], behind)
        late = batch.filter(pa.array(behind))
        source = source if self._single else source[behind]
        self._behind.append(Behind(late, t[behind], source, limit[behind], whole))
        others = batch.filter(pa.array(~behind))
        if others.num_rows:
            # The watermark follows when the stragglers have joined what it closes.
            rest = arrival._replace(batch=others, places=None, rows=others.num_rows, push=None)
            self._pass_on([rest], rest.rows, before, steps)
        steps += self._with_stragglers(None, arrival.arrived, before)
        self._passed_on = self.watermark

    def _pass_on(self, arrivals: list[Arrival], rows: int, watermark: int, steps: Steps) -> None:
        ending = next((a for a in arrivals if a.due), arrivals[0])
        reading = Reading(self, arrivals)
        steps.append(Unread(reading, rows, len(arrivals), watermark, ending.arrived))
        self._passed_on = watermark

    def read(self, arrivals: list[Arrival]) -> ReadEvents:
        """Events with key codes and columns; any thread may call this."""
        batch = joined(arrivals)
        run = SortedRun(batch, self._times(batch.column(0)), self._sources_of(arrivals))
        ends = np.cumsum([arrival.rows for arrival in arrivals])
        return ReadEvents(self._read(run, self.keys.encode(batch), arrivals[0].arrived), ends)


@dataclass(frozen=True, eq=False)
class Reading:
    """Reads what was pushed."""

    front: UnorderedFront
    arrivals: list[Arrival]

    def __call__(self) -> ReadEvents:
        return self.front.read(self.arrivals)
