"""What both worker models share: an emitter that feeds workers, and a collector of their rows.

Everything that the emitter gets, events or a watermark, is a message with a number. Several workers
process parts of a message at the same time. Their rows are put out message by message, so the order
of rows does not depend on which worker was faster.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from paneflow.aggregates.aggregate import Kinds
from paneflow.engines.multicore.completeness import Completeness, no_rows
from paneflow.engines.multicore.contract import Batch, Pauses, Rows
from paneflow.engines.multicore.threads.crewed import Crewed
from paneflow.engines.multicore.threads.ring import Ring
from paneflow.engines.multicore.threads.unit import Crew, Unit
from paneflow.engines.multicore.ticks import BEFORE_ALL, END_OF_STREAM
from paneflow.engines.multicore.tuning import tuning
from paneflow.errors import UnsupportedError
from paneflow.windows import Custom

if TYPE_CHECKING:
    from paneflow.query import Query


@dataclass(eq=False)
class _Expected:
    parts: int
    arrived: float
    passed: int
    rows: list[Rows] = field(default_factory=list)
    later: set[int] = field(default_factory=set)
    """Parts whose rows come with a later message."""


class Gathering:
    """Collects the parts of messages, and puts them out in the order of messages."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._lock = threading.Lock()
        self._messages: deque[_Expected] = deque()
        self._first = 0
        self._passed = BEFORE_ALL
        """What the last complete message has passed."""
        self._reached: dict[int, int] = {}
        """What the parts have passed that left their rows for later."""

    def __len__(self) -> int:
        return len(self._messages)

    def expect(self, parts: int, arrived: float, passed: int) -> int:
        """Announce the next message, and return its number. Without parts it is complete."""
        with self._lock:
            self._messages.append(_Expected(parts, arrived, passed))
            seq = self._first + len(self._messages) - 1
        if parts == 0:
            self.flush()
        return seq

    def put(self, seq: int, rows: list[Rows] | None, part: int = 0) -> None:
        """Take the rows of one part of a message; None if they come with a later message."""
        with self._lock:
            message = self._messages[seq - self._first]
            if rows is None:
                message.later.add(part)
            else:
                message.rows += rows
            message.parts -= 1
        self.flush()

    def flush(self) -> None:
        """Put out what is complete; after a failure, only what comes before it, then stop."""
        crew = self._crew
        with self._lock:
            while self._messages and self._messages[0].parts == 0 and not crew.broken(self._first):
                message = self._messages.popleft()
                self._first += 1
                crew.output.extend([*message.rows, no_rows(message.arrived, self._reach(message))])
                if message.passed == END_OF_STREAM:
                    crew.finished = True
            broken = crew.broken(self._first)
        if broken:
            crew.stop()
        crew.feeder.ring()

    def _reach(self, message: _Expected) -> int:
        """Before when all rows have been put out: parts may leave theirs for different messages."""
        if message.passed == BEFORE_ALL:
            return BEFORE_ALL
        self._reached = {part: self._reached.get(part, self._passed) for part in message.later}
        self._passed = message.passed
        return min([message.passed, *self._reached.values()])


@dataclass(frozen=True, eq=False)
class PartOfMessage:
    """What a worker gets: the number of the message that it is a part of, and when that arrived."""

    seq: int
    arrived: float


Given = TypeVar("Given", bound=PartOfMessage)


class Worker(Unit, Generic[Given]):
    """A PU that gets parts of messages, and gives back the rows of each."""

    def __init__(
        self, crew: Crew, rank: int, pauses: Pauses | None, gathering: Gathering, ahead: int
    ) -> None:
        """`ahead` is how many parts may wait for this worker."""
        super().__init__(crew, rank, pauses)
        self.inbox: Ring[Given] = Ring(ahead, self.bell)
        self._gathering = gathering

    @property
    def depth(self) -> int:
        return len(self.inbox)

    def step(self) -> bool:
        given = self.inbox.take()
        if given is None:
            return False
        rows: list[Rows] = []
        self.attempt(given.seq, lambda: rows.extend(self.work(given)))
        self._gathering.put(given.seq, rows)
        self.applied_one()
        return True

    @abstractmethod
    def work(self, given: Given) -> list[Rows]:
        """The rows that become final with a part of a message."""


class Farm(Crewed):
    """An emitter in the feeding thread, and its workers. Subclasses hand out the work."""

    def __init__(self, query: Query, kinds: Kinds) -> None:
        why = self.refuses(query, kinds)
        if why is not None:
            raise UnsupportedError(f"strategy {self.name!r} refuses the query: {why}")
        self._crew = Crew(self.name)
        self._gathering = Gathering(self._crew)
        self._passing = Completeness(query)
        self._arrived = time.perf_counter()
        self._watermark = BEFORE_ALL

    @abstractmethod
    def _emit(self, events: Batch | None, watermark: int, passed: int) -> None:
        """Hand out events, or a watermark, to workers."""

    def feed(self, batch: Batch) -> None:
        if not len(batch):
            return
        assert isinstance(batch, Batch)
        self._await_room()
        self._arrived = batch.arrived
        self._passing.note(batch)
        self._emit(batch, self._watermark, BEFORE_ALL)

    def advance(self, watermark: int) -> None:
        self._await_room()
        self._watermark = watermark
        self._passing.settle()
        self._emit(None, watermark, self._passing.passed(watermark))

    @property
    def idle(self) -> bool:
        return not len(self._gathering)

    @property
    def brief(self) -> bool:
        return False

    def finish(self) -> None:
        self.advance(END_OF_STREAM)
        self._await_end()

    def _await_room(self) -> None:
        while True:
            heard = self._crew.feeder.rung
            self._check_open()
            if len(self._gathering) < tuning.messages_ahead:
                return
            self._crew.feeder.wait(heard)


def refused_window(query: Query) -> str | None:
    """Why a window cannot be handed out; None if all can."""
    for label, window in query.windows.items():
        if isinstance(window, Custom):
            return (
                f"window {label!r} ({window}) is custom: its windows follow from a state that "
                f"sees every event of a key in turn; use 'auto', or one worker"
            )
    return None
