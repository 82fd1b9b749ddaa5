"""Active workers: each keeps its own windows, and is sent the events that they need.

Section 3 and algorithms 1 and 2 of Mencagli et al., "Harnessing Sliding-Window Execution Semantics
for Parallel Stream Processing". Window w belongs to worker w mod N. The emitter evaluates the
mapping function on every event as it arrives, and sends it to each worker that has a window with
it. A worker sees windows that slide by min(W, S·N) instead of S, and processes them on its own,
sharing slices among its windows. That is possible only if the windows of an event are known when it
arrives: for context-free and forward-context-free windows.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from paneflow.aggregates.aggregate import Kinds
from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.engines.multicore.contract import Batch, Pauses, Rows
from paneflow.engines.multicore.one_worker.single import OpenStream
from paneflow.engines.multicore.threads.unit import Crew
from paneflow.engines.multicore.tuning import tuning
from paneflow.engines.multicore.workers.farm import (
    Farm,
    Gathering,
    PartOfMessage,
    Worker,
    refused_window,
)
from paneflow.windows import Count, Duration, Punctuation, Sliding, Window, WindowClass

if TYPE_CHECKING:
    from paneflow.query import Query

FARTHEST = 2**49
"""A slide up to this is still a valid one when multiplied by a thousand workers."""


def private(window: Window, worker: int, workers: int) -> Window:
    """The window as a worker sees it: every N-th window, starting with the worker's first.

    >>> from paneflow import windows as W
    >>> print(private(W.sliding(4, 1), 1, 2))
    sliding(4, 2, offset=1)
    >>> print(private(W.count(4, 3), 1, 2))  # it is sent only the events of its windows
    count(4)
    """
    if isinstance(window, Sliding):
        slide = window.slide.value
        return Sliding(
            window.range,
            Duration(slide * workers, window.slide.textual),
            Duration(window.offset.value + worker * slide, window.slide.textual),
        )
    if isinstance(window, Count):
        return Count(window.size, min(window.size, window.slide * workers), False)
    return window


def _farther(window: Sliding) -> int:
    return max(window.slide.value, abs(window.offset.value))


class MappingFunction:
    """Tells which workers need an event, for one window."""

    def __init__(self, window: Window, workers: int) -> None:
        self._window = window
        self._workers = workers
        self._seen = np.zeros(0, np.int64)
        """For each key, how many events or marks it has had."""

    def masks(self, events: Batch) -> list[Array | None]:
        """For each worker, which events it is sent; None for all of them."""
        window, workers = self._window, self._workers
        needed = np.zeros((workers, len(events)), np.bool_)
        if isinstance(window, Sliding):
            if window.range.value >= window.slide.value * workers:
                return [None] * workers
            bounds = (window.range.value, window.slide.value, window.offset.value)
            _by_time(events.t, *bounds, needed)
        elif not events.behind:
            self._make_room(events.key)
            if isinstance(window, Count):
                _by_position(events.key, self._seen, window.size, window.slide, needed)
            else:
                assert isinstance(window, Punctuation)
                column = events.columns[window.column]
                marked = column.values != 0
                if column.valid is not None:
                    marked &= column.valid
                _by_mark(events.key, self._seen, marked, needed)
        return [None if mask.all() else mask for mask in needed]

    def _make_room(self, key: Array) -> None:
        more = int(key.max()) + 1 - len(self._seen)
        if more > 0:
            self._seen = np.append(self._seen, np.zeros(more, np.int64))


@dataclass(frozen=True, eq=False)
class WorkerMessage(PartOfMessage):
    """What one worker gets of a message: its events for each window, or a watermark."""

    events: dict[str, Batch] | None
    watermark: int


class ActiveWorker(Worker[WorkerMessage]):
    """A PU with its own windows and buffers."""

    def __init__(
        self,
        crew: Crew,
        rank: int,
        pauses: Pauses | None,
        query: Query,
        kinds: Kinds,
        workers: int,
        merge: str,
        gathering: Gathering,
    ) -> None:
        super().__init__(crew, rank, pauses, gathering, tuning.messages_ahead)
        self._workers = workers
        self._labels = {label: k for k, label in enumerate(sorted(query.windows))}
        self._open = {
            label: OpenStream(query.with_windows({label: private(w, rank, workers)}), kinds, merge)
            for label, w in query.windows.items()
        }

    def work(self, given: WorkerMessage) -> list[Rows]:
        if given.events is not None:
            for label, events in given.events.items():
                self.counts["tuples"] += len(events)
                self._open[label].take(events)
            return []
        rows: list[Rows] = []
        for label, windows in self._open.items():
            found = windows.advance(given.watermark, given.arrived)
            rows += [self._renumbered(some, self._labels[label]) for some in found]
            windows.settle()
        self.counts["results"] += sum(map(len, rows))
        return rows

    def _renumbered(self, rows: Rows, label: int) -> Rows:
        """This worker's windows with the numbers that they have in the query."""
        return dataclasses.replace(
            rows,
            label=np.full(len(rows), label, np.int32),
            seq=rows.seq * self._workers + self.rank,
        )


class Active(Farm):
    """The active worker model."""

    name: ClassVar[str] = "active"

    @classmethod
    def refuses(cls, query: Query, kinds: Kinds) -> str | None:
        for label, window in query.windows.items():
            if window.window_class is WindowClass.FCA:
                return (
                    f"window {label!r} ({window}) is forward-context aware: which windows an "
                    f"event joins is known only when later events have come, and then it has "
                    f"been sent; use 'agnostic' or 'auto'"
                )
            if isinstance(window, Sliding) and _farther(window) > FARTHEST:
                return (
                    f"window {label!r} ({window}) slides or is shifted by more than {FARTHEST}, "
                    f"and a worker's windows by several times as much; use 'agnostic' or 'auto'"
                )
        return refused_window(query)

    def __init__(
        self,
        query: Query,
        kinds: Kinds,
        workers: int,
        pauses: Pauses | None = None,
        merge: str = "auto",
    ) -> None:
        super().__init__(query, kinds)
        self._mappings = {label: MappingFunction(w, workers) for label, w in query.windows.items()}
        self._workers = [
            ActiveWorker(self._crew, rank, pauses, query, kinds, workers, merge, self._gathering)
            for rank in range(workers)
        ]
        self._start()

    def _emit(self, events: Batch | None, watermark: int, passed: int) -> None:
        shares: list[dict[str, Batch] | None] = [None] * len(self._workers)
        if events is not None:
            masks = {label: m.masks(events) for label, m in self._mappings.items()}
            shares = [_needed(events, masks, worker.rank) for worker in self._workers]
        seq = self._gathering.expect(len(self._workers), self._arrived, passed)
        for worker, share in zip(self._workers, shares, strict=True):
            worker.inbox.put(WorkerMessage(seq, self._arrived, share, watermark))


def _needed(events: Batch, masks: dict[str, list[Array | None]], rank: int) -> dict[str, Batch]:
    """For each window the events that a worker needs, if it needs any."""
    needed = {}
    for label, mask in ((label, each[rank]) for label, each in masks.items()):
        if mask is None:
            needed[label] = events
        elif mask.any():
            needed[label] = events.chosen(mask)
    return needed


@compiled
def _spread(first, last, i, needed):  # type: ignore[no-untyped-def]
    """Mark event i for the workers of the windows from first to last."""
    workers = len(needed)
    for w in range(first, min(last, first + workers - 1) + 1):
        needed[w % workers, i] = True


@compiled
def _by_time(t, reach, slide, offset, needed):  # type: ignore[no-untyped-def]
    for i in range(len(t)):
        since = t[i] - offset
        _spread((since - reach) // slide + 1, since // slide, i, needed)


@compiled
def _by_position(key, seen, size, slide, needed):  # type: ignore[no-untyped-def]
    for i in range(len(key)):
        position = seen[key[i]]
        seen[key[i]] += 1
        _spread(max(0, (position - size) // slide + 1), position // slide, i, needed)


@compiled
def _by_mark(key, seen, marked, needed):  # type: ignore[no-untyped-def]
    for i in range(len(key)):
        needed[seen[key[i]] % len(needed), i] = True
        seen[key[i]] += marked[i]
