"""A link between two nodes that can be slow, stuck, cut or damaged: real TCP, in the middle."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Event, Lock, Thread
from types import TracebackType

_CHUNK = 1 << 14


class Proxy:
    """Passes connections on to an address. What happens on the way can be changed at any time."""

    def __init__(self, target: str) -> None:
        host, _, port = target.removeprefix("tcp://").rpartition(":")
        self._target = (host, int(port))
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
        self.delay = 0.0
        """Seconds that every piece is held back."""
        self.accepted = 0
        self._open: set[socket.socket] = set()
        self._lock = Lock()
        self._flows = Event()
        self._flows.set()
        self._up = True
        self._flips = 0
        self._closed = Event()
        self._threads: list[Thread] = []
        self._start(self._accept)

    def cut(self) -> None:
        """Break every connection, perhaps in the middle of a message, and refuse new ones."""
        self._up = False
        self._break()

    def heal(self) -> None:
        """Let connections be made, and everything flow."""
        self._up = True
        self._flows.set()

    def stall(self) -> None:
        """Keep connections, but hold everything back until the link heals."""
        self._flows.clear()

    def damage(self, pieces: int = 1) -> None:
        """Change a bit in each of the next pieces that go up."""
        self._flips = pieces

    def close(self) -> None:
        self._closed.set()
        self._flows.set()
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._break()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self, work: object, *args: object) -> None:
        assert callable(work)
        thread = Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                below, _ = self._server.accept()
            except OSError:
                return
            try:
                above = socket.create_connection(self._target) if self._up else None
            except OSError:
                above = None
            if above is None:
                below.close()
                continue
            self.accepted += 1
            with self._lock:
                self._open |= {below, above}
            self._start(self._pass_on, below, above, True)
            self._start(self._pass_on, above, below, False)

    def _pass_on(self, source: socket.socket, sink: socket.socket, upwards: bool) -> None:
        with suppress(OSError):
            while piece := source.recv(_CHUNK):
                self._flows.wait()
                if self.delay:
                    self._closed.wait(self.delay)
                if upwards and self._flips:
                    self._flips -= 1
                    middle = len(piece) // 2
                    piece = piece[:middle] + bytes([piece[middle] ^ 4]) + piece[middle + 1 :]
                sink.sendall(piece)
        self._end(source, sink)

    def _break(self) -> None:
        with self._lock:
            self._end(*self._open, locked=True)

    def _end(self, *ends: socket.socket, locked: bool = False) -> None:
        if not locked:
            with self._lock:
                self._end(*ends, locked=True)
            return
        for end in ends:
            if end in self._open:
                self._open.remove(end)
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
