"""A front that puts nothing in order: events go on as they were pushed, to be read by workers.

Partials that commute need no order, so events do not wait for the watermark, nor for other sources.
Only times are looked at here, to move the watermark and to find events behind it. These are the few
that have to be told apart: some join windows that are open, others are late (`stragglers.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
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

    def __init__(
        self, query: Query, schema: pa.Schema, sources: int, *, apart: bool, workers: int
    ) -> None:
        """`apart`: pushes are told apart, because floats are added in the order of pushes."""
        super().__init__(query, schema, sources)
        self._apart = apart
        self._shares = workers
        self._passed_on = BEFORE_ALL
        """The last watermark that was returned."""

    def take_unread(self, arrivals: list[Arrival]) -> Steps:
        """Take in what has arrived; returns what to feed, and watermarks, in order."""
        steps: Steps = []
        parts: list[UnreadPart] = []
        # All workers get about as much, and not so much that they wait for each other.
        each = min(sum(arrival.rows for arrival in arrivals) // self._shares, tuning.cut_at_once)
        for several in self._grouped(arrivals):
            reached = self.watermark
            part = self._let_in_unread(several)
            if part is not None:
                parts.append(part)
                if sum(len(part.t) for part in parts) >= max(each, tuning.cut_least):
                    self._pass_on(parts, self.watermark, steps)
                    parts = []
                continue
            if parts:
                self._pass_on(parts, reached, steps)
                parts = []
            for arrival in several:
                self._take_one(arrival, steps)
        if parts:
            self._pass_on(parts, self.watermark, steps)
        return steps

    def _grouped(self, arrivals: list[Arrival]) -> Iterator[list[Arrival]]:
        """Short pushes together: to join them here is a copy, but takes fewer steps."""
        several: list[Arrival] = []
        rows = 0
        for arrival in arrivals:
            alone = arrival.batch is None or arrival.source in self._asleep
            if several and (alone or rows + arrival.rows > tuning.looked_at_together):
                yield several
                several, rows = [], 0
            several.append(arrival)
            rows = tuning.looked_at_together if alone else rows + arrival.rows
        if several:
            yield several

    def _take_one(self, arrival: Arrival, steps: Steps) -> None:
        """Take in a push of which some events are behind the watermark, or no push."""
        if arrival.batch is None:
            self._pass_over(arrival)
            if self.watermark > self._passed_on:
                steps.append(self.watermark)
                self._passed_on = self.watermark
            return
        part = self._part([arrival])
        limit = self._behind_among(part)
        if limit is None:
            self._pass_on([part], self.watermark, steps)
        else:
            self._tell_apart(part, limit, steps)

    def _let_in_unread(self, arrivals: list[Arrival]) -> UnreadPart | None:
        """Pushes to be read together, none of them behind the watermark; else nothing changes."""
        if arrivals[0].batch is None:
            return None
        source = arrivals[0].source
        if source in self._asleep:
            self._frontiers[source] = self._asleep.pop(source)
        before = self._frontiers.copy(), self._watermark.copy()
        part = self._part(arrivals)
        if self._behind_among(part) is None:
            return part
        self._frontiers, self._watermark = before
        return None

    def _part(self, arrivals: list[Arrival]) -> UnreadPart:
        whole = arrivals[0]
        if len(arrivals) > 1:
            batch = joined(arrivals)
            whole = whole._replace(batch=batch, places=None, rows=batch.num_rows)
        assert whole.batch is not None
        t = self._times(whole.batch.column(0 if whole.places is None else whole.places[0]))
        source = np.zeros(0, np.int64)
        if not self._single:
            source = np.repeat([a.source for a in arrivals], [a.rows for a in arrivals])
        return UnreadPart(arrivals, whole, t, source)

    def _behind_among(self, part: UnreadPart) -> Array | None:
        """Move frontiers and watermark; returns which watermark each event behind it has met.

        None if no event is behind it: that is so wherever a source is in order.
        """
        t, source = part.t, part.arrivals[0].source
        alone = self._single or len(part.arrivals) == 1
        if alone and t[0] >= self.watermark and is_sorted(t):
            self._frontiers[source] = max(self._frontiers[source], t[-1])
            least = int(self._frontiers.min())
            if least > BEFORE_ALL:
                self._watermark[0] = max(self.watermark, least - self._lateness)
            return None
        behind, limit = np.zeros(len(t), np.bool_), np.full(len(t), BEFORE_ALL)
        columns = (t, part.source, self._frontiers, self._watermark)
        arrive(*columns, self._lateness, behind, limit)
        return limit if behind.any() else None

    def _tell_apart(self, part: UnreadPart, limit: Array, steps: Steps) -> None:
        """Pass a push on of which some events are behind the watermark."""
        (arrival,) = part.arrivals
        before, behind = self._passed_on, limit > BEFORE_ALL
        batch = joined([arrival])
        whole = [] if arrival.whole is None else chosen_across([arrival.whole], behind)
        source = part.source if self._single else part.source[behind]
        late = batch.filter(pa.array(behind))
        self._behind.append(Behind(late, part.t[behind], source, limit[behind], whole))
        others = batch.filter(pa.array(~behind))
        if others.num_rows:
            # The watermark follows when the stragglers have joined what it closes.
            rest = arrival._replace(batch=others, places=None, rows=others.num_rows)
            self._pass_on([self._part([rest])], before, steps)
        steps += self._with_stragglers(None, arrival.arrived, before)
        self._passed_on = self.watermark

    def _pass_on(self, parts: list[UnreadPart], watermark: int, steps: Steps) -> None:
        arrivals = [arrival for part in parts for arrival in part.arrivals]
        ending = next((a for a in arrivals if a.due), arrivals[0])
        ends = np.cumsum([arrival.rows for arrival in arrivals])
        reading = Reading(self, parts, ends if self._apart else ends[-1:], ending.arrived)
        steps.append(Unread(reading, int(ends[-1]), watermark, ending.arrived))
        self._passed_on = watermark

    def read(self, reading: Reading) -> ReadEvents:
        """Events with key codes and columns; any thread may call this."""
        parts = reading.parts
        batch = joined([part.whole for part in parts])
        source = np.concatenate([part.source for part in parts])
        run = SortedRun(batch, self._times(batch.column(0)), source)
        return ReadEvents(self._read(run, self.keys.encode(batch), reading.arrived), reading.ends)


@dataclass(frozen=True, eq=False)
class UnreadPart:
    """What one push brought, or several short ones."""

    arrivals: list[Arrival]
    whole: Arrival
    """All of them as one."""
    t: Array
    source: Array
    """The source of each event; empty if there is only one."""


@dataclass(frozen=True, eq=False)
class Reading:
    """Reads what was pushed."""

    front: UnorderedFront
    parts: list[UnreadPart]
    ends: Array
    arrived: float

    def __call__(self) -> ReadEvents:
        return self.front.read(self)
