"""The inside of a stream: pushes on one side, rows on the other, and a thread in between.

The stream thread takes everything that has been pushed since it last looked, so that small pushes
are processed together. The pipeline makes rows of them (`pipeline.py`), and an outbox keeps the
rows until they are read. The pushing thread does the work itself if it is short (`turns.py`). The
docstring of this package draws which thread works when.

Both sides are bounded: if rows are not read, the stream thread stops, and then pushing waits.

Nothing here refers to the `Stream` that a user holds, so that a stream that is no longer referenced
can be garbage-collected, which ends its thread.

Pushing and reading threads may be interrupted at any moment. They change state only in sections
that cannot be interrupted (`interrupts.py`), and wait outside of them.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from paneflow.engines.multicore import wall_clock
from paneflow.engines.multicore.intake.admission import Admitted
from paneflow.engines.multicore.intake.as_pushed import Pushed
from paneflow.engines.multicore.intake.front import Arrival
from paneflow.engines.multicore.pump.metrics import StreamMetrics, no_metrics
from paneflow.engines.multicore.pump.outbox import Outbox
from paneflow.engines.multicore.pump.pipeline import Pipeline, Setup
from paneflow.engines.multicore.pump.silence import Silence
from paneflow.engines.multicore.pump.turns import Turns
from paneflow.engines.multicore.threads.forks import forks
from paneflow.engines.multicore.threads.interrupts import Waiters, put_off
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.engines.multicore.tuning import tuning
from paneflow.errors import PaneflowError, UnsupportedError


class Pump:
    """A running stream."""

    # Made by the stream thread as it starts: that may take long, and must not be interrupted.
    _pipeline: Pipeline

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._lateness = setup.query.lateness.value
        # The garbage collector may abandon a stream in the very thread that holds the lock.
        self._lock = threading.RLock()
        self._turns = Turns()
        self._error: BaseException | None = None
        """What a pushing thread has failed with while it did the work."""
        self._work_comes = threading.Condition(self._lock)
        self._room_comes = Waiters(self._lock)
        self._ending = Waiters(self._lock)
        self.results = Outbox(self._lock, self._work_comes)
        """Rows that can be read."""
        self.late = Outbox(self._lock, self._work_comes, self._check_late_can_end)
        """Late events that can be read, if they are returned."""
        self._wanted = 0
        """How many events the stream thread waits for; 0 if it does not wait for events."""
        self._arrivals: deque[Arrival] = deque()
        self._waiting = 0
        self._fetched = self._timeless = self._ahead = 0
        idle = setup.options.idle
        self._silence = None if idle is None else Silence(setup.sources, idle)
        self._ready = self._finishing = self._closing = self._abandoned = False
        self._forks = forks.count
        self._thread = threading.Thread(target=self._run, name="paneflow-stream", daemon=True)
        self._thread.start()

    # For pushing threads.

    def push(self, source: int, admitted: Admitted) -> None:
        """Take a whole push or nothing; waits while too much is ahead of the stream thread."""
        arrived = time.perf_counter()
        try:
            while True:
                # Deferring interrupts would cost a small push a tenth of its time. Here they may
                # come at any point, and `_mend` makes up for what they left undone.
                with self._lock:
                    self._note_silence()
                    if self._has_room(admitted):
                        here = self._take_in(source, admitted, arrived)
                        break
                    waiter = self._room_comes.enrol()
                self._wait_for_room(waiter, arrived)
            if here:
                self._work_here()
        except BaseException:
            self._mend(source)
            raise
        self._turns.left = time.perf_counter()

    def _take_in(self, source: int, admitted: Admitted, arrived: float) -> bool:
        """Add a push to what waits, and return whether the pushing thread may process it."""
        batch, places, timeless, latest, ahead, whole = admitted
        assert batch is not None
        rows = batch.num_rows
        due = self._pipeline.strategy.due(latest - self._lateness)
        # A single call adds the whole push.
        if rows <= tuning.pushed_piece:
            self._arrivals.append(Arrival(source, batch, places, rows, arrived, due, whole))
        else:
            self._arrivals.extend(
                [
                    Arrival(source, piece, places, piece.num_rows, arrived, due, of)
                    for piece, of in zip(_pieces(batch), _pieces(whole), strict=False)
                ]
            )
        self._waiting += rows
        self._timeless += timeless
        self._ahead += ahead
        if self._silence is not None and self._silence.hear(source):
            self._work_comes.notify()  # it may sleep without end
        if self._can_work_here(arrived, due):
            return True
        # A wake-up costs more than a small push, so the stream thread says when it wants one.
        if 0 < self._wanted <= self._waiting:
            self._work_comes.notify()
        return False

    def _mend(self, source: int) -> None:
        """Recount what waits and wake the stream thread, as an interrupted push may not have."""
        with put_off, self._lock:
            if self._silence is not None:
                self._silence.hear(source)
            self._waiting = sum(arrival.rows for arrival in self._arrivals)
            self._work_comes.notify()

    def _can_work_here(self, arrived: float, due: bool) -> bool:
        return (
            not self._turns.rests(arrived, due)
            and self._waiting < tuning.small_push
            and not self._full
            and not self._leaving
            and self._error is None
            and self._pipeline.strategy.brief
        )

    def _work_here(self) -> None:
        """Do the work in the pushing thread, unless another thread is doing it."""
        with put_off:
            if not self._turns.lock.acquire(False):
                with self._lock:
                    self._work_comes.notify()
                return
            try:
                arrivals = self._taken_now()
                if arrivals:
                    self._step(arrivals)
                self._pipeline.gather()
                self._pipeline.strategy.check()
                self._pipeline.show_early()
            except BaseException as error:
                self._error = error
                if not isinstance(error, Exception):  # meant for the pushing thread
                    raise
            finally:
                self._turns.lock.release()
                if self._error is not None or not self._pipeline.strategy.brief:
                    with self._lock:
                        self._work_comes.notify()

    def end_source(self, source: int) -> None:
        """End a source, which then no longer holds back the watermark."""
        with put_off, self._lock:
            self.check()
            self._note_silence()
            if self._silence is not None:
                self._silence.end(source)
            now = time.perf_counter()
            self._arrivals.append(Arrival(source, None, None, 0, now, True))
            self._work_comes.notify()

    def _note_silence(self) -> None:
        """Add sources that have fallen silent to what has arrived, in order."""
        if self._silence is None:
            return
        silent = self._silence.fallen()
        if silent:
            now = time.perf_counter()
            # If this is interrupted, the silence is noted twice, which does no harm.
            self._arrivals.extend(
                [Arrival(source, None, None, 0, now, True, silent=True) for source in silent]
            )
            self._silence.know(silent)

    def check(self) -> None:
        """Raise what the stream has failed with."""
        self.results.check()

    def _has_room(self, admitted: Admitted) -> bool:
        """Whether a push can be taken now; one larger than the limit waits until nothing waits."""
        self.check()
        if self._closing or self._abandoned:
            raise PaneflowError(
                "the stream was closed while a push was waiting: none of its events were taken; "
                "open another one with query.open()"
            )
        if self._waiting == 0:
            return self._ready
        assert admitted.batch is not None
        return bool(self._waiting + admitted.batch.num_rows <= tuning.most_waiting)

    def _wait_for_room(self, waiter: threading.Lock, since: float) -> None:
        if self._silence is None:
            self._room_comes.sleep(waiter, tuning.stuck_look)
        else:
            self._sleep_while_none_is_silent(self._silence, waiter)
        if time.perf_counter() - since < tuning.patience:
            return
        for box, what, call in (
            (self.results, "rows", "stream.results()"),
            (self.late, "late events", "stream.late()"),
        ):
            if box.full and not box.read_elsewhere:
                raise UnsupportedError(
                    f"{box.rows} {what} wait to be read, and no other thread reads them, so "
                    f"pushing would wait forever: call {call} between pushes, or read them in "
                    f"another thread"
                )

    def _sleep_while_none_is_silent(self, silence: Silence, waiter: threading.Lock) -> None:
        paused = False
        try:
            with put_off, self._lock:
                silence.pause()
                paused = True
            self._room_comes.sleep(waiter, tuning.stuck_look)
        finally:
            if paused:
                with put_off, self._lock:
                    silence.resume()
                    self._work_comes.notify()

    # For reading threads.

    @property
    def _full(self) -> bool:
        """Whether so much waits to be read that the stream stops working.

        After `finish`, rows can be read to the end without reading late events first.
        """
        return self.results.full or (self.late.full and not self._finishing)

    def _check_late_can_end(self, since: float) -> None:
        """Refuse to wait longer for the last late events if unread rows hold them back."""
        stuck = self.results.full and not self.results.read_elsewhere
        if stuck and time.monotonic() - since > tuning.patience:
            raise UnsupportedError(
                f"{self.results.rows} rows wait to be read, and no other thread reads them, so "
                f"the last late events would never come: read stream.results() to its end first, "
                f"or call it in another thread"
            )

    def finish(self) -> None:
        """Say that no more events will come."""
        with put_off, self._lock:
            self.check()
            self._finishing = True
            self._work_comes.notify()
            self.results.finish()
            self.late.finish()

    def close(self) -> None:
        """Process what was pushed, keep the rows that are final by then, and end."""
        with put_off, self._lock:
            self._closing = True
            self._work_comes.notify()
            self._room_comes.wake()

    def abandon(self) -> None:
        """End at once."""
        if self._forks != forks.count:  # the thread, and perhaps the lock, are in the parent
            return
        with put_off, self._lock:
            self._abandoned = True
            self._work_comes.notify()
            self._room_comes.wake()

    def await_end(self) -> None:
        """Return when all threads have ended."""
        while True:
            with put_off, self._lock:
                if self.results.ended:
                    break
                waiter = self._ending.enrol()
            self._ending.sleep(waiter)
        # If `Thread.join` is interrupted, it takes the thread for ended.
        with put_off:
            self._thread.join()

    def metrics(self, timeless: int, ahead: int) -> StreamMetrics:
        """What the stream has done so far, plus events that were dropped before it began."""
        if not self._ready:
            return no_metrics(timeless, ahead)
        steps = self._pipeline
        watermark = steps.front.watermark
        return StreamMetrics(
            pushed=self._fetched + self._waiting,
            late=steps.front.late,
            timeless=timeless + self._timeless,
            ahead=ahead + self._ahead,
            waiting=self._waiting,
            held=steps.front.held,
            withheld=steps.collector.held,
            unread=self.results.rows,
            watermark=None if watermark == BEFORE_ALL else watermark,
            latency=steps.latency.latency(),
            units=tuple(steps.strategy.metrics()),
        )

    # The stream thread.

    def _run(self) -> None:
        try:
            self._begin()
            self._work()
        except BaseException as error:
            self._fail(error)
        finally:
            if self._ready:
                self._pipeline.strategy.stop()
            with self._lock:
                self._arrivals.clear()
                self._fetched += self._waiting
                self._waiting = 0
                self._room_comes.wake()
                self._ending.wake()
                self.results.end()
                self.late.end()

    def _begin(self) -> None:
        self._pipeline = Pipeline(self._setup, self.results, self.late)
        with self._lock:
            self._ready = True
            self._room_comes.wake()

    def _work(self) -> None:
        while True:
            ready = self._await_work()
            if self._abandoned:
                return
            with self._turns.lock:
                if self._error is not None:
                    raise self._error
                arrivals = self._taken_now() if ready else []
                if arrivals:
                    self._step(arrivals)
                self._pipeline.gather()
                self._pipeline.strategy.check()
                self._pipeline.show_early()
                if not arrivals and not self._arrivals:
                    if self._finishing:
                        self._pipeline.finish()
                        return
                    if self._closing:
                        self._pipeline.drain()
                        return

    def _await_work(self) -> bool:
        """Wait for work, or for the next look at the strategy; return whether to take events."""
        with self._lock:
            while self._full and not (self._closing or self._abandoned):
                self._work_comes.wait()
            self._note_silence()
            while self._left_to_others():
                self._await_events(tuning.small_push, tuning.left_over)
            look = min(
                max(tuning.first_look, (time.perf_counter() - self._turns.ended) / 4),
                tuning.slowest_look,
            )
            if not (self._arrivals or self._leaving or self._error):
                # Rows of workers that are busy for long are found not much later than they exist.
                self._await_events(1, look if self._pipeline.pending else None)
                self._note_silence()
            if self._can_wait:
                # Workers are busy: what arrives meanwhile will be one message for them.
                self._await_events(tuning.small_push, tuning.first_look)
                return False
        return True

    def _taken_now(self) -> list[Arrival]:
        """Take what waits, as much as fits in one step."""
        with self._lock:
            taken, rows = [], 0
            while self._arrivals and rows + self._arrivals[0].rows <= self._pipeline.length:
                taken.append(self._arrivals.popleft())
                rows += taken[-1].rows
            self._waiting -= rows
            self._fetched += rows
            self._room_comes.wake()
        return taken

    def _left_to_others(self) -> bool:
        """Whether pushing threads do the work, and are likely to do what waits soon."""
        if self._leaving or self._error is not None or not self._pipeline.strategy.brief:
            return False
        if self._waiting >= tuning.small_push:
            return False
        return self._turns.left_to_others(self._arrivals[0].arrived if self._arrivals else None)

    @property
    def _can_wait(self) -> bool:
        return (
            0 < self._waiting < tuning.small_push
            and not self._leaving
            and not self._pipeline.strategy.idle
            and time.perf_counter() - self._arrivals[0].arrived < tuning.gathering
        )

    def _await_events(self, wanted: int, timeout: float | None) -> None:
        self._wanted = wanted
        quiet = math.inf if self._silence is None else self._silence.due_in
        if quiet == math.inf or (timeout is not None and timeout <= quiet):
            self._work_comes.wait(timeout)
        else:
            wall_clock.clock.wait(self._work_comes, quiet)
        self._wanted = 0

    @property
    def _leaving(self) -> bool:
        return self._finishing or self._closing or self._abandoned

    def _step(self, arrivals: list[Arrival]) -> None:
        start = time.perf_counter()
        self._pipeline.step(arrivals)
        self._turns.end(start)

    def _fail(self, error: BaseException) -> None:
        """Keep the rows that were final before, then fail for readers and pushers."""
        if self._ready:
            self._pipeline.rescue()
        if not isinstance(error, PaneflowError):
            failure = PaneflowError(f"the stream failed with {type(error).__name__}: {error}")
            failure.__cause__ = error
            error = failure
        self.results.fail(error)
        self.late.fail(error)


def _pieces(events: Pushed | None) -> Iterator[Any]:
    """Events in pieces that are processed in one step; nothing as often as it is asked for."""
    if events is None:
        yield from itertools.repeat(None)
    else:
        for start in range(0, events.num_rows, tuning.pushed_piece):
            yield events.slice(start, tuning.pushed_piece)
