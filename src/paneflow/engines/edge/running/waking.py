"""Wakes a loop that waits for sockets, from another thread or from a signal."""

from __future__ import annotations

import socket
from contextlib import suppress


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

    def clear(self) -> None:
        """Wait for the next call of `wake`."""
        with suppress(BlockingIOError):
            while self._heard.recv(4096):
                pass

    def close(self) -> None:
        """Give the descriptor back."""
        self._heard.close()
        self._said.close()
