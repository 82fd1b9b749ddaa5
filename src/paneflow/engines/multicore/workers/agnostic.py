"""Agnostic workers: an emitter finds complete windows, and workers compute them.

Sections 3 and 4.3 and algorithm 4 of Mencagli et al., "Harnessing Sliding-Window Execution
Semantics for Parallel Stream Processing". The emitter keeps events in a window buffer that workers
read at the same time (`closing/event_log.py`), and decides which windows are complete
(`closing/finders.py`). It hands them out on demand: a worker that is done says so and gets the next
ones; if no worker is ready, they wait. So every kind of window can be served, and windows of very
different sizes keep all workers busy.

A worker gets windows as lists of slots, reads their events from the buffer, and computes every
aggregate of each window from its events alone. This suits functions of whole windows; overlapping
windows share nothing.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from paneflow.aggregates.aggregate import Kinds
from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.closing.event_log import EventLog
from paneflow.engines.multicore.closing.finders import Extents
from paneflow.engines.multicore.closing.opening import finders
from paneflow.engines.multicore.contract import Batch, Pauses, Result, Rows
from paneflow.engines.multicore.stores.joined_batches import JoinedBatches
from paneflow.engines.multicore.threads.ring import Ring
from paneflow.engines.multicore.threads.unit import Crew, Unit
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.engines.multicore.tuning import tuning
from paneflow.engines.multicore.workers.farm import Farm, Gathering, refused_window
from paneflow.engines.table import answer
from paneflow.windows import tumbling

if TYPE_CHECKING:
    from paneflow.query import Query

ORDINAL, MOMENT = "\0window", "\0moment"


@dataclass(frozen=True, eq=False)
class Descriptor:
    """Windows for one worker, and the pieces of the buffer with their events.

    Pieces never change, and are freed when neither the buffer nor a descriptor refers to them.
    """

    seq: int
    windows: Extents
    pieces: JoinedBatches
    arrived: float


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


class AgnosticWorker(Unit):
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
        super().__init__(crew, rank, pauses)
        self.inbox: Ring[Descriptor] = Ring(1, self.bell)
        self._schedule = schedule
        self._gathering = gathering
        self._names = list(dict.fromkeys(c for a in query.aggregates.values() for c in a.columns))
        # The events of a window, with its ordinal as key, are a table with one result row.
        self._whole = type(query)(tumbling(1), query.aggregates, ORDINAL, MOMENT)
        schedule.feedback(self)

    @property
    def depth(self) -> int:
        return len(self.inbox)

    def step(self) -> bool:
        given = self.inbox.take()
        if given is None:
            return False
        rows: list[Rows] = []
        self.attempt(given.seq, lambda: rows.append(self._work(given)))
        self._gathering.put(given.seq, rows)
        self.applied_one()
        self._schedule.feedback(self)
        return True

    def _work(self, given: Descriptor) -> Rows:
        windows = given.windows
        slots, places = np.unique(_slots(windows), return_inverse=True)
        batch = given.pieces.gather(slots).take(pa.array(places))
        events = pa.Table.from_batches([batch]).select(self._names)
        sizes = windows.hi - windows.lo
        events = events.append_column(
            ORDINAL, pa.array(np.repeat(np.arange(len(windows)), sizes))
        ).append_column(MOMENT, pa.array(np.zeros(int(sizes.sum()), np.int64)))
        rows = answer(self._whole, events).combine_chunks()
        self.counts["tuples"] += events.num_rows
        self.counts["window_updates"] += events.num_rows
        self.counts["results"] += len(windows)
        return Rows(
            np.full(len(windows), windows.label, np.int32),
            windows.key,
            windows.seq,
            windows.start,
            windows.end,
            {name: Result(_array(rows.column(name)), None) for name in self._whole.aggregates},
            given.arrived,
            BEFORE_ALL,
        )


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
            mine = piece.slots[piece.lo[0] : piece.hi[-1]]
            lent = self._buffer.lent(int(mine.min()), int(mine.max()))
            self._schedule.send(Descriptor(seq, piece, lent, self._arrived))
        for finder in self._finders:
            finder.settle()
        self._buffer.settle(self._finders)

    def _cut(self, windows: Extents) -> list[Extents]:
        """Windows in parts of about equally many events."""
        before = np.append(0, np.cumsum(windows.hi - windows.lo))
        total = int(before[-1])
        even = total // (tuning.descriptors_per_worker * len(self._crew.units))
        size = min(max(even, tuning.least_described), tuning.most_described)
        marks = np.searchsorted(before, np.arange(size, total, size))
        edges = np.unique(np.concatenate([[0], marks, [len(windows)]])).tolist()
        return [windows.between(a, b) for a, b in itertools.pairwise(edges)]


def _slots(windows: Extents) -> Array:
    """The slots of the events of all windows, window by window."""
    sizes = windows.hi - windows.lo
    starts = np.cumsum(sizes) - sizes
    places = np.arange(int(sizes.sum())) - np.repeat(starts - windows.lo, sizes)
    slots: Array = windows.slots[places]
    return slots


def _array(column: pa.ChunkedArray) -> pa.Array:
    merged = column.combine_chunks()
    return merged.combine_chunks() if isinstance(merged, pa.ChunkedArray) else merged
