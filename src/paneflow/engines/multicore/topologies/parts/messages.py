"""The messages that the feeder sends to PUs, and what the feeder knows of the stream.

Every message ends in a limit: once a PU has worked on it, windows that end by the limit are
final. A batch's limit is its last time, since nothing earlier will come; a watermark is a message
without events. The limit of stragglers is the watermark that they are behind: windows that end by
it have been given out, and are closed to them.
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
    """Its first time: what ended by then had no event."""
    limit: int
    arrived: float
    events: Inputs | None = None
    positions: Array | None = None
    """Where each event stands among those of its key, if some window counts events."""
    counted: tuple[Array, Array] | None = None
    """Keys that have got events, and how many they have now, if some window counts events."""
    behind: bool = False
    """Whether its events are stragglers."""
    final: bool = False
    dummy: bool = False
    """Whether it says nothing but that all before it has been sent."""

    def __len__(self) -> int:
        return 0 if self.events is None else len(self.events.t)

    def ticks(self, span: Span) -> Array:
        """What a span's windows are made of: times, or positions."""
        assert self.events is not None
        if self.behind and span.by_count:
            return NO_TICKS
        ticks = self.positions if span.by_count else self.events.t
        assert ticks is not None
        return ticks

    def open(self, span: Span) -> Span:
        """The span with those windows alone that are open to the events."""
        return replace(span, least=span.ended(self.limit) + 1) if self.behind else span


class Arrivals:
    """Makes messages of what arrives.

    With `prompt`, windows that a batch ends are given out as soon as it has been worked on;
    otherwise they may wait for a watermark.
    """

    def __init__(self, question: Question, prompt: bool) -> None:
        self._question = question
        self._prompt = prompt
        # By key: how many events it has had, and the number of the message with its last one.
        self._counted = np.zeros(0, np.int64)
        self._met = np.zeros(0, np.int64)
        self._seq = 0
        self._limit: int | None = None
        self._watermark = -AFTER_ALL
        self._settled: int | None = None
        """Up to where windows have been given out, as far as is known here."""
        self._arrived = time.perf_counter()

    def batch(self, batch: Batch) -> Work:
        """Events."""
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
        """Events behind the last watermark, by which all windows that it ends were given out."""
        self._arrived = batch.arrived
        if self._limit is None:
            self._limit = self._settled = self._watermark
        self._limit = max(self._limit, self._watermark)
        events = Inputs.of(self._question, batch)
        return Work(self._next(), self._limit, self._limit, batch.arrived, events, behind=True)

    def watermark(self, watermark: int) -> Work | None:
        """A watermark; None if no window ends by it that has not been given out before."""
        self._watermark = watermark
        if self._limit is None:
            return None
        limit = max(self._limit, watermark)
        if not self.due(limit):
            return None
        self._limit = self._settled = limit
        return Work(self._next(), limit, limit, self._arrived)

    def due(self, limit: int) -> bool:
        """Whether windows end by a limit that have not been given out."""
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
        """The position of each event among those of its key; and each key's events so far."""
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
