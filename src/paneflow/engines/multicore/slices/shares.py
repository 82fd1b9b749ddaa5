"""Who does what: batches that any worker may deal out, and lanes in which one at a time goes on.

Workers deal batches out side by side, in any order. What follows has an order, that of the batches:
in a *lane*, one task after the other is processed, by whichever worker finds it ready. Each shard
of the keys is a lane. Windows that are not made of slices are another: there, one worker keeps them
as a single worker would.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from paneflow.engines.multicore.contract import Batch, Rows
from paneflow.engines.multicore.intake.unread import Unread
from paneflow.engines.multicore.slices.dealing import Dealt


@dataclass(eq=False)
class Task:
    """Events, or a watermark, or events as they were pushed and the watermark behind them."""

    seq: int
    events: Batch | Unread | None
    watermark: int
    """Passed once the events have been processed; `BEFORE_ALL` if none is."""
    arrived: float
    dealt: Dealt | None = None
    """The events as they were read, dealt out to shards."""

    @property
    def is_dealt(self) -> bool:
        """Whether it has events to deal out; stragglers are too few for that."""
        return self.events is not None and not (
            isinstance(self.events, Batch) and self.events.behind
        )


Process = Callable[[Task, bool], list[Rows] | None]
"""Processes a task, and is told whether another one follows it already.

Then it may leave it to that one to close windows, and return None."""


class Lane:
    """Tasks that are processed in order."""

    def __init__(self, number: int, process: Process, of_shard: bool) -> None:
        """`of_shard`: whether tasks have to be dealt out before they are processed here."""
        self.number = number
        self.process = process
        self._of_shard = of_shard
        self._tasks: deque[Task] = deque()
        self._taken = False
        self._undealt: set[int] = set()

    def add(self, task: Task) -> None:
        """Add the next task."""
        self._tasks.append(task)
        if self._of_shard and task.is_dealt:
            self._undealt.add(task.seq)

    def now_dealt(self, task: Task) -> None:
        """Note that a task has been dealt out, or that it never will be."""
        self._undealt.discard(task.seq)

    def take(self) -> Task | None:
        """The next task, if it is ready and no other worker is in this lane; then `leave` it."""
        if self._taken or not self._tasks or self._tasks[0].seq in self._undealt:
            return None
        self._taken = True
        return self._tasks.popleft()

    @property
    def goes_on(self) -> bool:
        """Whether another task follows."""
        return bool(self._tasks)

    def leave(self) -> None:
        """Let another worker in."""
        self._taken = False


class Shares:
    """What is to be done, for all workers of a stream."""

    def __init__(self, lanes: list[Lane]) -> None:
        self.lanes = lanes
        self.alike = False
        """Whether the events that were last dealt out have the same key, so none can be shared."""
        self._lock = threading.Lock()
        self._to_deal: deque[Task] = deque()

    def __len__(self) -> int:
        return len(self._to_deal)

    def add(self, task: Task) -> None:
        """Add the next task."""
        with self._lock:
            for lane in self.lanes:
                lane.add(task)
            if task.is_dealt:
                self._to_deal.append(task)

    def next(self) -> tuple[Task, Lane | None] | None:
        """A task to process in a lane, or one to deal out; None if there is nothing to do."""
        with self._lock:
            for lane in self.lanes:
                task = lane.take()
                if task is not None:
                    return task, lane
            return (self._to_deal.popleft(), None) if self._to_deal else None

    def dealt(self, task: Task) -> None:
        """Note that a task has been dealt out, or that it never will be."""
        self.alike = task.dealt is not None and task.dealt.alike
        with self._lock:
            for lane in self.lanes:
                lane.now_dealt(task)

    def leave(self, lane: Lane) -> None:
        """Let another worker into a lane."""
        with self._lock:
            lane.leave()
