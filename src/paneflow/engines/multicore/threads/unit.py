"""A processing unit (PU): one thread that processes the messages of its rings.

Between two messages a PU holds the interpreter lock; on a message it runs compiled loops without
it. If messages are so short that waking a thread takes longer than the work, threads are left
asleep: the thread that brings a message to a sleeping PU also does that PU's work, after its own.
So a short message passes through all PUs in one thread, and long ones keep all threads busy.

An exception in one PU ends the work of all, but loses nothing: it is kept with the rank of its PU
and the number of its message. Everything before that message is still processed and emitted, and
nothing after it; then the threads end, and the exception is raised where the stream is fed.
"""

from __future__ import annotations

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from paneflow.engines.multicore.contract import Pauses, Rows, UnitMetrics
from paneflow.engines.multicore.threads.ring import Bell
from paneflow.engines.multicore.tuning import tuning
from paneflow.errors import PaneflowError

NO_MESSAGE = sys.maxsize

COUNTED = (
    "tuples",
    "forwarded",
    "hash_operations",
    "windows_found",
    "window_updates",
    "pane_updates",
    "panes_forwarded",
    "result_checks",
    "result_sets",
    "results",
)


@dataclass(frozen=True)
class Failure:
    """An exception, the PU it was raised in, and the number of the message."""

    rank: int
    error: BaseException
    seq: int


class Crew:
    """What the PUs of one strategy share.

    It does not refer to the strategy, so that a strategy that is no longer referenced can be
    garbage-collected, which stops its threads.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.output: deque[Rows] = deque()
        self.feeder = Bell()
        """The feeding thread waits for it: room for another message, the end, or a failure."""
        self.stopped = False
        self.finished = False
        self.failure: Failure | None = None
        self.units: list[Unit] = []
        self.lends = False
        """Whether sleeping PUs are left asleep, and listed in `called` instead."""
        self.called: deque[Unit] = deque()
        self._failing = threading.Lock()

    def broken(self, seq: int) -> bool:
        """Whether a PU has failed on this message or an earlier one."""
        return self.failure is not None and seq >= self.failure.seq

    def fail(self, failure: Failure) -> None:
        """Keep the failure with the earliest message."""
        with self._failing:
            if not self.broken(failure.seq):
                self.failure = failure
        self.wake()

    def check(self) -> None:
        """Raise what a PU has failed with, once everything before it has been emitted."""
        while self.failure is not None and not self.stopped:
            heard = self.feeder.rung
            if not self.stopped:
                self.feeder.wait(heard)
        if self.failure is not None:
            rank, error = self.failure.rank, self.failure.error
            cause = error
            if isinstance(error, PaneflowError) and error.__cause__ is not None:
                cause = error.__cause__  # what a user's function raised
            raise PaneflowError(
                f"processing unit {rank} of {len(self.units)} (strategy {self.name!r}) failed "
                f"with {type(error).__name__}: {error}; its traceback is shown above, and the "
                f"rows that were final before are kept"
            ) from cause

    def weigh(self) -> None:
        """Decide whether messages are short enough to leave threads asleep."""
        self.lends = all(unit.spent < tuning.short_message for unit in self.units)

    @property
    def asleep(self) -> bool:
        """Whether all threads sleep, so that only another thread can do their work."""
        return all(unit.bell.asleep for unit in self.units)

    def help(self) -> None:
        """Do the work of the PUs that were called."""
        while self.called:
            try:
                unit = self.called.popleft()
            except IndexError:  # another thread was faster
                return
            unit.be_helped()

    def wake(self) -> None:
        """Wake every thread."""
        for unit in self.units:
            unit.bell.wake()
        self.feeder.ring()

    def stop(self) -> None:
        """Ask every thread to end."""
        self.stopped = True
        self.wake()


class Unit(ABC):
    """One PU. Subclasses say what a step is."""

    def __init__(self, crew: Crew, rank: int, pauses: Pauses | None) -> None:
        self.crew = crew
        self.rank = rank
        self.bell = Bell(self._call)
        self.counts = dict.fromkeys(COUNTED, 0)
        self.applied = 0
        """How many messages of the feeding thread have been processed."""
        self.wake_at = 0
        """How many must have been processed before the feeding thread wants to be woken."""
        self.spent = 0.0
        """Seconds of work on a recent message."""
        self.busy = 0.0
        """Seconds of work on all messages; those that were not timed are estimated."""
        self.steps = self.helped = 0
        """Messages that were processed, and how many of them by other threads."""
        self._untimed = 0
        self._pauses = pauses
        self._turn = threading.Lock()
        self.thread = threading.Thread(
            target=self._run, name=f"paneflow-{crew.name}-{rank}", daemon=True
        )
        crew.units.append(self)

    @abstractmethod
    def step(self) -> bool:
        """Do one thing, if there is one to do, and return whether there was."""

    @property
    @abstractmethod
    def depth(self) -> int:
        """Messages in the rings it reads."""

    def attempt(self, seq: int, action: Callable[[], None]) -> bool:
        """Do what a message asks, unless it comes after a failure; return whether it was done."""
        if self.crew.broken(seq):
            return False
        try:
            action()
        except Exception as error:
            self.crew.fail(Failure(self.rank, error, seq))
            return False
        return True

    def applied_one(self) -> None:
        """Note that a message of the feeding thread has been processed, so there is room."""
        self.applied += 1
        if self.applied >= self.wake_at:
            self.crew.feeder.ring()

    def pause(self) -> None:
        """Let tests disturb this PU."""
        if self._pauses is not None:
            self._pauses(self.rank)

    def metrics(self) -> UnitMetrics:
        """What it has done so far."""
        return UnitMetrics(
            self.rank,
            **self.counts,
            waits=self.bell.waits,
            depth=self.depth,
            busy=self.busy,
            steps=self.steps,
            helped=self.helped,
        )

    def be_helped(self) -> None:
        """Do all the work of this PU in the calling thread, unless another thread is doing it."""
        while True:
            heard = self.bell.rung
            if not self._turn.acquire(blocking=False):
                return  # the other thread looks at the bell again
            try:
                while self._step():
                    self.helped += 1
            finally:
                self._turn.release()
            if self.bell.rung == heard:
                return

    def _call(self) -> bool:
        # After a failure, every thread processes what came before it on its own.
        lent = self.crew.lends and self.crew.failure is None
        if lent:
            self.crew.called.append(self)
        return lent

    def _run(self) -> None:
        while True:
            # In this order: `stop` is followed by a ring, so this thread cannot miss it.
            heard = self.bell.rung
            if self.crew.stopped:
                return
            with self._turn:
                found = self._step()
            self.crew.help()
            if not found:
                self.bell.wait(heard, awake=not self.crew.lends)

    def _step(self) -> bool:
        """Do one step, and return whether there was anything to do."""
        if self.crew.stopped:
            return False
        try:
            self.pause()
            timed = self._untimed == 0
            before = time.thread_time() if timed else 0.0
            found = self.step()
            if found:
                self.steps += 1
                if timed:
                    took = time.thread_time() - before
                    self.spent += (took - self.spent) / 4
                    self.busy += took
                else:
                    self.busy += self.spent
                timed_one_in = tuning.timed_one_in if self.crew.lends else 1
                self._untimed = (self._untimed + 1) % timed_one_in
            return found
        except BaseException as error:
            # An error of the PU itself, not of what a message asks: its state cannot be trusted.
            self.crew.fail(Failure(self.rank, error, -1))
            self.crew.stop()
            if not isinstance(error, Exception) and threading.current_thread() is not self.thread:
                raise  # an interrupt, meant for the helping thread
            return False


class Room:
    """Limits how many messages are under way to each PU.

    A feeding thread that has to wait is woken when half of them have been processed.
    """

    def __init__(self, crew: Crew, most: int) -> None:
        self._crew = crew
        self._most = most
        self._sent = [0] * len(crew.units)
        for unit in crew.units:
            unit.wake_at = NO_MESSAGE

    def wait(self, check: Callable[[], None]) -> None:
        """Return when every PU can be sent another message; `check` raises if none ever can."""
        check()
        for unit, sent in zip(self._crew.units, self._sent, strict=True):
            if sent - unit.applied < self._most:
                continue
            unit.wake_at = sent - self._most // 2
            while unit.applied < sent - self._most // 2:
                heard = self._crew.feeder.rung
                check()
                if unit.applied < sent - self._most // 2:
                    self._crew.feeder.wait(heard)
            unit.wake_at = NO_MESSAGE

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        return all(
            unit.applied == sent for unit, sent in zip(self._crew.units, self._sent, strict=True)
        )

    def sent(self, rank: int) -> None:
        """Note that a message is under way."""
        self._sent[rank] += 1
