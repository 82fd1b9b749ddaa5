"""Rows that wait to be read, and those who wait for them."""

from __future__ import annotations

import threading
import time
from collections import deque

import pyarrow as pa

MOST_UNREAD = 2**19
"""Rows that may wait to be read before a stream stops working."""
HANDOVER = 0.0005
"""Seconds that a reader is waited for, at most, so that rows do not lie until the next step."""


class Outbox:
    """Tables of rows, in order, and what comes behind the last of them: the end, or a failure."""

    def __init__(self, lock: threading.RLock, room_comes: threading.Condition) -> None:
        """Both are the stream's; `room_comes` is notified when a full outbox has been emptied."""
        self._lock = lock
        self._room_comes = room_comes
        self._rows_come = threading.Condition(lock)
        self._rows_taken = threading.Condition(lock)
        self._tables: deque[pa.Table] = deque()
        self._readers: set[int] = set()
        self._asleep = 0
        """Readers that wait for rows."""
        self._finishing = False
        self.most = MOST_UNREAD
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
        """Whether some other thread than this one has ever read rows."""
        return not self._readers <= {threading.get_ident()}

    def put(self, table: pa.Table, hand_over: bool) -> None:
        """Add rows. To hand them over is to wait until a reader who sleeps has got them.

        A reader who wakes up needs the interpreter lock, and whoever works keeps it.
        """
        with self._lock:
            self._tables.append(table)
            self.rows += table.num_rows
            self._rows_come.notify_all()
            if hand_over and self._asleep:
                self._rows_taken.wait(HANDOVER)

    def read(self, wait: float) -> pa.Table | None:
        """Rows that can be read; waits so long for the first. None: there are none, now or ever."""
        until = time.monotonic() + wait
        with self._lock:
            self._readers.add(threading.get_ident())
            # A failure comes behind the rows before it, though threads may still be ending.
            while not (self._tables or self.ended or self.failure):
                left = until - time.monotonic()
                if not self._finishing and left <= 0:
                    return None
                self._sleep(None if self._finishing else left)
            if not self._tables:
                self.check()
                return None
            tables, self._tables = list(self._tables), deque()
            self._rows_taken.notify()
            if self.full:
                self._room_comes.notify()
            self.rows = 0
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)

    def check(self) -> None:
        """Raise what the stream has failed with."""
        if self.failure is not None:
            raise self.failure

    def finish(self) -> None:
        """Let those who read wait until the end."""
        with self._lock:
            self._finishing = True
            self._rows_come.notify_all()

    def end(self) -> None:
        """No more rows will come."""
        with self._lock:
            self.ended = True
            self._rows_come.notify_all()

    def _sleep(self, wait: float | None) -> None:
        self._asleep += 1
        try:
            self._rows_come.wait(wait)
        finally:
            self._asleep -= 1
