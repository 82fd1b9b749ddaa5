"""The open time windows of one shard: the keys that one worker at a time goes on with.

Events join open slices in the order of batches (`open_slices.py`). Slices that the watermark has
passed become runs of slices, and windows are merged from them as one worker would do it
(`by_slices.py`), with two differences, so that neither the clock nor the number of shards shows
where floats are added. How many batches come before windows close depends on the clock: so windows
that are kept merged slide one by one, however many close at once, and others are merged slice after
slice. And stragglers count in every shard, whichever their keys are in.
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
from paneflow.engines.multicore.one_worker.slice_runs import empty_block
from paneflow.engines.multicore.one_worker.sliding_windows import SlidingWindows
from paneflow.engines.multicore.slices.dealing import Dealt, Sharding
from paneflow.engines.multicore.slices.open_slices import OpenSlices
from paneflow.engines.multicore.ticks import AFTER_ALL, BEFORE_ALL
from paneflow.engines.multicore.tuning import tuning
from paneflow.planning.merge_choice import ANEW
from paneflow.slicing.ends import first_open, last_ended
from paneflow.windows import Sliding

if TYPE_CHECKING:
    from paneflow.query import Query


class SharedWindows(BySlices):
    """Takes the events of a shard in batch order, and stragglers; gives windows that have ended.

    Inside, keys have their codes within the shard.
    """

    def __init__(
        self,
        query: Query,
        kinds: Kinds,
        labels: Mapping[str, int],
        asked: str,
        sharding: Sharding,
        shard: int,
    ) -> None:
        super().__init__(query, kinds, labels, asked)
        self._sharding, self._shard = sharding, shard
        self._open = OpenSlices(self._lowering, self._edges, sharding)
        self._keys = 0
        self._first, self._latest = AFTER_ALL, BEFORE_ALL
        """When the first slice of all begins, and the last."""
        self._released = BEFORE_ALL
        """Windows may have been made of slices that begin before this."""
        self._exact = all(operator.exact for operator in self._lowering.operators)
        """Whether results are the same to the bit however slices are grouped."""

    @property
    def held(self) -> int:
        return super().held + len(self._open)

    def take_dealt(self, dealt: Dealt) -> None:
        """Let the shard's share of the next batch join slices."""
        before = len(self._open)
        if dealt.alike and self._open.takes_runs and not self._ordered:
            if self._sharding.of(dealt.events.key[0]) != self._shard:
                return
            self._open.absorb_alike(dealt.events)
        else:
            which = dealt.of(self._shard, self._sharding)
            if len(which) == 0:
                return
            if self._ordered:
                keep(self._kept, self._mine(dealt.events, which))
            self._open.absorb(dealt.events, which, dealt.ends)
        self._note(*self._open.since(before))

    def take(self, events: Batch) -> None:
        """Let the shard's share of a batch of stragglers join slices."""
        behind = self._starts(events.t)
        mine = np.flatnonzero(self._sharding.of(events.key) == self._shard)
        came = self._mine(events, mine)
        if self._ordered:
            # Slices that stragglers fall into are dropped and folded anew.
            self._release(AFTER_ALL)
            if len(mine):
                keep(self._kept, came)
                came = self._again(came)
        block = empty_block(self._lowering.operators, self._lowering.counted)
        if len(mine):
            every = self._folded(came)
            self._note(every.key, every.start)
            released = every.start < self._released
            self._open.merge(every.at(~released))
            block = every.at(released)
        if len(block):
            self._slices.put(block)
        self._join_behind(block, behind)

    def _mine(self, events: Batch, which: Array) -> Read:
        """Some events of this shard."""
        key = self._sharding.inner(events.key)
        return Read(key, events.t, events.moments, events.columns).at(which)

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
        if self._exact:
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

    def due(self, watermark: int) -> int:
        """How many rows a watermark makes final, at the most."""
        since = max(self._before, self._first)
        ended = (
            last_ended(each.window, watermark) - last_ended(each.window, since)
            for each in self._windows
        )
        return self._keys * sum(ended) if since < watermark else 0

    def _note(self, key: Array, start: Array) -> None:
        self._keys = max(self._keys, int(key.max(initial=-1)) + 1)
        self._first = min(self._first, int(start.min(initial=AFTER_ALL)))
        self._latest = max(self._latest, int(start.max(initial=BEFORE_ALL)))

    def _release(self, end: int) -> None:
        """Let windows be made of the slices that begin before a time."""
        self._released = end
        block = self._open.take_before(end)
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
        held = self._slices.since(window.offset.value + first * window.slide.value)
        if held is None:
            return []
        # The slices of one key tell already, unless it falls silent in between.
        of_one = int(np.searchsorted(held.key, held.key[0], side="right"))
        every = [(first, last)]
        if _with_slices(window, held.start[:of_one], first, last) == every:
            return every
        return _with_slices(window, np.unique(held.start), first, last)

    def _merges(self, rows: Array, lengths: Array, slices: int) -> list[str]:
        return super()._merges(rows, lengths, slices) if self._exact else [ANEW] * len(rows)


def _with_slices(window: Sliding, starts: Array, first: int, last: int) -> list[tuple[int, int]]:
    """The first and the last of each stretch of windows between two that slices belong to."""
    starts = starts - window.offset.value
    slide, reach = window.slide.value, window.range.value
    since, until = (starts - reach) // slide + 1, starts // slide
    within = (since <= until) & (until >= first) & (since <= last)
    since, until = np.maximum(since[within], first), np.minimum(until[within], last)
    apart = np.flatnonzero(since[1:] > until[:-1] + 1)
    begins = since[np.append(0, apart + 1)] if len(since) else since
    ends = until[np.append(apart, len(until) - 1)] if len(until) else until
    return list(zip(begins.tolist(), ends.tolist(), strict=True))
