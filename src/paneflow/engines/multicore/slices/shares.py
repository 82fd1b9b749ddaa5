"""Who does what: batches that any worker may cut, and lanes in which one worker at a time goes on.

Workers cut batches side by side, in any order. What follows has an order, that of the batches: in a
*lane*, one task after the other is processed, by whichever worker finds it ready. Merging slices
and closing windows is one lane. Windows that are not made of slices are another: there, one worker
keeps them as a single worker would.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from paneflow.engines.multicore.contract import Batch, Rows
from paneflow.engines.multicore.intake.unread import Unread
from paneflow.engines.multicore.one_worker.slice_runs import Block


@dataclass(eq=False)
class Task:
    """Events, or a watermark, or events as they were pushed and the watermark behind them."""

    seq: int
    events: Batch | Unread | None
    watermark: int
    """Passed once the events have been processed; `BEFORE_ALL` if none is."""
    arrived: float
    cut: tuple[Batch, Block] | None = None
    """The events as they were read, and what they were cut into."""

    @property
    def is_cut(self) -> bool:
        """Whether it is made of slices."""
        return self.events is not None and not (
            isinstance(self.events, Batch) and self.events.behind
        )


Process = Callable[[Task, bool], list[Rows] | None]
"""Processes a task, and is told whether another one follows it already.

Then it may leave it to that one to close windows, and return None."""


class Lane:
    """Tasks that are processed in order."""

    def __init__(self, process: Process, by_slices: bool) -> None:
        """`by_slices`: whether tasks have to be cut before they are processed here."""
        self.process = process
        self._by_slices = by_slices
        self._tasks: deque[Task] = deque()
        self._taken = False
        self._uncut: set[int] = set()

    def add(self, task: Task) -> None:
        """Add the next task."""
        self._tasks.append(task)
        if self._by_slices and task.is_cut:
            self._uncut.add(task.seq)

    def now_cut(self, task: Task) -> None:
        """Note that a task has been cut, or that it never will be."""
        self._uncut.discard(task.seq)

    def take(self) -> Task | None:
        """The next task, if it is ready and no other worker is in this lane; then `leave` it."""
        if self._taken or not self._tasks or self._tasks[0].seq in self._uncut:
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
        self._lock = threading.Lock()
        self._to_cut: deque[Task] = deque()

    def __len__(self) -> int:
        return len(self._to_cut)

    def add(self, task: Task) -> None:
        """Add the next task."""
        with self._lock:
            for lane in self.lanes:
                lane.add(task)
            if task.is_cut:
                self._to_cut.append(task)

    def next(self) -> tuple[Task, Lane | None] | None:
        """Something to do: a task to process in a lane, or one to cut; None if there is nothing."""
        with self._lock:
            for lane in self.lanes:
                task = lane.take()
                if task is not None:
                    return task, lane
            return (self._to_cut.popleft(), None) if self._to_cut else None

    def cut(self, task: Task) -> None:
        """Note that a task has been cut, or that it never will be."""
        with self._lock:
            for lane in self.lanes:
                lane.now_cut(task)

    def leave(self, lane: Lane) -> None:
        """Let another worker into a lane."""
        with self._lock:
            lane.leave()
