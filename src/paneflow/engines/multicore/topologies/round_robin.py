"""The Round-Robin approach (RRA, chapter 6 of the thesis): a line without hash operations.

Window w belongs to PU w mod P. A PU computes its windows of an event (pseudocode 3 of the thesis):
neighbouring windows of one PU are P slides apart, which the thesis calls its local window advance.
"""

from __future__ import annotations

from typing import ClassVar

from paneflow.engines.multicore.threads.short_loops import Loop
from paneflow.engines.multicore.topologies.collecting import Responsible, Sought
from paneflow.engines.multicore.topologies.line import Line, LineUnit


@Loop
def every_pth(ticks, start, end, span, rank, workers, which, numbers):  # type: ignore[no-untyped-def]
    """List pairs of event and window, for every P-th window; return how many there are."""
    reach, slide, offset, lowest = span
    found = 0
    for i in range(start, end):
        since = ticks[i] - offset
        first = max((since - reach) // slide + 1, lowest)
        first += (rank - first) % workers
        for window in range(first, since // slide + 1, workers):
            which[found] = i
            numbers[found] = window
            found += 1
    return found


class InTurn(Responsible):
    """A PU that is responsible for every P-th window."""

    def responsible(self, sought: Sought) -> int:
        span, _, ticks, start, end, which, numbers = sought
        most = (end - start) * (span.most // self.workers + 1)
        place = span.numbers, self.rank, self.workers
        found: int = every_pth(most, ticks, start, end, *place, which, numbers)
        return found


class RoundRobinUnit(InTurn, LineUnit):
    """A PU of a line that is responsible for every P-th window."""


class RoundRobin(Line):
    """RRA."""

    name: ClassVar[str] = "round_robin"
    unit: ClassVar[type[LineUnit]] = RoundRobinUnit
