"""What a pushing thread does: it waits for room, leaves its events, and perhaps works on them.

It may be interrupted at any moment. It changes state only in sections that cannot be interrupted
(`interrupts.py`), and waits outside of them; only a small push does without a section, and is
mended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from paneflow.engines.multicore.intake.admission import Admitted
from paneflow.engines.multicore.intake.front import Added
from paneflow.engines.multicore.multiway.source_front import AddingFront
from paneflow.engines.multicore.pump.inbox import pieces_of
from paneflow.engines.multicore.pump.never_read import check_room_can_come
from paneflow.engines.multicore.pump.shared import Shared
from paneflow.engines.multicore.pump.silence import Silence
from paneflow.engines.multicore.threads.interrupts import put_off
from paneflow.engines.multicore.tuning import tuning
from paneflow.errors import PaneflowError


class Pushing:
    """The side of a stream on which events arrive."""

    def __init__(self, shared: Shared, lateness: int) -> None:
        self._shared = shared
        self._lateness = lateness
        self._lock = shared.lock
        self._inbox = shared.inbox

    def push(self, source: int, admitted: Admitted, patient: bool = False) -> None:
        """Take a whole push or nothing; waits while too much is ahead of the stream thread.

        A patient thread never reads rows itself, so it waits until another one does.
        """
        arrived = time.perf_counter()
        try:
            while True:
                # Deferring interrupts would cost a small push a tenth of its time. Here they may
                # come at any point, and `_mend` makes up for what they left undone.
                with self._lock:
                    self._inbox.note_silence()
                    if self._has_room(admitted):
                        adding = self._shared.pipeline.adding
                        here = adding is None and self._take_in(source, admitted, arrived)
                        break
                    waiter = self._shared.room_comes.enrol()
                self._wait_for_room(waiter)
                if not patient:
                    check_room_can_come(self._shared.results, self._shared.late, arrived)
            if adding is not None:
                self._add(adding, source, admitted, arrived)
            elif here:
                self._work_here()
        except BaseException:
            self._mend(source)
            raise
        self._shared.turns.left = time.perf_counter()

    def _add(self, front: AddingFront, source: int, admitted: Admitted, arrived: float) -> None:
        """Let the front merge a push in this thread, then add it to what waits."""
        pieces = list(pieces_of(admitted.batch))
        # What has been merged must be among the arrivals too, in the same order.
        with put_off, front.locks[source]:
            added = [front.add(source, piece, admitted.places) for piece in pieces]
            with self._lock:
                self._check_taking()
                self._take_in(source, admitted, arrived, added)

    def _check_taking(self) -> None:
        """Raise what the stream has failed with, or that it no longer takes anything."""
        shared = self._shared
        shared.check()
        if shared.closing or shared.abandoned:
            raise PaneflowError(
                "the stream was closed while a push was waiting: none of its events were taken; "
                "open another one with query.open()"
            )

    def _has_room(self, admitted: Admitted) -> bool:
        """Whether a push can be taken now; one larger than the limit waits until nothing waits."""
        self._check_taking()
        waiting = self._inbox.waiting
        if waiting == 0:
            return self._shared.ready
        assert admitted.batch is not None
        if waiting + admitted.batch.num_rows <= self._inbox.most:
            return True
        return self._shared.results.lets_push() or self._shared.late.lets_push()

    def _take_in(
        self,
        source: int,
        admitted: Admitted,
        arrived: float,
        added: Iterable[Added | None] | None = None,
    ) -> bool:
        """Add a push to what waits, and return whether the pushing thread may process it."""
        shared = self._shared
        due = shared.pipeline.strategy.due(admitted.latest - self._lateness)
        if added is None:
            self._inbox.add(source, admitted, arrived, due)
        else:
            self._inbox.add(source, admitted, arrived, due, added)
        if self._inbox.hear(source):
            shared.work_comes.notify()  # it may sleep without end
        if self._can_work_here(arrived, due):
            return True
        # A wake-up costs more than a small push, so the stream thread says when it wants one.
        if 0 < shared.wanted <= self._inbox.waiting:
            shared.work_comes.notify()
        return False

    def _can_work_here(self, arrived: float, due: bool) -> bool:
        shared = self._shared
        return (
            not shared.turns.rests(arrived, due)
            and self._inbox.waiting < tuning.small_push
            and not shared.full
            and not shared.leaving
            and shared.error is None
            and shared.pipeline.strategy.brief
        )

    def _work_here(self) -> None:
        """Do the work in the pushing thread, unless another thread is doing it."""
        shared = self._shared
        with put_off:
            if not shared.turns.lock.acquire(False):
                with self._lock:
                    shared.work_comes.notify()
                return
            try:
                shared.step()
                shared.look()
            except BaseException as error:
                shared.error = error
                if not isinstance(error, Exception):  # meant for the pushing thread
                    raise
            finally:
                shared.turns.lock.release()
                if shared.error is not None or not shared.pipeline.strategy.brief:
                    with self._lock:
                        shared.work_comes.notify()

    def _mend(self, source: int) -> None:
        """Recount what waits and wake the stream thread, as an interrupted push may not have."""
        with put_off, self._lock:
            self._inbox.hear(source)
            self._inbox.recount()
            self._shared.work_comes.notify()

    def _wait_for_room(self, waiter: threading.Lock) -> None:
        if self._inbox.silence is None:
            self._shared.room_comes.sleep(waiter, tuning.stuck_look)
        else:
            self._sleep_while_none_is_silent(self._inbox.silence, waiter)

    def _sleep_while_none_is_silent(self, silence: Silence, waiter: threading.Lock) -> None:
        paused = False
        try:
            with put_off, self._lock:
                silence.pause()
                paused = True
            self._shared.room_comes.sleep(waiter, tuning.stuck_look)
        finally:
            if paused:
                with put_off, self._lock:
                    silence.resume()
                    self._shared.work_comes.notify()
