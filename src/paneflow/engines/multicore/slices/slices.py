"""Batch-parallel slices: workers share whole batches, then each goes on with a share of the keys.

A worker reads a batch and deals its events out by key, in compiled loops without the interpreter
lock. The keys are divided into shards. In each shard events join slices, and slices windows, in the
order of batches, by one worker at a time. So neither rows nor their bits depend on how many workers
there are. To fold each batch into slices of its own, and to merge these, was tried first: with
10,000 keys a batch has hardly fewer slices than events, and one worker had to merge them all.

A query may have windows that are not made of slices: sessions, windows by count, windows of
aggregates that keep every value. One worker keeps these beside the others, as a single worker
would, so that they do not slow down those that can be shared.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from paneflow.aggregates.aggregate import Kinds
from paneflow.engines.multicore.contract import Batch, Pauses, Rows
from paneflow.engines.multicore.intake.row_guard import RowGuard
from paneflow.engines.multicore.intake.unread import Unread
from paneflow.engines.multicore.one_worker.by_slices import needs_order, timed_by_slices
from paneflow.engines.multicore.one_worker.single import OpenStream
from paneflow.engines.multicore.slices.dealing import Sharding, deal
from paneflow.engines.multicore.slices.shared_windows import SharedWindows
from paneflow.engines.multicore.slices.shares import Lane, Shares, Task
from paneflow.engines.multicore.threads.unit import Crew, Unit
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.engines.multicore.tuning import tuning
from paneflow.engines.multicore.workers.farm import Farm, Gathering
from paneflow.errors import PaneflowError

if TYPE_CHECKING:
    from paneflow.query import Query


class SliceWorker(Unit):
    """A PU that deals batches out, and goes on with what is ready."""

    def __init__(
        self,
        crew: Crew,
        rank: int,
        pauses: Pauses | None,
        shares: Shares,
        sharding: Sharding | None,
        gathering: Gathering,
    ) -> None:
        super().__init__(crew, rank, pauses)
        self._shares = shares
        self._sharding = sharding
        self._gathering = gathering

    @property
    def depth(self) -> int:
        return len(self._shares)

    def step(self) -> bool:
        found = self._shares.next()
        if found is None:
            return False
        task, lane = found
        if lane is None:
            self.attempt(task.seq, lambda: self._deal(task))
            self._shares.dealt(task)
            return True
        made: list[list[Rows] | None] = []
        self.attempt(task.seq, lambda: made.append(lane.process(task, lane.goes_on)))
        self._shares.leave(lane)
        rows = made[0] if made else []
        self.counts["results"] += sum(map(len, rows or []))
        self._gathering.put(task.seq, rows, lane.number)
        return True

    def _deal(self, task: Task) -> None:
        assert task.events is not None
        self.counts["tuples"] += len(task.events)
        if isinstance(task.events, Unread):
            events, ends = task.events.read()
        else:
            events, ends = task.events, np.array([len(task.events)])
        if self._sharding is not None:
            task.dealt = deal(events, ends, self._sharding)


class ShardLane:
    """Lets the events of a shard join slices, and closes the windows that are made of them."""

    def __init__(self, windows: SharedWindows, sharding: Sharding, shard: int) -> None:
        self._windows = windows
        self._sharding, self._shard = sharding, shard
        self.guard: RowGuard | None = None
        """Refuses too many rows, if that is not done where events arrive nor in another lane."""
        self._since = 0
        """How many events have come since windows were closed."""
        self._due = (BEFORE_ALL, 0.0)
        """The last watermark, and when the events before it arrived."""

    def __call__(self, task: Task, goes_on: bool) -> list[Rows] | None:
        rows: list[Rows] = []
        if task.dealt is not None:
            self._watch(task.dealt.events)
            self._windows.take_dealt(task.dealt)
            self._since += len(task.dealt.events)
        elif task.events is not None:
            assert isinstance(task.events, Batch)
            rows = self._close()  # stragglers do not join what the last watermark has ended
            self._watch(task.events)
            self._windows.take(task.events)
        if task.watermark == BEFORE_ALL:
            return rows
        if self.guard is not None:
            self.guard.advance(task.watermark)
        self._due = task.watermark, task.arrived
        few = self._windows.due(task.watermark) < tuning.rows_together
        if goes_on and few and self._since < tuning.close_together:
            return None
        return rows + self._close()

    def _close(self) -> list[Rows]:
        self._since = 0
        rows = self._windows.advance(*self._due)
        if self._sharding.bits == 0:
            return rows
        outer = self._sharding.outer
        return [dataclasses.replace(some, key=outer(some.key, self._shard)) for some in rows]

    def _watch(self, events: Batch) -> None:
        if self.guard is not None:
            self.guard.feed(events)


class OthersLane:
    """Keeps the windows that are not made of slices, as one worker does."""

    def __init__(self, windows: OpenStream, labels: list[int]) -> None:
        """`labels`: what the labels of these windows are among all labels."""
        self._windows = windows
        self._labels = np.array(labels, np.int32)

    def __call__(self, task: Task, goes_on: bool) -> list[Rows]:
        if task.events is not None:
            assert isinstance(task.events, Batch)
            self._windows.take(task.events)
        if task.watermark == BEFORE_ALL:
            return []
        rows = self._windows.advance(task.watermark, task.arrived)
        self._windows.settle()
        return [dataclasses.replace(some, label=self._labels[some.label]) for some in rows]


class Slices(Farm):
    """Workers that share batches, and then keys."""

    name: ClassVar[str] = "slices"

    @classmethod
    def refuses(cls, query: Query, kinds: Kinds) -> str | None:
        return None

    def __init__(
        self,
        query: Query,
        kinds: Kinds,
        workers: int,
        pauses: Pauses | None = None,
        merge: str = "auto",
    ) -> None:
        super().__init__(query, kinds)
        numbers = {label: k for k, label in enumerate(sorted(query.windows))}
        timed = timed_by_slices(query, kinds)
        others = {label: w for label, w in query.windows.items() if label not in timed}
        sharding = Sharding.among(workers) if timed else None
        lanes = []
        self._by_shard: list[ShardLane] = []
        if sharding is not None:
            asked = query.with_windows(timed)
            for shard in range(sharding.shards):
                windows = SharedWindows(asked, kinds, numbers, merge, sharding, shard)
                self._by_shard.append(ShardLane(windows, sharding, shard))
            lanes = [Lane(k, lane, of_shard=True) for k, lane in enumerate(self._by_shard)]
        if others:
            kept = OpenStream(query.with_windows(others), kinds, merge)
            labels = [numbers[label] for label in sorted(others)]
            lanes.append(Lane(len(lanes), OthersLane(kept, labels), of_shard=False))
        self._shares = Shares(lanes)
        for rank in range(workers):
            SliceWorker(self._crew, rank, pauses, self._shares, sharding, self._gathering)
        self._most = tuning.deals_ahead * workers
        self._start()

    def take_over(self, guard: RowGuard) -> None:
        """Let events be given as they were pushed: rows are counted where keys are known."""
        self._by_shard[0].guard = guard

    def feed_unread(self, events: Unread) -> None:
        """Take events as they were pushed, and the watermark behind them."""
        self._await_room()
        self._arrived = events.arrived
        self._watermark = events.watermark
        self._emit(events, events.watermark, self._passing.passed(events.watermark))

    def _emit(self, events: Batch | Unread | None, watermark: int, passed: int) -> None:
        seq = self._gathering.expect(len(self._shares.lanes), self._arrived, passed)
        due = watermark if not isinstance(events, Batch) else BEFORE_ALL
        units = self._crew.units
        # Few events are not worth a thread, unless a user's function takes long over them.
        few = events is None or len(events) < tuning.deal_here
        # Short pushes take so long to read, with the interpreter lock, that threads only wait.
        short = isinstance(events, Unread) and len(events) < tuning.short_push * events.pushes
        here = few or short or self._shares.alike
        self._crew.lends = here and len(self._gathering) == 1 and self._is_fast()
        self._shares.add(Task(seq, events, due, self._arrived))
        # One that sleeps is enough. If none does, any of them may be about to.
        asleep = next(([unit] for unit in units if unit.bell.asleep), units)
        for unit in asleep:
            unit.bell.ring()
        self._crew.help()

    @property
    def brief(self) -> bool:
        return self.idle and self._crew.lends and self._crew.asleep

    def _is_fast(self) -> bool:
        return all(unit.spent < tuning.short_message for unit in self._crew.units)

    def _check_open(self) -> None:
        try:
            super()._check_open()
        except PaneflowError:
            error = None if self._crew.failure is None else self._crew.failure.error
            if isinstance(error, PaneflowError) and error.__cause__ is None:
                raise error from None  # bad data speaks for itself
            raise

    def _await_room(self) -> None:
        while True:
            heard = self._crew.feeder.rung
            self._check_open()
            if len(self._gathering) < self._most:
                return
            self._crew.feeder.wait(heard)


def commute(query: Query, kinds: Kinds) -> bool:
    """Whether all windows are made of slices, and events may join these in any order.

    That is so unless a user's combine needs the order: `first`, `last` and their like hold the time
    of what they hold.
    """
    timed = timed_by_slices(query, kinds)
    return len(timed) == len(query.windows) and not any(map(needs_order, query.aggregates.values()))
