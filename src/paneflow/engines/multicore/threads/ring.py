"""Rings between threads, and how a thread waits for messages.

A ring has one writer, one reader and a fixed number of places. Messages are references to whole
batches of arrays, so nothing is copied. The interpreter lock orders the few steps on the ring
itself; the work on the arrays is done without that lock.

A thread waits for all its rings by one bell. It polls the bell for a moment without the interpreter
lock, since most messages come in quick succession, and then sleeps until the bell rings. So an idle
stream costs nothing.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from paneflow.compiling import compiled, held
from paneflow.engines.multicore.tuning import tuning
from paneflow.merging.machine.atomics import add, observe

Message = TypeVar("Message")


@held
def _count(cells):  # type: ignore[no-untyped-def]
    add(cells, 0, 1)


@compiled
def _listen(cells, heard, spins):  # type: ignore[no-untyped-def]
    while spins > 0 and observe(cells, 0) == heard:
        spins -= 1
    return spins > 0


class Bell:
    """Rung by any thread, waited for by one.

    A thread that rings while that one sleeps may do its work instead of waking it: `instead` is
    called then, and returns whether it will.
    """

    def __init__(self, instead: Callable[[], bool] = lambda: False) -> None:
        self._instead = instead
        self._rung = np.zeros(1, np.int64)
        self.asleep = False
        """Whether the waiting thread has gone to sleep."""
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.waits = 0

    @property
    def rung(self) -> int:
        """How often it was rung: read this before looking for work, and pass it to `wait` after."""
        return int(self._rung[0])

    def ring(self) -> None:
        """Announce a change."""
        _count(self._rung)
        if self.asleep and not self._instead():
            self._rouse()

    def wake(self) -> None:
        """Announce a change that the waiting thread must handle itself."""
        _count(self._rung)
        if self.asleep:
            self._rouse()

    def wait(self, heard: int, awake: bool = True) -> None:
        """Return once it has been rung since `heard` was read; polls for a moment, then sleeps."""
        if awake and _listen(self._rung, heard, tuning.spins):
            return
        self.waits += 1
        self.asleep = True
        # A thread that rings from here on sees `asleep`; an earlier ring is seen below.
        while self.rung == heard:
            self._wake.get()
            self.asleep = True
        self.asleep = False

    def _rouse(self) -> None:
        self.asleep = False
        self._wake.put(None)


class Ring(Generic[Message]):
    """A queue with a fixed number of places from one thread to another."""

    def __init__(self, places: int, reader: Bell) -> None:
        self._slots: list[Message | None] = [None] * places
        self._reader = reader
        self._written = 0
        self._read = 0

    def __len__(self) -> int:
        return self._written - self._read

    @property
    def full(self) -> bool:
        return len(self) == len(self._slots)

    def put(self, message: Message) -> None:
        """Add a message; a writer that may find the ring full has to ask first."""
        if self.full:
            raise RuntimeError(
                f"a ring of {len(self._slots)} places is full: its writer must wait until the "
                f"reader has taken a message"
            )
        self._slots[self._written % len(self._slots)] = message
        self._written += 1
        self._reader.ring()

    @property
    def head(self) -> Message | None:
        """The oldest message, without taking it; None if there is none."""
        return self._slots[self._read % len(self._slots)] if len(self) else None

    def take(self) -> Message | None:
        """Take the oldest message; None if there is none."""
        if self._written == self._read:
            return None
        place = self._read % len(self._slots)
        message = self._slots[place]
        self._slots[place] = None
        self._read += 1
        return message
