"""Finders: for one window of the query, which of its windows have closed.

A finder is shown events as they come and watermarks as they move, and gives each window once, when
it is final, as the slots of its events. The code that computes the window reads them from the log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.closing import loops
from paneflow.engines.multicore.closing.event_log import EventLog
from paneflow.engines.multicore.closing.loops import FIRST, LAST, NONE
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.stores.growing import Grown, KeyState
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.slicing.bounds.by_growth import decreasing, given, measured
from paneflow.slicing.bounds.by_mark import marked_events
from paneflow.slicing.bounds.by_time import sliding
from paneflow.slicing.ends import ended_until, first_open, last_end, last_ended
from paneflow.slicing.events import Events as Ordered, Part
from paneflow.slicing.ordering import stable_order
from paneflow.windows import (
    Count,
    Delta,
    Punctuation,
    SlideByTime,
    SlideByTuple,
    Sliding,
    Window,
)


@dataclass(frozen=True, eq=False)
class Extents:
    """Complete windows: window i holds the events in slots[lo[i]:hi[i]], in total order."""

    label: int
    key: Array
    seq: Array
    start: Array
    end: Array
    lo: Array
    hi: Array
    slots: Array

    def __len__(self) -> int:
        return len(self.key)

    def between(self, first: int, end: int) -> Extents:
        """Some of the windows."""
        names = ("key", "seq", "start", "end", "lo", "hi")
        cut = {name: getattr(self, name)[first:end] for name in names}
        return replace(self, **cut)

    def moved(self, slots: Array, first: int) -> Extents:
        """The same windows over a part of the slots, which begins at a place."""
        return replace(self, lo=self.lo - first, hi=self.hi - first, slots=slots)


class Finder(ABC):
    """The open windows of one label, over a log that others may use as well."""

    def __init__(self, label: int, window: Window, log: EventLog) -> None:
        self.label = label
        self.window = window
        self.log = log

    @abstractmethod
    def take(self, events: Batch, first: int) -> None:
        """Events have been added to the log, from a slot on; stragglers are behind."""

    @abstractmethod
    def advance(self, watermark: int) -> Extents | None:
        """The windows that are final at a watermark and were not given before, if any."""

    @abstractmethod
    def needed(self) -> Array:
        """Which slots of the log a later window may need."""

    @abstractmethod
    def moved(self, needed: Array, places: Array) -> None:
        """The log keeps only what was needed, at new places."""

    @abstractmethod
    def settle(self) -> None:
        """What has been taken stays."""

    @abstractmethod
    def undo(self) -> None:
        """As it was when it was settled."""

    def extents(self, key: Array, seq: Array, lo: Array, hi: Array, slots: Array) -> Extents:
        """Windows, with what their rows show of them."""
        t = self.log.t
        start, end = self.window.extent(seq, t[slots[lo]], t[slots[hi - 1]])
        return Extents(self.label, key, seq, start, end, lo, hi, slots)


class ByTime(Finder):
    """Time windows: what ends between two watermarks lies in a span of the log."""

    window: Sliding

    def __init__(self, label: int, window: Sliding, log: EventLog) -> None:
        super().__init__(label, window, log)
        self._before = self._settled = BEFORE_ALL

    def take(self, events: Batch, first: int) -> None:
        pass

    def advance(self, watermark: int) -> Extents | None:
        before, self._before = self._before, watermark
        start = None
        if before != BEFORE_ALL:
            if last_ended(self.window, before) >= last_ended(self.window, watermark):
                return None
            start = first_open(self.window, before)
        slots = self.log.between(start, ended_until(self.window, watermark))
        if len(slots) == 0:
            return None
        key, t = self.log.key[slots], self.log.t[slots]
        by = [key, self.log.moments[slots]] if len(self.log.behind) else [key]
        order = stable_order(by, len(slots))
        if order is not None:
            slots, key, t = slots[order], key[order], t[order]
        heads = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        ordered = Ordered(pa.table({}), np.append(heads, len(key)), None, t, t)
        part = Part(ordered, 0, len(heads))
        found = sliding([self.window], part, (None if start is None else before, watermark)).ranges
        if len(found) == 0:
            return None
        return self.extents(key[heads][found.key], found.seq, found.lo, found.hi, slots)

    def needed(self) -> Array:
        needed: Array = last_end(self.window, self.log.t) > self._before
        return needed

    def moved(self, needed: Array, places: Array) -> None:
        pass

    def settle(self) -> None:
        self._settled = self._before

    def undo(self) -> None:
        self._before = self._settled


class ByKey(Finder):
    """Windows that depend on the events of a key one by one: a state is kept for each key."""

    pointers: tuple[int, ...] = (FIRST, LAST)
    """Rows of the state that hold slots."""

    def __init__(self, label: int, window: Any, log: EventLog, *rest: int) -> None:
        super().__init__(label, window, log)
        self.state = KeyState(NONE, 0, 0, NONE, *rest)
        self._found: list[Array] = []
        self._seen = self._settled = 0

    def take(self, events: Batch, first: int) -> None:
        if events.behind:  # their place in the order of their key is taken
            return
        self.state.touch(events.key)
        out = np.empty((4, 2 * len(events)), np.int64)
        self.found(out, self.step(events, first, out))

    def found(self, out: Array, several: int) -> None:
        """Remember windows until they are asked for."""
        if several:
            self._found.append(out[:, :several])

    @abstractmethod
    def step(self, events: Batch, first: int, out: Array) -> int:
        """What fresh events close."""

    def advance(self, watermark: int) -> Extents | None:
        self.pass_by(watermark)
        if not self._found:
            return None
        found = np.concatenate(self._found, axis=1)
        self._found = []
        order = stable_order([found[0]], found.shape[1])
        key, seq, first, events = found if order is None else found[:, order]
        return self.collected(key, seq, first, events)

    def collected(self, key: Array, seq: Array, first: Array, events: Array) -> Extents:
        """Windows, key by key, by following the chains of their keys."""
        slots = np.empty(min(int(events.sum()), self.log.end), np.int64)
        lo, hi = np.empty(len(key), np.int64), np.empty(len(key), np.int64)
        n = loops.follow(key, first, events, self.log.next, slots, lo, hi)
        return self.extents(key, seq, lo, hi, slots[:n])

    def pass_by(self, watermark: int) -> None:
        """Find what the watermark closes, from the first slot on that it has not passed."""
        until = int(np.searchsorted(self.log.clock, self.reached(watermark)))
        if until > self._seen:
            passed = self.log.key[self._seen : until]
            self.state.touch(passed)
            out = np.empty((4, len(passed)), np.int64)
            self.found(out, self.close(self._seen, self.log.key[:until], watermark, out))
            self._seen = until

    def reached(self, watermark: int) -> int:
        """The watermark closes windows by events before this time."""
        return BEFORE_ALL

    def close(self, seen: int, key: Array, watermark: int, out: Array) -> int:
        """Close the windows of keys whose last event is from a slot on."""
        return 0

    def needed(self) -> Array:
        self.state.reserve(self.log.key)
        first = self.state.values[FIRST][self.log.key]
        needed: Array = (first != NONE) & (np.arange(self.log.end) >= first)
        needed[self.log.behind] = False
        return needed

    def moved(self, needed: Array, places: Array) -> None:
        for row in self.pointers:
            slots = self.state.values[row]
            slots[:] = np.where(slots == NONE, NONE, places[slots])
        self._seen = self._settled = int(np.count_nonzero(needed[: self._seen]))

    def settle(self) -> None:
        self.state.settle()
        self._settled = self._seen

    def undo(self) -> None:
        self.state.undo()
        self._found = []
        self._seen = self._settled


class ByCount(ByKey):
    """Every so many events, the next so many."""

    window: Count

    def __init__(self, label: int, window: Count, log: EventLog) -> None:
        super().__init__(label, window, log, 0)

    def step(self, events: Batch, first: int, out: Array) -> int:
        bounds = (self.window.size, self.window.slide)
        columns = (self.log.next, self.state.values)
        found: int = loops.count(first, events.key, *columns, out, *bounds)
        return found


class BySlideByTuple(ByKey):
    """Every so many events, those of the last while."""

    window: SlideByTuple

    def __init__(self, label: int, window: SlideByTuple, log: EventLog) -> None:
        super().__init__(label, window, log, 0)

    def step(self, events: Batch, first: int, out: Array) -> int:
        bounds = (self.window.range.value, self.window.every)
        columns = (self.log.t, self.log.next, self.state.values)
        found: int = loops.slide_by_tuple(first, events.key, *columns, out, *bounds)
        return found


class BySlideByTime(ByKey):
    """At boundaries of time, the last so many events."""

    window: SlideByTime

    def __init__(self, label: int, window: SlideByTime, log: EventLog) -> None:
        super().__init__(label, window, log, BEFORE_ALL)
        self._bounds = (window.slide.value, window.offset.value)

    def step(self, events: Batch, first: int, out: Array) -> int:
        columns = (self.log.t, self.log.next, self.state.values)
        found: int = loops.slide_by_time(
            first, events.key, *columns, out, self.window.size, *self._bounds
        )
        return found

    def reached(self, watermark: int) -> int:
        slide, offset = self._bounds
        return offset + (watermark - offset) // slide * slide

    def close(self, seen: int, key: Array, watermark: int, out: Array) -> int:
        found: int = loops.pass_boundaries(seen, key, self.state.values, out)
        return found


class ByPunctuation(ByKey):
    """Up to each marked event."""

    window: Punctuation

    def step(self, events: Batch, first: int, out: Array) -> int:
        column = events.columns[self.window.column]
        marked = marked_events(column.values, column.valid)
        found: int = loops.punctuation(first, events.key, marked, self.state.values, out)
        return found


class ByDelta(ByKey):
    """Whenever a column has grown."""

    window: Delta
    pointers = (FIRST, LAST, loops.TRIGGER)

    def __init__(self, label: int, window: Delta, log: EventLog) -> None:
        super().__init__(label, window, log, NONE)
        self._d: Grown | None = None

    def step(self, events: Batch, first: int, out: Array) -> int:
        column = events.columns[self.window.column]
        d, (reach, _, slide) = measured(self.window, column, column.values)
        if self._d is None:
            self._d = Grown(d.dtype)
        self._d.put(first, d)
        columns = (self._d.values, self.log.next, self.state.values)
        found: int = loops.delta(first, events.key, *columns, out, reach, slide)
        if found < 0:
            at = -found - 1
            before = self._d.values[self.state.values[LAST, events.key[at]]]
            raise decreasing(self.window, column, given([before, d[at]], d.dtype))
        return found

    def moved(self, needed: Array, places: Array) -> None:
        super().moved(needed, places)
        if self._d is not None:
            self._d.keep(needed)
