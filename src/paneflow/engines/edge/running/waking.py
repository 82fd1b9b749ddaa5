"""Wakes a loop that waits for sockets, from another thread or from a signal."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Waking:
    """A file descriptor that becomes readable when somebody calls `wake`."""

    def __init__(self) -> None:
        self._heard, self._said = socket.socketpair()
        self._heard.setblocking(False)
        self._said.setblocking(False)

    def fileno(self) -> int:
        """The descriptor, for a poller."""
        return self._heard.fileno()

    def wake(self) -> None:
        """Make the descriptor readable. Nothing happens if it is, or if it is closed."""
        with suppress(OSError):
            self._said.send(b"!")

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Let the signals that Python handles wake the loop, too, while it runs in the main thread.

        A handler runs between two steps of Python. A signal that comes after the last one before
        the poller really waits would be handled when the poller returns: without a time limit,
        never.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.set_wakeup_fd(self._said.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)

    def clear(self) -> None:
        """Wait for the next call of `wake`."""
        with suppress(BlockingIOError):
            while self._heard.recv(4096):
                pass

    def close(self) -> None:
        """Give the descriptor back."""
        self._heard.close()
        self._said.close()
