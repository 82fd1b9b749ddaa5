"""Refuses a leap of time that would make more rows final at once than `max_rows` allows.

One event may be in millions of windows, which close as time advances, at the latest when the stream
is finished. Between two events a key closes no more windows than slides fit between their times,
which is few in a stream that advances evenly. Only where it leaps are the keys examined. What is
refused depends on the events alone, not on how many of them are processed together.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.ticks import BEFORE_ALL, END_OF_STREAM
from paneflow.engines.multicore.tuning import tuning
from paneflow.windows import Sliding
from paneflow.windows.many_rows import RowCount, check_rows, overlap

if TYPE_CHECKING:
    from paneflow.query import Query


class RowGuard:
    """Knows each key's latest event, and so how many of its windows can still be open."""

    def __init__(self, query: Query, max_rows: int | None) -> None:
        sliding = {n: w for n, w in query.windows.items() if isinstance(w, Sliding)}
        self._windows = {n: w for n, w in sliding.items() if overlap(w) >= tuning.watched_overlap}
        self._max_rows = max_rows
        self._latest: Array = np.full(16, BEFORE_ALL)
        """The time of each key's latest event."""
        self._keys = self._events = 0
        self._now = BEFORE_ALL

    @property
    def watches(self) -> bool:
        """Whether some windows overlap so much that they are watched."""
        return bool(self._windows) and self._max_rows is not None

    def feed(self, events: Batch) -> None:
        """Refuse events between two of which too many windows would close."""
        if not self._windows or self._max_rows is None or len(events) == 0:
            return
        t, key = events.t, events.key
        since = self._now if self._keys else int(t[0])
        most = max(self._keys, int(key.max()) + 1)
        if self._most_per_key(int(t[-1]) - since) * most > self._max_rows:
            keys = np.maximum(np.maximum.accumulate(key) + 1, self._keys)
            closing = self._per_key(np.maximum(np.diff(t, prepend=since), 0))
            done = 0
            for leap in np.flatnonzero(closing > self._max_rows / keys).tolist():
                self._note(key[done:leap], t[done:leap])
                done = leap
                self._look(int(t[leap]))
            key, t = key[done:], t[done:]
        self._note(key, t)

    def advance(self, watermark: int) -> None:
        """Refuse a watermark if too many windows would close between the last event and it."""
        if not self._windows or self._max_rows is None or watermark <= self._now or not self._keys:
            return
        if self._most_per_key(watermark - self._now) * self._keys > self._max_rows:
            self._look(watermark)

    def check_open(self, held: Batch | None) -> None:
        """Refuse to show the open windows, those of held events included, if they are too many."""
        after = copy.copy(self)
        after._latest = self._latest.copy()
        if held is not None:
            after.feed(held)
        after.advance(END_OF_STREAM)

    def _most_per_key(self, leap: int) -> int:
        """The most windows of one key that can close while time advances by this much."""
        leap = max(leap, 0)
        return sum(min(leap, w.range.value) // w.slide.value + 1 for w in self._windows.values())

    def _per_key(self, leaps: Array) -> Array:
        """The same for many leaps of time."""
        closing = np.zeros(len(leaps), np.int64)
        for w in self._windows.values():
            closing += np.minimum(leaps, w.range.value) // w.slide.value + 1
        return closing

    def _look(self, to: int) -> None:
        """Count the windows of all keys that close when time advances, and refuse too many."""
        latest = self._latest[: self._keys]
        counts = {}
        for label, window in self._windows.items():
            ends = np.minimum(to, latest[latest > BEFORE_ALL] + window.range.value)
            closing = np.where(ends > self._now, (ends - self._now) // window.slide.value + 1, 0)
            counts[label] = int(closing.sum())
        count = RowCount(counts, self._events, self._keys, exact=False)
        check_rows(count, self._windows, self._max_rows)

    def _note(self, key: Array, t: Array) -> None:
        if len(key) == 0:
            return
        known = int(key.max()) + 1
        if known > len(self._latest):
            grown = np.full(2 * known, BEFORE_ALL)
            grown[: len(self._latest)] = self._latest
            self._latest = grown
        _keep_latest(key, t, self._latest)
        self._keys = max(self._keys, known)
        self._events += len(key)
        self._now = max(self._now, int(t[-1]))


@compiled
def _keep_latest(key, t, latest):  # type: ignore[no-untyped-def]
    for i in range(len(key)):
        latest[key[i]] = max(latest[key[i]], t[i])
