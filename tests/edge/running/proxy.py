"""A link that can be slow, stuck, cut, damaged or out of order: real TCP, in the middle."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from types import TracebackType

_CHUNK = 1 << 14


@dataclass(eq=False)
class Connection:
    """What passes from one socket to the other, in both directions."""

    below: socket.socket
    above: socket.socket
    flows: Event = field(default_factory=Event)
    overtaken: bool = False


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
        self._open: set[Connection] = set()
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
        with self._lock:
            for connection in self._open:
                connection.flows.set()

    def stall(self) -> None:
        """Keep connections, but hold everything back until the link heals."""
        self._flows.clear()

    def overtake(self) -> None:
        """Let nodes connect anew; what they have sent before arrives only when the link heals."""
        with self._lock:
            for connection in self._open:
                connection.overtaken = True
                connection.flows.clear()
                with suppress(OSError):
                    connection.below.shutdown(socket.SHUT_WR)
        self._flows.set()

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
            connection = Connection(below, above)
            connection.flows.set()
            with self._lock:
                self._open.add(connection)
            self._start(self._pass_up, connection)
            self._start(self._pass_down, connection)

    def _pass_up(self, connection: Connection) -> None:
        with suppress(OSError):
            while piece := connection.below.recv(_CHUNK):
                self._wait(connection)
                if self._flips:
                    self._flips -= 1
                    middle = len(piece) // 2
                    piece = piece[:middle] + bytes([piece[middle] ^ 4]) + piece[middle + 1 :]
                connection.above.sendall(piece)
        self._end(connection)

    def _pass_down(self, connection: Connection) -> None:
        with suppress(OSError):
            while piece := connection.above.recv(_CHUNK):
                self._wait(connection)
                if not connection.overtaken:
                    connection.below.sendall(piece)
        self._end(connection)

    def _wait(self, connection: Connection) -> None:
        """Hold a piece back for as long as the link does that."""
        self._flows.wait()
        connection.flows.wait()
        if self.delay:
            self._closed.wait(self.delay)

    def _break(self) -> None:
        with self._lock:
            broken, self._open = self._open, set()
        for connection in broken:
            _close(connection)

    def _end(self, connection: Connection) -> None:
        with self._lock:
            self._open.discard(connection)
        _close(connection)


def _close(connection: Connection) -> None:
    connection.flows.set()
    for end in (connection.below, connection.above):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
