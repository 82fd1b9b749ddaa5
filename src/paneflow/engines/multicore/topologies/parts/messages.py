"""The messages that the feeding thread sends to PUs, and what it knows of the stream.

Every message has a limit: once a PU has processed it, windows that end by the limit are final. The
limit of a batch is its last time, since nothing earlier will come; a watermark is a message without
events. The limit of stragglers is the watermark that they are behind: windows that end by it have
been emitted, and are closed to them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.ticks import AFTER_ALL
from paneflow.engines.multicore.topologies.parts.question import Inputs, Question, Span

NO_TICKS = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Work:
    """A message. Messages are numbered in the order of the stream."""

    seq: int
    since: int
    """Its first time: windows that ended by then had no event of it."""
    limit: int
    arrived: float
    events: Inputs | None = None
    positions: Array | None = None
    """The position of each event among those of its key, if some window counts events."""
    counted: tuple[Array, Array] | None = None
    """The keys of its events, and how many events each has had, if some window counts events."""
    behind: bool = False
    """Whether its events are stragglers."""
    final: bool = False
    dummy: bool = False
    """Whether it only says that all messages before it have been sent."""

    def __len__(self) -> int:
        return 0 if self.events is None else len(self.events.t)

    def ticks(self, span: Span) -> Array:
        """The ticks of its events for a span: times, or positions."""
        assert self.events is not None
        if self.behind and span.by_count:
            return NO_TICKS
        ticks = self.positions if span.by_count else self.events.t
        assert ticks is not None
        return ticks

    def open(self, span: Span) -> Span:
        """The span, without the windows that are closed to these events."""
        return replace(span, least=span.ended(self.limit) + 1) if self.behind else span


class Arrivals:
    """Makes messages of what arrives.

    With `prompt`, windows that a batch ends are emitted as soon as it has been processed; otherwise
    they may wait for a watermark.
    """

    def __init__(self, question: Question, prompt: bool) -> None:
        self._question = question
        self._prompt = prompt
        # For each key, how many events it has had, and the number of the last message with one.
        self._counted = np.zeros(0, np.int64)
        self._met = np.zeros(0, np.int64)
        self._seq = 0
        self._limit: int | None = None
        self._watermark = -AFTER_ALL
        self._settled: int | None = None
        """Up to where windows have been emitted, as far as the feeding thread knows."""
        self._arrived = time.perf_counter()

    def batch(self, batch: Batch) -> Work:
        """A message of events."""
        positions, counted = self._count(batch.key) if self._question.by_count else (None, None)
        self._arrived = batch.arrived
        self._limit = int(batch.t[-1])
        if self._prompt:
            self._settled = self._limit
        elif self._question.by_count:
            self._settled = None
        events = Inputs.of(self._question, batch)
        since = int(batch.t[0])
        seq = self._next()
        return Work(seq, since, self._limit, batch.arrived, events, positions, counted)

    def stragglers(self, batch: Batch) -> Work:
        """A message of events behind the last watermark, whose windows have all been emitted."""
        self._arrived = batch.arrived
        if self._limit is None:
            self._limit = self._settled = self._watermark
        self._limit = max(self._limit, self._watermark)
        events = Inputs.of(self._question, batch)
        return Work(self._next(), self._limit, self._limit, batch.arrived, events, behind=True)

    def note(self, arrived: float) -> None:
        """Events have come that are in no message."""
        self._arrived = arrived
        if self._limit is None:
            self._limit = -AFTER_ALL

    def watermark(self, watermark: int) -> Work | None:
        """A watermark; None if all windows that end by it have been emitted before."""
        self._watermark = watermark
        if self._limit is None:
            return None
        limit = max(self._limit, watermark)
        if not self.due(limit):
            return None
        self._limit = self._settled = limit
        return Work(self._next(), limit, limit, self._arrived)

    def due(self, limit: int) -> bool:
        """Whether windows that have not been emitted end by a limit."""
        settled = self._settled
        return settled is None or any(
            limit > settled if span.by_count else span.ended(limit) > span.ended(settled)
            for span in self._question.spans
        )

    def end(self) -> Work:
        """The end of the stream."""
        return Work(self._next(), AFTER_ALL, AFTER_ALL, self._arrived, final=True)

    def dummy(self) -> Work:
        """A message that only carries its number."""
        return Work(self._next(), AFTER_ALL, AFTER_ALL, self._arrived, dummy=True)

    def _next(self) -> int:
        self._seq += 1
        return self._seq - 1

    def _count(self, key: Array) -> tuple[Array, tuple[Array, Array]]:
        """The position of each event among those of its key; and each key's number of events."""
        more = int(key.max()) + 1 - len(self._counted)
        if more > 0:
            room = np.zeros(max(more, len(self._counted)), np.int64)
            self._counted = np.append(self._counted, room)
            self._met = np.append(self._met, room - 1)
        positions, keys = np.empty(len(key), np.int64), np.empty(len(key), np.int64)
        keys = keys[: _number(key, self._counted, self._met, self._seq, positions, keys)].copy()
        return positions, (keys, self._counted[keys])


@compiled
def _number(key, counted, met, now, positions, keys):  # type: ignore[no-untyped-def]
    found = 0
    for i in range(len(key)):
        k = key[i]
        positions[i] = counted[k]
        counted[k] += 1
        if met[k] != now:
            met[k] = now
            keys[found] = k
            found += 1
    return found
