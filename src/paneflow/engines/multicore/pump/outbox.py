"""Rows, or late events, that wait to be read, and readers that wait for them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

import pyarrow as pa

from paneflow.engines.multicore.threads.interrupts import Waiters, put_off
from paneflow.engines.multicore.tuning import tuning


class Outbox:
    """Tables of rows, in order, and what follows the last of them: the end, or a failure."""

    def __init__(
        self,
        lock: threading.RLock,
        room_comes: threading.Condition,
        awaited: Callable[[float], None] | None = None,
    ) -> None:
        """`lock` and `room_comes` are the stream's; emptying a full outbox notifies the latter.

        `awaited` is called now and then while a reader waits for the end, with the time at which it
        began to wait, and raises if the end cannot come.
        """
        self._lock = lock
        self._awaited = awaited
        self._room_comes = room_comes
        self._rows_come = Waiters(lock)
        self._rows_taken = threading.Condition(lock)
        self._tables: deque[pa.Table] = deque()
        self._readers: set[int] = set()
        self._ready_to_push: set[int] = set()
        """Threads that have read since they last pushed more than there was room for."""
        self._finishing = False
        self.most = tuning.most_unread
        self.rows = 0
        self.ended = False
        """Whether no more rows will come."""
        self.failure: BaseException | None = None
        """What the stream has failed with."""

    @property
    def full(self) -> bool:
        return self.rows >= self.most

    @property
    def read_elsewhere(self) -> bool:
        """Whether a thread other than this one has ever read rows."""
        return not self._readers <= {threading.get_ident()}

    def lets_push(self) -> bool:
        """Whether this thread may push though there is no room, because rows wait for it alone.

        It may push once between two reads. If it had to wait for room, nobody would read.
        """
        this = threading.get_ident()
        if not self.full or this not in self._ready_to_push:
            return False
        self._ready_to_push.remove(this)
        return True

    def put(self, table: pa.Table, hand_over: bool) -> None:
        """Add rows. With `hand_over`, wait until a sleeping reader has taken them.

        A reader that wakes up needs the interpreter lock, which the working thread would keep.
        """
        with self._lock:
            self._tables.append(table)
            self.rows += table.num_rows
            awaited = len(self._rows_come)
            self._rows_come.wake()
            if hand_over and awaited:
                self._rows_taken.wait(tuning.handover)

    def read(self, wait: float, into: list[pa.Table]) -> None:
        """Put rows that can be read into a list; waits up to `wait` seconds for the first.

        The list stays empty if there are none.
        """
        since = time.monotonic()
        until = since + wait
        while True:
            with put_off, self._lock:
                self._readers.add(threading.get_ident())
                self._ready_to_push.add(threading.get_ident())
                if self._tables:
                    self._take(into)
                    return
                # A failure is raised after the rows before it, even while threads are ending.
                self.check()
                left = until - time.monotonic()
                if self.ended or (not self._finishing and left <= 0):
                    return
                waiter = self._rows_come.enrol()
            if not self._finishing:
                self._rows_come.sleep(waiter, left)
            elif self._awaited is None:
                self._rows_come.sleep(waiter)
            else:
                self._rows_come.sleep(waiter, tuning.stuck_look)
                self._awaited(since)

    def _take(self, into: list[pa.Table]) -> None:
        """Take the first tables that have the same columns, as one."""
        tables = [self._tables.popleft()]
        while self._tables and self._tables[0].schema.equals(tables[0].schema):
            tables.append(self._tables.popleft())
        taken = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        into.append(taken)
        self._rows_taken.notify()
        if self.full:
            self._room_comes.notify()
        self.rows -= taken.num_rows

    def give_back(self, tables: list[pa.Table]) -> None:
        """Put back rows that did not reach their reader, before all others."""
        with put_off, self._lock:
            self._tables.extendleft(reversed(tables))
            self.rows += sum(table.num_rows for table in tables)
            tables.clear()

    def check(self) -> None:
        """Raise what the stream has failed with."""
        if self.failure is not None:
            raise self.failure

    def fail(self, error: BaseException) -> None:
        """Raise an error in readers once they have read all rows."""
        with self._lock:
            self.failure = error
            self._rows_come.wake()

    def finish(self) -> None:
        """Let readers wait until the end."""
        with self._lock:
            self._finishing = True
            self._rows_come.wake()

    def end(self) -> None:
        """Say that no more rows will come."""
        with self._lock:
            self.ended = True
            self._rows_come.wake()
