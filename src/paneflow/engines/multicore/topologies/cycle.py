"""PUs in a ring, each with an input of its own: chapters 7 and 8 of the thesis.

Messages enter the ring in turn, message n at PU n mod P, and visit every PU clockwise, so all PUs
share the work that is done where an event enters. Two queues meet at each PU: the *data stream
queue* of messages that enter here, and the *previous PU queue*. Four rules say which one is taken
from (section 7.1):

1. both are empty: wait;
2. only the previous PU's has a message: wait for what enters here, which may be earlier;
3. only the data stream's has a message: take it;
4. both have one: take the earlier message.

Where the thesis compares timestamps, messages are compared by their numbers, which order equal
times as well. Because messages enter in turn, a PU knows the number of the next one that will
enter here, even while its queue is empty, and waits by rule 2 only if that number is lower. So no
PU starves its neighbours.

A message that reaches the last PU on its way cannot be followed by an earlier one: its number
becomes that PU's *safe number* (the safe timestamp of the thesis), up to which all messages have
arrived. Events are forwarded at once, but contribute to windows only when they are safe, and then
in total order. So unlike in the thesis, a ring also serves aggregates that depend on the order of
events. Result sets travel counterclockwise, and wait at each PU until it has come as far as they.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from paneflow.engines.multicore.contract import Pauses
from paneflow.engines.multicore.threads.ring import Ring
from paneflow.engines.multicore.threads.unit import Crew
from paneflow.engines.multicore.topologies.collecting import Holder
from paneflow.engines.multicore.topologies.parts.messages import Work
from paneflow.engines.multicore.topologies.parts.question import Question
from paneflow.engines.multicore.topologies.topology import Topology, under_way


@dataclass(frozen=True, eq=False)
class Round:
    """A message on its way round the ring, with what the PU at which it entered adds to it."""

    work: Work
    added: Any = None


class CycleUnit(Holder):
    """A PU of a ring."""

    def __init__(
        self, crew: Crew, rank: int, pauses: Pauses | None, question: Question, workers: int
    ) -> None:
        super().__init__(crew, rank, pauses, question, workers)
        # Dummies come in addition to the messages under way.
        self.stream: Ring[Work] = Ring(under_way(workers) + 2 * workers, self.bell)
        self.previous: Ring[Round] = Ring(under_way(workers) + 2 * workers, self.bell)
        self.successor: CycleUnit = self
        self._next_here = rank
        self._safe = -1
        self._received: dict[int, Round] = {}

    @property
    def depth(self) -> int:
        return len(self.stream) + len(self.previous) + len(self.sets)

    def step(self) -> bool:
        if self.pass_on_before(self.applied):
            return True
        message = self._choose()
        if message is None:
            return self.close_after_failure()
        self._received[message.work.seq] = message
        self.counts["tuples"] += len(message.work)
        if self.rank != (message.work.seq - 1) % self.workers:
            self.successor.previous.put(message)
            self.counts["forwarded"] += len(message.work)
            self.pause()
        else:
            self._safe = message.work.seq
        while self.applied <= self._safe:
            self._apply(self._received.pop(self.applied))
        return True

    def _choose(self) -> Round | None:
        """The four rules."""
        here, there = self.stream.head, self.previous.head
        if there is not None and there.work.seq < self._next_here:
            return self.previous.take()
        if here is None:
            return None
        self.stream.take()
        self._next_here += self.workers
        return self.enter(here)

    def _apply(self, message: Round) -> None:
        work = message.work
        if self.attempt(work.seq, lambda: self.contribute_round(message)):
            self.make_result_set(work)
        self.applied_one()

    def enter(self, work: Work) -> Round:
        """Do what is done where a message enters the ring."""
        return Round(work)

    @abstractmethod
    def contribute_round(self, message: Round) -> None:
        """Add events to this PU's windows."""


class Cycle(Topology):
    """The topology of the Hash-Once and the Round-Robin-Cyclic approach."""

    prompt: ClassVar[bool] = False
    unit: ClassVar[type[CycleUnit]]

    def _wire(self, workers: int, pauses: Pauses | None) -> None:
        units = [
            self.unit(self._crew, rank, pauses, self._question, workers) for rank in range(workers)
        ]
        for rank, unit in enumerate(units):
            unit.successor = units[(rank + 1) % workers]
            unit.left = units[rank - 1] if rank else None
        self._units = units

    def advance(self, watermark: int) -> None:
        self._check_open()
        work = self._arrivals.watermark(watermark)
        if work is not None:
            self._deliver(work)
            self._settle()
            self._crew.help()

    def finish(self) -> None:
        self._check_open()
        self._deliver(self._arrivals.end())
        self._settle()
        self._crew.help()
        self._await_end()

    def _settle(self) -> None:
        """Send a dummy to every other PU, which makes everything safe that was sent before.

        Otherwise the last messages would wait for others to follow them.
        """
        for _ in self._units[1:]:
            self._put(self._arrivals.dummy())

    def _send(self, work: Work) -> None:
        self._room.wait(self._check_open)
        self._put(work)

    def _put(self, work: Work) -> None:
        for unit in self._units:
            self._room.sent(unit.rank)
        self._units[work.seq % len(self._units)].stream.put(work)
