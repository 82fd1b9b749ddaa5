"""Lets one process compile a kernel while others wait for what it keeps.

The operating system drops the lock when the process that holds it ends, however it ends. A waiting
process looks again and again instead of blocking: a file system without locks, a holder that was
stopped, or a child process that inherited the lock must not hang it. After a while it gives up
waiting and compiles the kernel itself.

Whoever has other work does that first instead of waiting: processes that start together then
compile several kernels side by side.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

try:
    import fcntl
except ImportError:  # Windows: processes compile side by side.
    fcntl = None  # type: ignore[assignment]

PATIENCE = 60.0
"""Seconds after which a waiting process compiles too; the largest kernel takes about ten."""
PAUSE = 0.01

Item = TypeVar("Item")
Result = TypeVar("Result")


class Taken(BaseException):
    """Another process has the turn. Not an `Exception`: nobody has made a mistake."""


_waits = ContextVar("_waits", default=True)
"""Whether to wait for a turn that another process has, and not to raise `Taken`."""


def in_any_order(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """The results of some work for each item; what other processes compile for comes last.

    Work may be begun twice, so it must not matter that it was.
    """
    done: dict[int, Result] = {}
    for place, item in enumerate(items if len(items) > 1 else ()):
        with _waiting(False), contextlib.suppress(Taken):
            done[place] = work(item)
    return [done[place] if place in done else work(item) for place, item in enumerate(items)]


@contextlib.contextmanager
def _waiting(waits: bool) -> Iterator[None]:
    before = _waits.set(waits)
    try:
        yield
    finally:
        _waits.reset(before)


@contextlib.contextmanager
def turn(path: Path, done: Callable[[], bool]) -> Iterator[None]:
    """Hold the lock at a path, unless it is done meanwhile or cannot be had."""
    handle = _waited(path, done)
    try:
        # Half of a compilation is of no use, whatever else there is to do.
        with _waiting(True):
            yield
    finally:
        if handle is not None:
            # Removed while it is held: a process that has opened it meanwhile sees that it is gone.
            with contextlib.suppress(OSError):
                path.unlink()
            # Unlocked, not only closed, since a child process may hold the file open.
            fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)


def _waited(path: Path, done: Callable[[], bool]) -> int | None:
    end = time.monotonic() + PATIENCE
    try:
        while fcntl is not None and time.monotonic() < end and not done():
            handle = _taken(path)
            if handle is not None:
                return handle
            if not _waits.get():
                raise Taken
            time.sleep(PAUSE)
    except OSError:
        pass  # A folder that cannot be written to, or a file system without locks.
    return None


def _taken(path: Path) -> int | None:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), os.stat(path)):
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None
