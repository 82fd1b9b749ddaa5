"""Defers Ctrl-C while the state of a stream is half changed.

Python raises KeyboardInterrupt in the main thread between any two steps of any function: right
after a lock was taken, or when one of two counts has changed. So steps that belong together are put
in a section, `with put_off:`, and an interrupt that arrives meanwhile is raised where the section
ends. Sections are short. A thread that has to wait leaves the section first, and waits on a lock of
its own that nothing else depends on, where it may be interrupted at any point.

Only a small push has no section, because entering one would take too long. The push takes effect
by a single call, and what an interrupt prevented is made up for (`Pushing._mend`). This relies on
CPython: nothing can come between `with` and a lock written in C that it takes or releases.

Numba and LLVM do not survive an interrupt during a compilation, so the main thread compiles inside
a section, or leaves it to another thread.
"""

from __future__ import annotations

# Not `signal`: its wrappers look up an enum at each call, which takes longer than a small push.
import _signal  # type: ignore[import-not-found]
import os
import threading
from signal import SIGINT
from types import FrameType
from typing import Any


class PutOff:
    """Sections of the main thread that SIGINT does not interrupt; other threads never see it.

    The handler that is set for SIGINT is called when the outermost section has ended. There is one
    instance, since there is one main thread.
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
            # Raises an interrupt that came before; from here on none is raised.
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
        # The section is just ending, or the handler of another signal has left it early.
        _signal.signal(SIGINT, self._handler)
        self._handler(number, frame)

    def _forked(self) -> None:
        self._main = threading.get_ident()


put_off = PutOff()


class Waiters:
    """Threads that wait until something has changed, each on a lock of its own.

    All methods except `sleep` must be called while holding the lock:

        with put_off, lock:
            if not changed():
                waiter = waiters.enrol()
        waiters.sleep(waiter, seconds)

    A waiter that was interrupted is dropped when the next change wakes all waiters.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._asleep: list[threading.Lock] = []

    def __len__(self) -> int:
        return len(self._asleep)

    def enrol(self) -> threading.Lock:
        """Add a waiter, to be passed to `sleep`."""
        waiter = threading.Lock()
        waiter.acquire()
        self._asleep.append(waiter)
        return waiter

    def sleep(self, waiter: threading.Lock, seconds: float = threading.TIMEOUT_MAX) -> None:
        """Return when something has changed since `enrol`, or when time is up."""
        if not waiter.acquire(True, min(max(seconds, 0.0), threading.TIMEOUT_MAX)):
            with put_off, self._lock:
                if waiter in self._asleep:
                    self._asleep.remove(waiter)

    def wake(self) -> None:
        """Wake all waiters: something has changed."""
        for waiter in self._asleep:
            waiter.release()
        self._asleep.clear()
