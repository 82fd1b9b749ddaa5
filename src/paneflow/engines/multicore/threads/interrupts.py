"""Ctrl-C at a better moment: never while the state of a stream is half changed.

Python raises KeyboardInterrupt in the main thread between any two steps of any function: where a
lock has just been taken and nobody has noted it yet, or where one of two counts has moved. So the
few steps that belong together stand in a section, `with put_off:`, and an interrupt that comes
meanwhile is raised where the section ends. A section is short. Whoever has to wait leaves it first,
and waits on a lock of its own that nothing else depends on: that may be interrupted anywhere.

A small push alone stands in no section, which would take it too long: it is in by one call, and
what it did not come to is made up for (`Pump._mend`). That rests on CPython: where `with` takes a
lock that is written in C, or gives it up, nothing comes in between.

Numba and LLVM do not survive an interrupt in the middle of a compilation: what the main thread may
compile, it compiles in a section, or leaves to another thread.
"""

from __future__ import annotations

# Not `signal`: its wrappers look for an enum at each call, which takes longer than a small push.
import _signal  # type: ignore[import-not-found]
import os
import threading
from signal import SIGINT
from types import FrameType
from typing import Any


class PutOff:
    """Sections of the main thread that SIGINT does not interrupt; in other threads it never does.

    Whatever handler is set for SIGINT is called when the outermost section has ended. There is one
    of this class, since there is one main thread.
    """

    def __init__(self) -> None:
        self._main = threading.main_thread().ident
        self._depth = 0
        self._handler: Any = None
        self._note_it = self._note
        self._came: FrameType | None = None
        self._has_come = False
        os.register_at_fork(after_in_child=self._forked)

    def __enter__(self) -> None:
        if threading.get_ident() != self._main:
            return
        if self._depth:
            self._depth += 1
            return
        handler = _signal.getsignal(SIGINT)
        if callable(handler):  # otherwise it raises nothing
            if handler is not self._note_it:
                self._handler = handler
            self._has_come = False
            # Raises what came before; from then on nothing is raised.
            _signal.signal(SIGINT, self._note_it)
            self._depth = 1

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if threading.get_ident() != self._main or self._depth == 0:
            return
        self._depth -= 1
        if self._depth:
            return
        _signal.signal(SIGINT, self._handler)
        if self._has_come:
            frame, self._came, self._has_come = self._came, None, False
            self._handler(SIGINT, frame)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._depth:
            self._came, self._has_come = frame, True
            return
        # A section is just ending, or some other signal's handler has torn it.
        _signal.signal(SIGINT, self._handler)
        self._handler(number, frame)

    def _forked(self) -> None:
        self._main = threading.get_ident()


put_off = PutOff()


class Waiters:
    """Threads that wait until something has changed, each on a lock of its own.

    All but `sleep` is for those who hold the lock:

        with put_off, lock:
            if not changed():
                waiter = waiters.enrol()
        waiters.sleep(waiter, seconds)

    A waiter that was interrupted is forgotten when the next change wakes everybody.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._asleep: list[threading.Lock] = []

    def __len__(self) -> int:
        return len(self._asleep)

    def enrol(self) -> threading.Lock:
        """What to sleep on."""
        waiter = threading.Lock()
        waiter.acquire()
        self._asleep.append(waiter)
        return waiter

    def sleep(self, waiter: threading.Lock, seconds: float = threading.TIMEOUT_MAX) -> None:
        """Return when something has changed since it was enrolled, or time is up."""
        if not waiter.acquire(True, min(max(seconds, 0.0), threading.TIMEOUT_MAX)):
            with put_off, self._lock:
                if waiter in self._asleep:
                    self._asleep.remove(waiter)

    def wake(self) -> None:
        """Something has changed."""
        for waiter in self._asleep:
            waiter.release()
        self._asleep.clear()
