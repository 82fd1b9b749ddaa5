"""Rings between threads, and how a thread waits for what its rings bring.

A ring has one writer and one reader and a fixed number of places. Messages are references to
whole batches of arrays, so nothing is copied when they cross; the interpreter lock orders the
few steps on the ring itself, and the work on the arrays is done without that lock.

A thread listens to all its rings by one bell. It listens for a moment without the interpreter
lock, since most messages come close behind each other, and then it sleeps until the bell rings: a
stream that is idle costs nothing.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from paneflow.compiling import compiled, held
from paneflow.engines.multicore.tuning import tuning
from paneflow.merging.atomics import add, observe

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
    """Rung by any thread, heard by one.

    Who rings while that thread sleeps may see to things by himself: `instead` says whether he will.
    """

    def __init__(self, instead: Callable[[], bool] = lambda: False) -> None:
        self._instead = instead
        self._rung = np.zeros(1, np.int64)
        self.asleep = False
        """Whether the thread that listens has gone to sleep."""
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.waits = 0

    @property
    def rung(self) -> int:
        """How often it was rung: read it before you look for work, and `wait` with it after."""
        return int(self._rung[0])

    def ring(self) -> None:
        """Something has changed."""
        _count(self._rung)
        if self.asleep and not self._instead():
            self._rouse()

    def wake(self) -> None:
        """Something has changed that the thread must see to itself."""
        _count(self._rung)
        if self.asleep:
            self._rouse()

    def wait(self, heard: int, awake: bool = True) -> None:
        """Return once it has been rung more often than it was heard; stays awake for a moment."""
        if awake and _listen(self._rung, heard, tuning.spins):
            return
        self.waits += 1
        self.asleep = True
        # Who rings now sees that we are asleep; who rang before is seen here.
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
        """Add a message. Who may find the ring full has to ask first."""
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
        """The oldest message, which stays where it is; None if there is none."""
        return self._slots[self._read % len(self._slots)] if len(self) else None

    def take(self) -> Message | None:
        """The oldest message; None if there is none."""
        if self._written == self._read:
            return None
        place = self._read % len(self._slots)
        message = self._slots[place]
        self._slots[place] = None
        self._read += 1
        return message
