"""The inside of a stream: pushes on one side, rows on the other, and a thread in between.

Events are pushed into an inbox (`pushing.py`), the stream thread takes them (`stream_thread.py`),
the pipeline makes rows of them (`pipeline.py`), and an outbox keeps the rows until they are read.
The docstring of this package draws which thread works when.

Nothing here refers to the `Stream` that a user holds, so that a stream that is no longer referenced
can be garbage-collected, which ends its thread.
"""

from __future__ import annotations

from paneflow.engines.multicore.pump.metrics import StreamMetrics, no_metrics
from paneflow.engines.multicore.pump.pipeline import Setup
from paneflow.engines.multicore.pump.pushing import Pushing
from paneflow.engines.multicore.pump.shared import Shared
from paneflow.engines.multicore.pump.stream_thread import StreamThread
from paneflow.engines.multicore.threads.forks import forks
from paneflow.engines.multicore.threads.interrupts import put_off
from paneflow.engines.multicore.ticks import BEFORE_ALL


class Pump:
    """A running stream."""

    def __init__(self, setup: Setup) -> None:
        self._sources = setup.sources
        self.shared = Shared(setup.sources, setup.options.idle)
        self.pushing = Pushing(self.shared, setup.query.lateness.value)
        self._forks = forks.count
        self.results = self.shared.results
        self.late = self.shared.late
        self.thread = StreamThread(setup, self.shared)

    def end_source(self, source: int) -> None:
        """End a source, which then no longer holds back the watermark."""
        with put_off, self.shared.lock:
            self.check()
            self.shared.inbox.end_source(source)
            self.shared.work_comes.notify()

    def check(self) -> None:
        """Raise what the stream has failed with."""
        self.shared.check()

    def fail(self, error: BaseException) -> None:
        """End with an error, after the rows that are final by now."""
        with put_off, self.shared.lock:
            self.shared.error = error
            self.shared.work_comes.notify()

    def await_finish(self) -> None:
        """Let readers wait until the end: it will come without another call of theirs."""
        with put_off, self.shared.lock:
            self.results.finish()
            self.late.finish()

    def finish(self) -> None:
        """Say that no more events will come."""
        with put_off, self.shared.lock:
            self.check()
            self.shared.finishing = True
            self.shared.work_comes.notify()
            self.await_finish()

    def close(self) -> None:
        """Process what was pushed, keep the rows that are final by then, and end."""
        with put_off, self.shared.lock:
            self.shared.closing = True
            self.shared.work_comes.notify()
            self.shared.room_comes.wake()

    def abandon(self) -> None:
        """End at once."""
        if self._forks != forks.count:  # the thread, and perhaps the lock, are in the parent
            return
        with put_off, self.shared.lock:
            self.shared.abandoned = True
            self.shared.work_comes.notify()
            self.shared.room_comes.wake()

    def await_end(self) -> None:
        """Return when all threads have ended."""
        ending = self.shared.ending
        while True:
            with put_off, self.shared.lock:
                if self.results.ended:
                    break
                waiter = ending.enrol()
            ending.sleep(waiter)
        # If `Thread.join` is interrupted, it takes the thread for ended.
        with put_off:
            self.thread.join()

    def metrics(self, timeless: int, ahead: int) -> StreamMetrics:
        """What the stream has done so far, plus events that were dropped before it began."""
        if not self.shared.ready:
            return no_metrics(self._sources, timeless, ahead)
        inbox, steps = self.shared.inbox, self.shared.pipeline
        watermark = steps.front.watermark
        return StreamMetrics(
            pushed=inbox.fetched + inbox.waiting,
            late=steps.front.late,
            timeless=timeless + inbox.timeless,
            ahead=ahead + inbox.ahead,
            waiting=inbox.waiting,
            held=steps.front.held,
            withheld=steps.collector.held,
            unread=self.results.rows,
            watermark=None if watermark == BEFORE_ALL else watermark,
            latency=steps.latency.latency(),
            units=tuple(steps.strategy.metrics()),
            sources=inbox.sources.metrics(),
        )
