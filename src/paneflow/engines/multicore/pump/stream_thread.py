"""The stream thread: it works on what waits, or sleeps until there is work for it.

It takes everything that has been pushed since it last looked, so that small pushes are processed
together.
"""

from __future__ import annotations

import math
import threading
import time

from paneflow.engines.multicore import wall_clock
from paneflow.engines.multicore.pump.pipeline import Pipeline, Setup
from paneflow.engines.multicore.pump.shared import Shared
from paneflow.engines.multicore.tuning import tuning
from paneflow.errors import PaneflowError


class StreamThread:
    """The thread of one stream, from its first events to its end."""

    def __init__(self, setup: Setup, shared: Shared) -> None:
        self._setup = setup
        self._shared = shared
        self._inbox = shared.inbox
        self._thread = threading.Thread(target=self._run, name="paneflow-stream", daemon=True)
        self._thread.start()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the thread to end; whether it has."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        shared = self._shared
        try:
            self._begin()
            self._work()
        except BaseException as error:
            self._fail(error)
        finally:
            if shared.ready:
                shared.pipeline.strategy.stop()
            with shared.lock:
                self._inbox.drop()
                shared.room_comes.wake()
                shared.ending.wake()
                shared.results.end()
                shared.late.end()

    def _begin(self) -> None:
        shared = self._shared
        shared.pipeline = Pipeline(self._setup, shared.results, shared.late)
        self._inbox.most = shared.pipeline.most_waiting
        with shared.lock:
            shared.ready = True
            shared.room_comes.wake()

    def _work(self) -> None:
        shared = self._shared
        while True:
            ready = self._await_work()
            if shared.abandoned:
                return
            with shared.turns.lock:
                if shared.error is not None:
                    raise shared.error
                worked = ready and shared.step()
                shared.look()
                if not worked and not self._inbox:
                    if shared.finishing:
                        shared.pipeline.finish()
                        return
                    if shared.closing:
                        shared.pipeline.drain()
                        return

    def _await_work(self) -> bool:
        """Wait for work, or for the next look at the strategy; return whether to take events."""
        shared = self._shared
        with shared.lock:
            while shared.full and not (shared.closing or shared.abandoned):
                shared.room_comes.wake()  # a thread that waits for room may be the one that reads
                shared.work_comes.wait()
            self._inbox.note_silence()
            while self._left_to_others():
                self._await_events(tuning.small_push, tuning.left_over)
            look = min(
                max(tuning.first_look, (time.perf_counter() - shared.turns.ended) / 4),
                tuning.slowest_look,
            )
            if not (self._inbox or shared.leaving or shared.error):
                # Rows of workers that are busy for long are found not much later than they exist.
                self._await_events(1, look if shared.pipeline.pending else None)
                self._inbox.note_silence()
            if self._can_wait:
                # Workers are busy: what arrives meanwhile will be one message for them.
                self._await_events(tuning.small_push, tuning.first_look)
                return False
        return True

    def _left_to_others(self) -> bool:
        """Whether pushing threads do the work, and are likely to do what waits soon."""
        shared = self._shared
        if shared.leaving or shared.error is not None or not shared.pipeline.strategy.brief:
            return False
        if self._inbox.waiting >= tuning.small_push:
            return False
        return shared.turns.left_to_others(self._inbox.since if self._inbox else None)

    @property
    def _can_wait(self) -> bool:
        shared = self._shared
        return (
            0 < self._inbox.waiting < tuning.small_push
            and not shared.leaving
            and not shared.pipeline.strategy.idle
            and time.perf_counter() - self._inbox.since < tuning.gathering
        )

    def _await_events(self, wanted: int, timeout: float | None) -> None:
        shared, silence = self._shared, self._inbox.silence
        shared.wanted = wanted
        quiet = math.inf if silence is None else silence.due_in
        if quiet == math.inf or (timeout is not None and timeout <= quiet):
            shared.work_comes.wait(timeout)
        else:
            wall_clock.clock.wait(shared.work_comes, quiet)
        shared.wanted = 0

    def _fail(self, error: BaseException) -> None:
        """Keep the rows that were final before, then fail for readers and pushers."""
        shared = self._shared
        if shared.ready:
            shared.pipeline.rescue()
        if not isinstance(error, PaneflowError):
            failure = PaneflowError(f"the stream failed with {type(error).__name__}: {error}")
            failure.__cause__ = error
            error = failure
        shared.results.fail(error)
        shared.late.fail(error)
