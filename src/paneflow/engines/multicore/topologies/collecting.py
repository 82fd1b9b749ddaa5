"""PUs with open windows, and result sets that travel through them from right to left.

This is common to chapters 5 to 8 of the thesis: whichever way events travel, they contribute to the
windows that a PU is responsible for, and result sets collect windows as they end.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.contract import Pauses
from paneflow.engines.multicore.threads.ring import Ring
from paneflow.engines.multicore.threads.unit import Crew, Unit
from paneflow.engines.multicore.topologies.parts.cells import Cells
from paneflow.engines.multicore.topologies.parts.messages import Work
from paneflow.engines.multicore.topologies.parts.question import Question, Span
from paneflow.engines.multicore.topologies.parts.result_sets import Expiry, ResultSet
from paneflow.engines.multicore.topologies.topology import under_way
from paneflow.engines.multicore.tuning import tuning


class CollectingUnit(Unit):
    """A PU through which result sets travel from right to left."""

    def __init__(
        self, crew: Crew, rank: int, pauses: Pauses | None, question: Question, workers: int
    ) -> None:
        super().__init__(crew, rank, pauses)
        self.question = question
        self.workers = workers
        self.sets: Ring[ResultSet] = Ring(2 * under_way(workers) * workers, self.bell)
        self.left: CollectingUnit | None = None
        self._closed = False

    @property
    def rightmost(self) -> bool:
        return self.rank == self.workers - 1

    def close_after_failure(self) -> bool:
        """Send the very last result set once everything before a failure has been processed."""
        failure = self.crew.failure
        if failure is None or not self.rightmost or self.applied < failure.seq or self._closed:
            return False
        self._closed = True
        self.pass_on(ResultSet(Work(failure.seq, 0, 0, 0.0), closing=True))
        return True

    def pass_on_before(self, number: int) -> bool:
        """Pass on the next result set if it belongs to a message before this number, or is broken.

        Returns whether it was passed on.
        """
        found = self.sets.head
        if found is None or not (found.work.seq < number or self.crew.broken(found.work.seq)):
            return False
        self.sets.take()
        self.pass_on(found)
        return True

    def pass_on(self, found: ResultSet) -> None:
        """Add this PU's expired windows to the result set, then forward or emit it."""
        if not found.closing and not self.attempt(found.work.seq, lambda: self.collect(found)):
            self.strand(found)
            return
        if self.left is not None:
            self.left.sets.put(found)
        elif found.closing:
            self.crew.stop()
        else:
            self._give_out(found)

    def strand(self, found: ResultSet) -> None:
        """Drop a result set that comes with or after a failure."""

    @abstractmethod
    def collect(self, found: ResultSet) -> None:
        """Add what this PU has of the windows that a result set collects."""

    def _give_out(self, found: ResultSet) -> None:
        if found.windows or self.question.by_count:
            self.crew.output.append(found.rows(self.question))
        if found.work.final:
            self.crew.finished = True
            self.crew.feeder.ring()


class Holder(CollectingUnit):
    """A PU that keeps the open windows it is responsible for."""

    def __init__(
        self, crew: Crew, rank: int, pauses: Pauses | None, question: Question, workers: int
    ) -> None:
        super().__init__(crew, rank, pauses, question, workers)
        self.cells = [Cells(question, span.by_count) for span in question.spans]
        self._expiry = Expiry(question)
        self._which, self._numbers = (np.empty(tuning.pairs, np.int64) for _ in range(2))

    def make_result_set(self, work: Work) -> None:
        """Create a result set if a window has ended; only the rightmost PU checks every event."""
        if self.rightmost:
            self.counts["result_checks"] += len(work)
            if self._expiry.due(work):
                self.sets.put(ResultSet(work))

    def collect(self, found: ResultSet) -> None:
        self.counts["result_sets"] += 1
        for span, cells in zip(self.question.spans, self.cells, strict=True):
            self.counts["results"] += found.collect(self.question, span, cells)

    def pairs(self, most: int) -> tuple[Array, Array, int]:
        """Room for pairs, which is reused, and the number of events or panes that fit."""
        if most > len(self._which):
            self._which, self._numbers = (np.empty(most, np.int64) for _ in range(2))
        return self._which, self._numbers, len(self._which) // most


class Sought(NamedTuple):
    """Some events of a message, and room for the pairs of event and window that a PU finds."""

    span: Span
    key: Array
    ticks: Array
    start: int
    end: int
    which: Array
    """For each pair, the event's place in the message."""
    numbers: Array
    """For each pair, the number of the window."""


class Responsible(Holder):
    """A PU that can tell on its own which windows of an event it is responsible for."""

    def contribute(self, work: Work) -> None:
        """Add events to the windows that this PU is responsible for."""
        if work.events is None:
            return
        for span, cells in zip(self.question.spans, self.cells, strict=True):
            which, numbers, step = self.pairs(span.most)
            ticks, still_open = work.ticks(span), work.open(span)
            for start in range(0, len(ticks), step):
                end = min(start + step, len(ticks))
                found = self.responsible(
                    Sought(still_open, work.events.key, ticks, start, end, which, numbers)
                )
                self.counts["windows_found"] += found
                self.counts["window_updates"] += cells.absorb(
                    work.events, which[:found], numbers[:found]
                )

    @abstractmethod
    def responsible(self, sought: Sought) -> int:
        """List this PU's windows of some events; how many pairs of event and window there are."""
