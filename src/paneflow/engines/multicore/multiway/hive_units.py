"""PUs that update winsets, and one thread that gives out those which are final.

Every PU gets every message, and updates the windows of its own keys: those whose code leaves its
rank as remainder. So the events of a key are folded in one order, by one thread, for any number of
PUs. The output belongs to the thread that takes rows: in a stream, the stream thread.
"""

from __future__ import annotations

import os
import threading
import time
from abc import abstractmethod
from collections import deque
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from paneflow.aggregates.aggregate import Kinds
from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.completeness import no_rows
from paneflow.engines.multicore.contract import Batch, Pauses, Rows, stopped
from paneflow.engines.multicore.multiway.hive import Hive
from paneflow.engines.multicore.threads.ring import Ring
from paneflow.engines.multicore.threads.unit import Crew, Failure, Unit
from paneflow.engines.multicore.ticks import AFTER_ALL, BEFORE_ALL
from paneflow.engines.multicore.topologies.parts.messages import Work
from paneflow.engines.multicore.topologies.parts.question import Inputs, Question
from paneflow.engines.multicore.topologies.topology import Topology, under_way
from paneflow.slicing.columns import Column
from paneflow.windows import Sliding

if TYPE_CHECKING:
    from paneflow.query import Query


class HiveUnit(Unit):
    """A PU that updates winsets in hives."""

    def __init__(
        self, crew: Crew, rank: int, pauses: Pauses | None, hives: Hives, workers: int
    ) -> None:
        super().__init__(crew, rank, pauses)
        self.inbox: Ring[Work] = Ring(under_way(workers), self.bell)
        self._hives = hives
        self._share = rank, workers

    @property
    def depth(self) -> int:
        return len(self.inbox)

    def step(self) -> bool:
        work = self.inbox.take()
        if work is None:
            return False
        self.attempt(work.seq, lambda: self._update(work))
        self.applied_one()
        self._end_after(work)
        return True

    def _update(self, work: Work) -> None:
        self.counts["tuples"] += len(work)
        if work.events is not None:
            updated = self._hives.update(self.rank, work, self._share)
            self.counts["windows_found"] += updated
            self.counts["window_updates"] += updated
        self._hives.passes(self.rank, work.limit)

    def _end_after(self, work: Work) -> None:
        """See to it that threads end after a failure, and that the end of the stream is noted."""
        failure = self.crew.failure
        if failure is not None:
            if all(unit.applied > failure.seq for unit in self.crew.units):
                self.crew.stop()
        elif work.final and all(unit.applied > work.seq for unit in self.crew.units):
            self.crew.finished = True
        self.crew.feeder.ring()


class Hives:
    """The hives of a query, and what is given out of them."""

    @abstractmethod
    def __init__(self, question: Question, query: Query, kinds: Kinds, writers: int) -> None: ...

    @abstractmethod
    def update(self, writer: int, work: Work, share: tuple[int, int]) -> int:
        """Add the events of a message; returns how many windows were updated."""

    @abstractmethod
    def passes(self, writer: int, limit: int) -> None:
        """The writer will update no window any more that ends by a limit."""

    @abstractmethod
    def rows(self, works: list[Work]) -> list[Rows]:
        """The windows that are final once all writers have processed some messages, in order."""


class HiveStrategy(Topology):
    """PUs around hives."""

    hives: ClassVar[type[Hives]]

    @classmethod
    def refuses(cls, query: Query, kinds: Kinds) -> str | None:
        for label, window in query.windows.items():
            if not isinstance(window, Sliding):
                return (
                    f"window {label!r} ({window}) is not a time window: a winset holds the windows "
                    f"of all keys over one interval of time; use another strategy"
                )
        return super().refuses(query, kinds)

    def __init__(
        self,
        query: Query,
        kinds: Kinds,
        workers: int,
        pauses: Pauses | None = None,
        sources: int = 0,
    ) -> None:
        """`sources`: how many pushing threads update windows themselves, by `update`."""
        self._query = query
        self._pushing = range(workers, workers + sources)
        """The writers that are pushing threads."""
        self._cores = threading.Semaphore(os.cpu_count() or 1)
        self._arrived: float | None = None
        super().__init__(query, kinds, workers, pauses)

    def update(self, source: int, key: Array, t: Array, columns: dict[str, Column]) -> None:
        """Update windows in the thread that pushes to a source.

        More threads than cores would only push each other's windows out of the cache.
        """
        if self._crew.stopped or self._crew.finished:
            raise stopped(self.name)
        self._arrived = time.perf_counter()
        events = Inputs(self._question, key, t, t, columns)
        work = Work(-1, 0, 0, self._arrived, events)
        with self._cores:
            try:
                self._hives.update(self._pushing[source], work, (0, 1))
            except Exception as error:  # some of the events may be in windows
                self._crew.fail(Failure(0, error, -1))
                self._crew.stop()
                raise

    def feed(self, batch: Batch) -> None:
        if len(batch) and not batch.behind:
            self._pass(int(batch.t[-1]))
        super().feed(batch)

    def advance(self, watermark: int) -> None:
        self._pass(watermark)
        if self._arrived is not None:
            self._arrivals.note(self._arrived)
        super().advance(watermark)

    def finish(self) -> None:
        self._pass(AFTER_ALL)
        super().finish()

    def _pass(self, limit: int) -> None:
        """No pushing thread will update a window any more that ends by a limit."""
        for writer in self._pushing:
            self._hives.passes(writer, limit)

    def _wire(self, workers: int, pauses: Pauses | None) -> None:
        writers = workers + len(self._pushing)
        self._hives = self.hives(self._question, self._query, self._question.kinds, writers)
        self._sent: deque[Work] = deque()
        for rank in range(workers):
            HiveUnit(self._crew, rank, pauses, self._hives, workers)

    def _send(self, work: Work) -> None:
        self._room.wait(self._check_open)
        self._sent.append(work)
        for unit in self._crew.units:
            assert isinstance(unit, HiveUnit)
            self._room.sent(unit.rank)
            unit.inbox.put(work)

    def take(self) -> list[Rows]:
        crew = self._crew
        done = min(unit.applied for unit in crew.units)
        if crew.failure is not None:
            done = min(done, crew.failure.seq)
        works = []
        while self._sent and self._sent[0].seq < done:
            works.append(self._sent.popleft())
        if not works:
            return []
        try:
            rows = self._hives.rows(works)
        except Exception as error:
            crew.fail(Failure(0, error, works[0].seq))
            crew.stop()
            return []
        last = works[-1]
        crew.units[0].counts["results"] += sum(map(len, rows))
        return [*rows, no_rows(last.arrived, self._question.passed(last.limit))]


def number_of(ticks: int) -> int:
    """A time as a number of 64 bits: the end of a stream lies beyond all of them."""
    return max(BEFORE_ALL, min(ticks, AFTER_ALL))


def hive_of(question: Question, window: Sliding, writers: int) -> Hive:
    """A hive whose winsets are the windows of one label."""
    span = window.range.value, window.slide.value, window.offset.value
    return Hive(question, writers, window.edges, span)


def labels(label: int, n: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """The same label for so many rows."""
    return np.full(n, label, np.int32)
