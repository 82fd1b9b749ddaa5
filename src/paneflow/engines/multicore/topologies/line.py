"""PUs in a line: events travel from left to right, result sets from right to left.

Chapter 5 of the thesis. An event visits every PU, and each PU updates those windows that it is
responsible for. The rightmost PU is the last to see an event, so it knows when all PUs are done
with the windows that the event has ended, and sends a result set back through the line. The result
set never waits on its way: every PU to the left has already processed the event.
"""

from __future__ import annotations

import itertools
from typing import ClassVar

from paneflow.engines.multicore.contract import Pauses
from paneflow.engines.multicore.threads.ring import Ring
from paneflow.engines.multicore.threads.unit import Crew
from paneflow.engines.multicore.topologies.collecting import Responsible
from paneflow.engines.multicore.topologies.parts.messages import Work
from paneflow.engines.multicore.topologies.parts.question import Question
from paneflow.engines.multicore.topologies.topology import Topology, under_way


class LineUnit(Responsible):
    """A PU of a line. Subclasses say which windows it is responsible for."""

    def __init__(
        self, crew: Crew, rank: int, pauses: Pauses | None, question: Question, workers: int
    ) -> None:
        super().__init__(crew, rank, pauses, question, workers)
        self.tuples: Ring[Work] = Ring(under_way(workers), self.bell)
        self.right: LineUnit | None = None

    @property
    def depth(self) -> int:
        return len(self.tuples) + len(self.sets)

    def step(self) -> bool:
        # Result sets first: they are older than any event that waits here.
        found = self.sets.take()
        if found is not None:
            self.pass_on(found)
            return True
        work = self.tuples.take()
        if work is None:
            return self.close_after_failure()
        self.counts["tuples"] += len(work)
        if self.right is not None:
            self.right.tuples.put(work)
            self.counts["forwarded"] += len(work)
            self.pause()
        if self.attempt(work.seq, lambda: self.contribute(work)):
            self.make_result_set(work)
        self.applied_one()
        return True


class Line(Topology):
    """The topology of the Handshake and the Round-Robin approach."""

    unit: ClassVar[type[LineUnit]]

    def _wire(self, workers: int, pauses: Pauses | None) -> None:
        units = [
            self.unit(self._crew, rank, pauses, self._question, workers) for rank in range(workers)
        ]
        for left, right in itertools.pairwise(units):
            left.right, right.left = right, left
        self._first = units[0]

    def _send(self, work: Work) -> None:
        self._room.wait(self._check_open)
        for unit in self._crew.units:
            self._room.sent(unit.rank)
        self._first.tuples.put(work)
