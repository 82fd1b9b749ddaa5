"""The Round-Robin-Cyclic approach (RRCA, chapter 8 of the thesis): windows in turn, on a ring.

The ring and its rules are those of the Hash-Once approach. The window's number says which PU is
responsible for it, as in the Round-Robin approach.
"""

from __future__ import annotations

from typing import ClassVar

from paneflow.engines.multicore.topologies.cycle import Cycle, CycleUnit, Round
from paneflow.engines.multicore.topologies.round_robin import InTurn


class RoundRobinCyclicUnit(InTurn, CycleUnit):
    """A PU of a ring that is responsible for every P-th window."""

    def contribute_round(self, message: Round) -> None:
        self.contribute(message.work)


class RoundRobinCyclic(Cycle):
    """RRCA."""

    name: ClassVar[str] = "round_robin_cyclic"
    unit: ClassVar[type[CycleUnit]] = RoundRobinCyclicUnit
