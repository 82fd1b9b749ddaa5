"""What the threads of a stream share: what waits, rows to be read, and how the stream will end.

Both sides are bounded: if rows are not read, the stream stops working, and then pushing waits.
"""

from __future__ import annotations

import threading
import time

from paneflow.engines.multicore.pump.inbox import Inbox
from paneflow.engines.multicore.pump.never_read import check_late_can_end
from paneflow.engines.multicore.pump.outbox import Outbox
from paneflow.engines.multicore.pump.pipeline import Pipeline
from paneflow.engines.multicore.pump.turns import Turns
from paneflow.engines.multicore.threads.interrupts import Waiters


class Shared:
    """The state of a running stream, and the lock that guards it."""

    pipeline: Pipeline
    """Made by the stream thread as it starts: that may take long, and must not be interrupted."""

    def __init__(self, sources: int, idle: int | None) -> None:
        # The garbage collector may abandon a stream in the very thread that holds the lock.
        self.lock = threading.RLock()
        self.turns = Turns()
        self.work_comes = threading.Condition(self.lock)
        """What the stream thread sleeps on."""
        self.wanted = 0
        """How many events the stream thread waits for; 0 if it does not wait for events."""
        self.room_comes = Waiters(self.lock)
        """Pushing threads that wait for room."""
        self.ending = Waiters(self.lock)
        """Threads that wait for the end of the stream thread."""
        self.inbox = Inbox(sources, idle)
        results = Outbox(self.lock, self.work_comes)
        self.results = results
        """Rows that can be read."""
        # It does not refer to this object: what a stream holds is freed once it is dropped.
        self.late = Outbox(
            self.lock, self.work_comes, lambda since: check_late_can_end(results, since)
        )
        """Late events that can be read, if they are returned."""
        self.error: BaseException | None = None
        """What a pushing thread has failed with while it did the work."""
        self.ready = self.finishing = self.closing = self.abandoned = False

    def check(self) -> None:
        """Raise what the stream has failed with."""
        self.results.check()

    @property
    def full(self) -> bool:
        """Whether so much waits to be read that the stream stops working.

        After `finish`, rows can be read to the end without reading late events first.
        """
        return self.results.full or (self.late.full and not self.finishing)

    @property
    def leaving(self) -> bool:
        """Whether no more will be pushed."""
        return self.finishing or self.closing or self.abandoned

    # For the thread that has the turn.

    def step(self) -> bool:
        """Process what waits, as much as fits in one step; whether anything waited."""
        with self.lock:
            arrivals = self.inbox.take(self.pipeline.length.now)
            self.room_comes.wake()
        if arrivals:
            start = time.perf_counter()
            self.pipeline.step(arrivals)
            self.turns.end(start)
        return bool(arrivals)

    def look(self) -> None:
        """Make readable what workers have finished; raises what one of them has failed with."""
        self.pipeline.gather()
        self.pipeline.strategy.check()
        self.pipeline.show_early()
