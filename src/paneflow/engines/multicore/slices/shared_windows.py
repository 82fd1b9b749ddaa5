"""The open time windows of a stream whose slices come from several workers.

Slices are merged in batch order (`merged_slices.py`). Those that the watermark has passed become
runs of slices, and windows are merged from them as one worker would do it (`by_slices.py`), with
one difference: how many batches are merged before windows close depends on the clock, and where
floats are added, that must not show. So windows that are kept merged slide one by one, however many
close at once, and others are merged slice after slice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from paneflow.aggregates.aggregate import Kinds
from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.contract import Batch, Rows
from paneflow.engines.multicore.one_worker.by_slices import BySlices
from paneflow.engines.multicore.one_worker.kept_events import Read, keep
from paneflow.engines.multicore.one_worker.slice_runs import Block
from paneflow.engines.multicore.one_worker.sliding_windows import SlidingWindows
from paneflow.engines.multicore.slices.cutting import Cutter
from paneflow.engines.multicore.slices.merged_slices import MergedSlices
from paneflow.engines.multicore.ticks import AFTER_ALL, BEFORE_ALL
from paneflow.engines.multicore.tuning import tuning
from paneflow.planning.merge_choice import ANEW
from paneflow.slicing.ends import first_open, last_ended
from paneflow.windows import Sliding

if TYPE_CHECKING:
    from paneflow.query import Query


class SharedWindows(BySlices):
    """Takes slices in batch order, and stragglers; gives the windows that a watermark ends."""

    def __init__(
        self, query: Query, kinds: Kinds, labels: Mapping[str, int], asked: str = "auto"
    ) -> None:
        super().__init__(query, kinds, labels, asked)
        self._merging = MergedSlices(self._lowering)
        self._keys = 0
        self._latest = BEFORE_ALL
        """When the last slice begins."""
        self._released = BEFORE_ALL
        """Windows may have been made of slices that begin before this."""
        self.exact = all(operator.exact for operator in self._lowering.operators)
        """Whether results are the same to the bit however slices are grouped."""

    @property
    def held(self) -> int:
        return super().held + len(self._merging)

    def cutter(self) -> Cutter:
        """What a worker cuts batches with."""
        return Cutter(self._lowering, self._edges)

    def merge_in(self, events: Batch, block: Block) -> None:
        """Merge the slices of the next batch, which were made of these events."""
        if self._ordered:
            keep(self._kept, Read(events.key, events.t, events.moments, events.columns))
        self._merging.merge(block)
        self._note(block.key, block.start)

    def take(self, events: Batch) -> None:
        """Let stragglers join slices."""
        self._note(events.key, self._starts(events.t))
        if self._ordered:
            # Slices that stragglers fall into are dropped and folded anew.
            self._release(AFTER_ALL)
            super().take(events)
            return
        block = self._folded(Read(events.key, events.t, events.moments, events.columns))
        released = block.start < self._released
        self._merging.merge(block.at(~released))
        late = block.at(released)
        if len(late):
            self._slices.put(late)
            for each in self._windows:
                each.take_behind(late, self._before, replaced=False)

    def advance(self, watermark: int, arrived: float) -> list[Rows]:
        before = self._before
        closing = [
            each
            for each in self._windows
            if last_ended(each.window, before) < last_ended(each.window, watermark)
        ]
        if watermark <= before or not closing:
            self._before = max(before, watermark)
            return []
        # Slices before the one that the watermark is in are complete.
        self._release(max(watermark - (watermark - at) % step for at, step in self._edges.tolist()))
        if self.exact:
            return super().advance(watermark, arrived)
        self._before = watermark
        rows = []
        anew = []
        for each in closing:
            if each.merge_of(None).name == ANEW:
                anew.append(each)
            else:
                rows += self._slid(each, before, watermark, arrived)
        if anew:
            rows += self._anew(anew, before, watermark, arrived)
        self._forget(watermark)
        return rows

    def _note(self, key: Array, start: Array) -> None:
        self._keys = max(self._keys, int(key.max(initial=-1)) + 1)
        self._latest = max(self._latest, int(start.max(initial=BEFORE_ALL)))

    def _release(self, end: int) -> None:
        """Let windows be made of the slices that begin before a time."""
        self._released = end
        block = self._merging.take_before(end)
        if block is not None:
            self._slices.put(block)

    def _slid(
        self, each: SlidingWindows, before: int, watermark: int, arrived: float
    ) -> list[Rows]:
        """The windows of a label that end after one watermark and by another, one by one."""
        window = each.window
        offset, slide, reach = window.offset.value, window.slide.value, window.range.value
        first, last = last_ended(window, before) + 1, last_ended(window, watermark)
        if not each.begun:
            held = self._slices.since(
                BEFORE_ALL if before == BEFORE_ALL else first_open(window, before)
            )
            if held is None:
                return []
            first = max(first, (int(held.start.min()) - offset - reach) // slide + 1)
        # Windows that begin behind the last slice are empty.
        filled = min(last, (self._latest - offset) // slide)
        several = max(1, tuning.rows_at_once // max(self._keys, 1))
        rows = []
        for begin, end in self._stretches(window, first, filled):
            if begin > first:
                each.drop()  # what comes next does not follow the windows before
            for number in range(begin, end + 1, several):
                ended, ends = (
                    offset + k * slide + reach for k in (number - 1, min(number + several - 1, end))
                )
                rows += self._from_kept(each, ended, ends, arrived)
        if filled < last:
            each.drop()
        return rows

    def _stretches(self, window: Sliding, first: int, last: int) -> list[tuple[int, int]]:
        """Which windows between two have slices: the first and the last of each stretch of them."""
        if last - first < window.overlap:
            return [(first, last)]
        offset, slide, reach = window.offset.value, window.slide.value, window.range.value
        held = self._slices.since(offset + first * slide)
        if held is None:
            return []
        starts = np.unique(held.start) - offset
        since, until = (starts - reach) // slide + 1, starts // slide
        within = (since <= until) & (until >= first) & (since <= last)
        since, until = np.maximum(since[within], first), np.minimum(until[within], last)
        apart = np.flatnonzero(since[1:] > until[:-1] + 1)
        begins = since[np.append(0, apart + 1)] if len(since) else since
        ends = until[np.append(apart, len(until) - 1)] if len(until) else until
        return list(zip(begins.tolist(), ends.tolist(), strict=True))

    def _merges(self, rows: Array, lengths: Array, slices: int) -> list[str]:
        return super()._merges(rows, lengths, slices) if self.exact else [ANEW] * len(rows)
