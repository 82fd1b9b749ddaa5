"""Agnostic workers: an emitter finds complete windows, and workers compute them.

Sections 3 and 4.3 and algorithm 4 of Mencagli et al., "Harnessing Sliding-Window Execution
Semantics for Parallel Stream Processing". The emitter keeps events in a window buffer that workers
read at the same time (`closing/event_log.py`), and decides which windows are complete
(`closing/finders.py`). It hands them out on demand: a worker that is done says so and gets the next
ones; if no worker is ready, they wait. So every kind of window can be served, and windows of very
different sizes keep all workers busy.

A worker gets windows as ranges of slots, reads their events from the buffer, and computes them
(`closing/answering.py`). Functions of whole windows see the events in place; incremental ones are
folded, and overlapping windows of one descriptor share what was folded. How windows are dealt out
depends on the windows alone, so results do not depend on the number of workers.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from paneflow.aggregates.aggregate import Kinds
from paneflow.engines.multicore.closing.answering import Closed, answered
from paneflow.engines.multicore.closing.event_log import EventLog
from paneflow.engines.multicore.closing.finders import Extents
from paneflow.engines.multicore.closing.opening import finders
from paneflow.engines.multicore.contract import Batch, Pauses, Rows
from paneflow.engines.multicore.threads.unit import Crew
from paneflow.engines.multicore.tuning import tuning
from paneflow.engines.multicore.workers.farm import (
    Farm,
    Gathering,
    PartOfMessage,
    Worker,
    refused_window,
)

if TYPE_CHECKING:
    from paneflow.query import Query


@dataclass(frozen=True, eq=False)
class Descriptor(PartOfMessage):
    """Windows for one worker, with the pieces of the buffer that hold their events.

    Pieces never change, and are freed when neither the buffer nor a descriptor refers to them.
    """

    closed: Closed


class Schedule:
    """Hands descriptors to workers that are ready, in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Descriptor] = deque()
        self._ready: deque[AgnosticWorker] = deque()

    def send(self, descriptor: Descriptor) -> None:
        """Give windows to a worker that is ready, or keep them for the next one that is."""
        with self._lock:
            if self._ready:
                self._ready.popleft().inbox.put(descriptor)
            else:
                self._waiting.append(descriptor)

    def feedback(self, worker: AgnosticWorker) -> None:
        """Note that a worker is ready, and give it what waits, if anything does."""
        with self._lock:
            if self._waiting:
                worker.inbox.put(self._waiting.popleft())
            else:
                self._ready.append(worker)


class AgnosticWorker(Worker[Descriptor]):
    """A PU that computes the windows it gets."""

    def __init__(
        self,
        crew: Crew,
        rank: int,
        pauses: Pauses | None,
        query: Query,
        schedule: Schedule,
        gathering: Gathering,
    ) -> None:
        super().__init__(crew, rank, pauses, gathering, ahead=1)
        self._schedule = schedule
        self._query = query
        self._labels = sorted(query.windows)
        schedule.feedback(self)

    def step(self) -> bool:
        worked = super().step()
        if worked:
            self._schedule.feedback(self)
        return worked

    def work(self, given: Descriptor) -> list[Rows]:
        closed = given.closed
        name = self._labels[closed.windows.label]
        rows = answered(self._query, name, closed, given.arrived, "auto")
        self.counts["tuples"] += len(closed.key)
        self.counts["window_updates"] += int((closed.windows.hi - closed.windows.lo).sum())
        self.counts["results"] += len(rows)
        return [rows]


class Agnostic(Farm):
    """The agnostic worker model."""

    name: ClassVar[str] = "agnostic"

    @classmethod
    def refuses(cls, query: Query, kinds: Kinds) -> str | None:
        return refused_window(query)

    def __init__(
        self, query: Query, kinds: Kinds, workers: int, pauses: Pauses | None = None
    ) -> None:
        super().__init__(query, kinds)
        self._buffer = EventLog()
        labels = {label: k for k, label in enumerate(sorted(query.windows))}
        self._finders = finders(query.windows, labels, self._buffer)
        read = [c for a in query.aggregates.values() for c in a.columns]
        self._columns = list(dict.fromkeys([query.time, *read]))
        self._schedule = Schedule()
        for rank in range(workers):
            AgnosticWorker(
                self._crew,
                rank,
                pauses,
                query,
                self._schedule,
                self._gathering,
            )
        self._start()

    @property
    def buffer(self) -> EventLog:
        """The events that the emitter keeps and workers read."""
        return self._buffer

    def _emit(self, events: Batch | None, watermark: int, passed: int) -> None:
        if events is not None:
            first = self._buffer.take(events, events.given.select(self._columns))
            for finder in self._finders:
                finder.take(events, first)
            return
        found = [f for finder in self._finders if (f := finder.advance(watermark)) is not None]
        pieces = [piece for extents in found for piece in self._cut(extents)]
        seq = self._gathering.expect(len(pieces), self._arrived, passed)
        for piece in pieces:
            closed = Closed.of(piece, self._buffer)
            self._schedule.send(Descriptor(seq, self._arrived, closed))
        for finder in self._finders:
            finder.settle()
        self._buffer.settle(self._finders)

    def _cut(self, windows: Extents) -> list[Extents]:
        """Windows in parts of about equally many events."""
        before = np.append(0, np.cumsum(windows.hi - windows.lo))
        total = int(before[-1])
        size = min(max(total // tuning.descriptors, tuning.least_described), tuning.most_described)
        marks = np.searchsorted(before, np.arange(size, total, size))
        edges = np.unique(np.concatenate([[0], marks, [len(windows)]])).tolist()
        return [windows.between(a, b) for a, b in itertools.pairwise(edges)]
