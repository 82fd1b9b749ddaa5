"""Agnostic workers: an emitter finds complete windows, workers compute them, and know no more.

Sections 3 and 4.3 and algorithm 4 of Mencagli et al. The emitter keeps the events in a window
buffer that workers read (`window_buffer.py`) and decides which windows are complete
(`triggers.py`). It deals them out on demand: a worker that is done says so, and is given the next;
whatever nobody is ready for waits. So every kind of window can be served, and windows of very
different sizes keep all workers busy.

A worker gets windows as lists of slots, reads their events from the buffer, and computes every
aggregate of each window from its events alone: whole-window functions are at home here, and
nothing is shared between windows that overlap.
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
from paneflow.engines.multicore.contract import Pauses, Result, Rows
from paneflow.engines.multicore.front import Events
from paneflow.engines.multicore.passing import NEVER
from paneflow.engines.multicore.replaying import answering
from paneflow.engines.multicore.ring import Ring
from paneflow.engines.multicore.unit import Crew, Unit
from paneflow.engines.multicore.workers.farm import Farm, Gathering, refused_window
from paneflow.engines.multicore.workers.triggers import Extents, Triggers
from paneflow.engines.multicore.workers.window_buffer import Chunk, WindowBuffer, gather
from paneflow.windows import tumbling

if TYPE_CHECKING:
    from paneflow.query import Query

PIECES = 4
"""Descriptors for each worker that the windows of one step are cut into, if there are so many."""
LEAST = 2000
"""Events that a descriptor should hold, or handing it over costs more than the work."""
MOST = 2_000_000
"""Events that a descriptor may hold, unless one window has more."""
ORDINAL, MOMENT = "\0window", "\0moment"


@dataclass(frozen=True, eq=False)
class Descriptor:
    """Windows for one worker, and the chunks that their events lie in."""

    seq: int
    windows: Extents
    chunks: list[Chunk]
    arrived: float


class Schedule:
    """Deals descriptors out on demand: to workers that are ready, in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Descriptor] = deque()
        self._ready: deque[AgnosticWorker] = deque()

    def send(self, descriptor: Descriptor) -> None:
        """Give windows to a worker that is ready, or keep them for the next."""
        with self._lock:
            if self._ready:
                self._ready.popleft().inbox.put(descriptor)
            else:
                self._waiting.append(descriptor)

    def feedback(self, worker: AgnosticWorker) -> None:
        """A worker is ready: it is given what waits, if anything does."""
        with self._lock:
            if self._waiting:
                worker.inbox.put(self._waiting.popleft())
            else:
                self._ready.append(worker)


class AgnosticWorker(Unit):
    """A PU that computes the windows it is given."""

    def __init__(
        self,
        crew: Crew,
        rank: int,
        pauses: Pauses | None,
        query: Query,
        schedule: Schedule,
        buffer: WindowBuffer,
        gathering: Gathering,
    ) -> None:
        super().__init__(crew, rank, pauses)
        self.inbox: Ring[Descriptor] = Ring(1, self.bell)
        self._schedule = schedule
        self._buffer = buffer
        self._gathering = gathering
        self._names = list(dict.fromkeys(c for a in query.aggregates.values() for c in a.columns))
        # A window's events, under its ordinal as key, are a table with one row for an answer.
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
        self._buffer.unpin(given.chunks)
        self._gathering.put(given.seq, rows)
        self.applied_one()
        self._schedule.feedback(self)
        return True

    def _work(self, given: Descriptor) -> Rows:
        windows = given.windows
        events = gather(given.chunks, _slots(windows)).select(self._names)
        sizes = windows.hi - windows.lo
        events = events.append_column(
            ORDINAL, pa.array(np.repeat(np.arange(len(windows)), sizes))
        ).append_column(MOMENT, pa.array(np.zeros(int(sizes.sum()), np.int64)))
        with answering(self._whole.aggregates, events, ORDINAL):
            answer = self._whole.over(events).combine_chunks()
        self.counts["tuples"] += events.num_rows
        self.counts["window_updates"] += events.num_rows
        self.counts["results"] += len(windows)
        return Rows(
            np.full(len(windows), windows.label, np.int32),
            windows.key,
            windows.seq,
            windows.start,
            windows.end,
            {name: Result(_array(answer.column(name)), None) for name in self._whole.aggregates},
            given.arrived,
            NEVER,
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
        self._triggers = [
            Triggers(k, query.windows[label]) for k, label in enumerate(sorted(query.windows))
        ]
        self._buffer = WindowBuffer.for_windows(query.windows.values())
        self._schedule = Schedule()
        self._end = 0
        for rank in range(workers):
            AgnosticWorker(
                self._crew,
                rank,
                pauses,
                query,
                self._schedule,
                self._buffer,
                self._gathering,
            )
        self._start()

    @property
    def buffer(self) -> WindowBuffer:
        """What the emitter keeps and workers read."""
        return self._buffer

    def _emit(self, events: Events | None, watermark: int, passed: int) -> None:
        if events is not None:
            first = self._buffer.append(events.table, events.t)
            self._end = first + len(events)
            for triggers in self._triggers:
                triggers.take(events, first)
            return
        found = [f for triggers in self._triggers if (f := triggers.advance(watermark)) is not None]
        pieces = [piece for extents in found for piece in self._cut(extents)]
        seq = self._gathering.expect(len(pieces), self._arrived, passed)
        for piece in pieces:
            # The first and the last event of a window lie in its outermost slots.
            first, last = piece.slots[piece.lo].min(), piece.slots[piece.hi - 1].max()
            chunks = self._buffer.pin(int(first), int(last))
            self._schedule.send(Descriptor(seq, piece, chunks, self._arrived))
        oldest = [o for triggers in self._triggers if (o := triggers.oldest) is not None]
        self._buffer.release(min(oldest, default=self._end))

    def _cut(self, windows: Extents) -> list[Extents]:
        """Windows in pieces of about as many events each."""
        before = np.append(0, np.cumsum(windows.hi - windows.lo))
        total = int(before[-1])
        size = min(max(total // (PIECES * len(self._crew.units)), LEAST), MOST)
        marks = np.searchsorted(before, np.arange(size, total, size))
        edges = np.unique(np.concatenate([[0], marks, [len(windows)]])).tolist()
        return [windows.between(a, b) for a, b in itertools.pairwise(edges)]


def _slots(windows: Extents) -> Array:
    """The slots of all windows' events, one window behind the other."""
    sizes = windows.hi - windows.lo
    starts = np.cumsum(sizes) - sizes
    places = np.arange(int(sizes.sum())) - np.repeat(starts - windows.lo, sizes)
    slots: Array = windows.slots[places]
    return slots


def _array(column: pa.ChunkedArray) -> pa.Array:
    merged = column.combine_chunks()
    return merged.combine_chunks() if isinstance(merged, pa.ChunkedArray) else merged
