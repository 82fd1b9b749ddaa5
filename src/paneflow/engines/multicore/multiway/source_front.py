"""A front whose sources are merged by a design's own stage: each pushing thread adds to it.

The usual front sorts what has arrived in the stream thread. Here the thread that pushes to a source
reads its times and adds them to a *merger*, and the stream thread takes them out in total order.
The merger is what designs differ in: queues, or a T-Gate.

A merger needs sorted sources. What a source brings out of order, before it is known to have come
back from silence, or while its arena is full, is held as in the usual front, and the two orders are
merged as they are released. So a source that is always in disorder is no slower than there.

Whatever depends on the order of arrival, the watermark and which events are late, is decided by the
stream thread as in the usual front. An event that turns out to be behind the watermark is left out
when the merger returns it.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.intake.front import Added, Arrival, Front
from paneflow.engines.multicore.intake.held_events import SortedRun, joined
from paneflow.engines.multicore.multiway.merged_runs import Found
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.engines.multicore.tuning import tuning
from paneflow.slicing.ordering import is_sorted

if TYPE_CHECKING:
    from paneflow.query import Query


class Merger(Protocol):
    """Takes the times of sorted sources and returns them in total order, with one reader.

    `tuple_gate.py` says what its methods mean.
    """

    def __init__(self, sources: int, readers: int, capacity: int) -> None: ...

    def offer(self, source: int, times: Array) -> int: ...

    def advance(self, source: int, time: int) -> None: ...

    def idle(self, source: int) -> None: ...

    def close(self, source: int) -> None: ...

    def join(self, source: int) -> int | None: ...

    def ready(self, reader: int) -> Found: ...


@dataclass(frozen=True, eq=False)
class MergedRun:
    """Events that the merger has returned, with their sources and positions in it."""

    run: SortedRun
    source: Array
    position: Array

    def between(self, start: int, end: int) -> MergedRun:
        """Consecutive events, as views."""
        run = self.run.between(start, end)
        return MergedRun(run, self.source[start:end], self.position[start:end])

    def chosen(self, mask: Array) -> MergedRun:
        """Some of the events, copied."""
        run = self.run
        source = run.source[mask] if len(run.source) else run.source
        some = SortedRun(run.batch.filter(pa.array(mask)), run.t[mask], source)
        return MergedRun(some, self.source[mask], self.position[mask])


class AddingFront(Front):
    """A front to which pushing threads add by themselves."""

    unseen: ClassVar[bool] = False
    """Whether what they add goes past the stream thread."""

    def __init__(
        self, query: Query, schema: pa.Schema, sources: int, updates: bool = False
    ) -> None:
        super().__init__(query, schema, sources, updates)
        self.locks = [threading.Lock() for _ in range(sources)]
        """Held while one thread acts for a source."""

    @abstractmethod
    def add(self, source: int, batch: pa.RecordBatch, places: list[int] | None) -> Added:
        """Add events, as far as they can be taken; the source's lock must be held."""


class SourceFront(AddingFront):
    """Lets pushing threads add to a merger, and releases what is final."""

    merger: ClassVar[type[Merger]]

    def __init__(
        self, query: Query, schema: pa.Schema, sources: int, updates: bool = False
    ) -> None:
        super().__init__(query, schema, sources, updates)
        capacity = max(tuning.merger_room // sources, tuning.least_source_room)
        self._merger = self.merger(sources, 1, capacity)
        self._absent = [False] * sources
        self._last = [BEFORE_ALL] * sources
        """For each source the largest time that it has added or been told of."""
        self._held_up_to = [BEFORE_ALL] * sources
        """For each source the largest time that was not given to the merger."""
        self._payload: list[deque[tuple[int, pa.RecordBatch]]] = [deque() for _ in range(sources)]
        """For each source its batches, with their first positions in the merger."""
        self._added = [0] * sources
        self._returned = np.zeros(sources, np.int64)
        """For each source, how many of its tuples the merger has returned."""
        self._left_out: list[Array] = []
        """Sources and positions of tuples in the merger that came behind the watermark."""
        self._arrived = np.zeros(sources, np.int64)
        """For each source, how many tuples in the merger are among the arrivals so far.

        Only then it is known whether they came behind the watermark."""
        self._ready: list[MergedRun] = []
        """What the merger has returned and is not final yet."""

    @property
    def held(self) -> int:
        merging = sum(self._added) - int(self._returned.sum())
        return len(self._held) + merging + sum(len(merged.run) for merged in self._ready)

    def add(self, source: int, batch: pa.RecordBatch, places: list[int] | None) -> Added:
        batch = batch if places is None else batch.select(places)
        t = self._times(batch.column(0))
        first, count = self._added[source], 0
        if (
            not self._absent[source]
            and t[0] >= self._last[source]
            # Of equal times, what is held must have come later than what was merged.
            and t[0] > self._held_up_to[source]
            and is_sorted(t)
        ):
            self._payload[source].append((first, batch))
            count = self._merger.offer(source, t)
            self._added[source] += count
        if count == len(t):
            self._last[source] = int(t[-1])
            return Added(batch, t, first, count)
        self._held_up_to[source] = max(self._held_up_to[source], int(t[count:].max()))
        self._last[source] = max(self._last[source], self._held_up_to[source])
        if not self._absent[source]:
            self._merger.advance(source, self._last[source])
        return Added(batch, t, first, count)

    def _pass_over(self, arrival: Arrival) -> None:
        super()._pass_over(arrival)
        with self.locks[arrival.source]:
            self._absent[arrival.source] = True
            if arrival.silent:
                self._merger.idle(arrival.source)
            else:
                self._merger.close(arrival.source)

    def _come_back(self, source: int) -> None:
        super()._come_back(source)
        # What the watermark has passed meanwhile is final; the source may hold it back from now on.
        self._gather()
        with self.locks[source]:
            floor = self._merger.join(source)
            if floor is not None:
                self._last[source] = max(self._last[source], floor)
            if self._last[source] > BEFORE_ALL:
                self._merger.advance(source, self._last[source])
            self._absent[source] = False

    def _let_in(self, arrivals: list[Arrival]) -> None:
        if not arrivals:
            return
        every = [arrival.added for arrival in arrivals if arrival.added is not None]
        t = every[0].t if len(every) == 1 else np.concatenate([added.t for added in every])
        source = self._sources_of(arrivals)
        behind, limit = self._arrive(t, source)
        if behind is not None:
            batch = pa.concat_batches([added.batch for added in every])
            self._set_aside(arrivals, batch, t, source, behind, limit)
        end = 0
        for arrival, added in zip(arrivals, every, strict=True):
            begin, end = end, end + len(added.t)
            self._arrived[arrival.source] += added.merged
            which = np.arange(added.merged, len(added.t))
            if behind is not None:
                mine = behind[begin:end]
                places = added.first + np.flatnonzero(mine[: added.merged])
                if len(places):
                    self._left_out.append(np.stack([np.full_like(places, arrival.source), places]))
                which = which[~mine[added.merged :]]
            if len(which):
                of = source if self._single else np.full(len(which), arrival.source)
                self._held.add(added.batch.take(pa.array(which)), added.t[which], of)

    def _gather(self) -> None:
        """Take what the merger returns."""
        while len((found := self._merger.ready(0)).times):
            self._ready.append(self._gathered(found))

    def _final(self, arrived: float) -> Batch | None:
        self._gather()
        until = self.watermark + self._single
        final, waiting = [], []
        for merged in self._ready:
            cut = int(np.searchsorted(merged.run.t, until))
            if cut == 0:
                waiting.append(merged)
                continue
            first, rest = merged.between(0, cut), merged.between(cut, len(merged.run))
            known = first.position < self._arrived[first.source]
            if not known.all():  # they are in the merger, but not among the arrivals so far
                waiting.append(first.chosen(~known))
                first = first.chosen(known)
            first = self._without_left_out(first)
            if len(first.run):
                final.append(first.run)
            if len(rest.run):
                waiting.append(rest)
        self._ready = waiting
        held = self._held.release(until)
        if held is not None:
            final.append(held)
        if not final:
            return None
        whole = final[0] if len(final) == 1 else joined(final)
        if held is not None and len(final) > 1:
            whole = self._held.in_order(whole)
        return self._read(whole, self.keys.encode(whole.batch), arrived)

    def _gathered(self, found: Found) -> MergedRun:
        """The events of tuples that the merger has returned, in order."""
        times, sources, positions = (column.copy() for column in found)
        counts = np.bincount(sources, minlength=len(self._returned))
        shift = np.zeros(len(counts), np.int64)
        parts: list[pa.RecordBatch] = []
        at = 0
        for source in np.flatnonzero(counts).tolist():
            first, count = int(self._returned[source]), int(counts[source])
            parts += self._slices(source, first, first + count)
            shift[source] = at - first
            at += count
        self._returned += counts
        batch = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
        if np.count_nonzero(counts) > 1:
            batch = batch.take(pa.array(shift[sources] + positions))
        of = np.empty(0, np.int64) if self._single else sources
        return MergedRun(SortedRun(batch, times, of), sources, positions)

    def _slices(self, source: int, begin: int, end: int) -> list[pa.RecordBatch]:
        """The events of a source between two positions; what lies before them is forgotten."""
        batches = self._payload[source]
        parts = []
        while begin < end:
            while len(batches) > 1 and batches[1][0] <= begin:
                batches.popleft()
            first, batch = batches[0]
            until = min(end, first + batch.num_rows)
            if len(batches) > 1:  # the merger may have taken only a part of a batch
                until = min(until, batches[1][0])
            parts.append(batch.slice(begin - first, until - begin))
            begin = until
        return parts

    def _without_left_out(self, merged: MergedRun) -> MergedRun:
        """The events that did not come behind the watermark."""
        if not self._left_out:
            return merged
        left = np.concatenate(self._left_out, axis=1)
        sources = len(self._returned)
        places = merged.position * sources + merged.source
        out = left[1] * sources + left[0]
        gone = np.isin(out, places)
        self._left_out = [] if gone.all() else [left[:, ~gone]]
        return merged.chosen(~np.isin(places, out)) if gone.any() else merged
