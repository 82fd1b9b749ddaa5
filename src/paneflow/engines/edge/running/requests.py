"""What other threads want of a root: that it adds a query, or removes one.

A request is checked and written down by the root's own thread, and whoever made it waits until it
is in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, get_ident

from paneflow.engines.edge.programme.root import RootProgramme
from paneflow.engines.edge.records import Asked
from paneflow.engines.edge.running.ledger import Ledger
from paneflow.engines.edge.running.waking import Waking
from paneflow.errors import QueryError

Request = Callable[[RootProgramme], Asked]
"""Gives the record that does what is wanted, or raises why it cannot be done."""


class Requests:
    """Requests that wait for the next turn of the root.

    Args:
        waking: Wakes the root.
    """

    def __init__(self, waking: Waking) -> None:
        self._waking = waking
        self._waiting: SimpleQueue[tuple[Request, Future[None]]] = SimpleQueue()
        self._written: list[Future[None]] = []
        self._thread: int | None = None
        self._lock = Lock()
        self._open = False

    def open(self) -> None:
        """The root runs, or is about to."""
        with self._lock:
            self._open = True

    def make(self, request: Request) -> None:
        """Wait until a request is in the log, or raise why it is not."""
        if self._thread == get_ident():
            raise QueryError(
                "the thread of the root cannot wait for itself: change its queries from another "
                "thread, and not from a function that is called with rows"
            )
        done: Future[None] = Future()
        with self._lock:
            if not self._open:
                raise _idle()
            self._waiting.put((request, done))
        self._waking.wake()
        done.result()

    def take(self, ledger: Ledger) -> None:
        """Write down what is wanted."""
        self._thread = get_ident()
        machine = ledger.machine
        assert isinstance(machine, RootProgramme)
        while True:
            try:
                request, done = self._waiting.get_nowait()
            except Empty:
                return
            try:
                record = request(machine)
            except Exception as error:  # whoever asked is to know, and the root goes on
                done.set_exception(error)
            else:
                self._written.append(done)
                ledger.write(record)

    def settle(self) -> None:
        """All that was written down is in the log."""
        written, self._written = self._written, []
        for done in written:
            done.set_result(None)

    def close(self) -> None:
        """The root takes no more requests."""
        with self._lock:
            self._open = False
        for done in self._written:
            done.set_exception(_idle())
        while not self._waiting.empty():
            _, done = self._waiting.get_nowait()
            done.set_exception(_idle())


def _idle() -> QueryError:
    return QueryError("the root does not run: start it, and then change its queries")
