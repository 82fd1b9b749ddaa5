"""One worker: slices and windows are made by the very thread that puts events in order.

Nothing is handed over to another thread. Time windows of aggregates with
partials of fixed size go by slices, sessions of them by cells, and all else by events.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from paneflow.aggregates.aggregate import Kinds
from paneflow.engines.multicore.completeness import Completeness, no_rows
from paneflow.engines.multicore.contract import Batch, Pauses, Rows, Strategy, UnitMetrics, stopped
from paneflow.engines.multicore.one_worker.by_events import ByEvents
from paneflow.engines.multicore.one_worker.by_sessions import BySessions, foldable
from paneflow.engines.multicore.one_worker.by_slices import BySlices, timed_by_slices
from paneflow.engines.multicore.ticks import BEFORE_ALL, END_OF_STREAM
from paneflow.errors import PaneflowError
from paneflow.windows import Session

if TYPE_CHECKING:
    from paneflow.query import Query


class OpenStream:
    """The open windows of a query: events and watermarks in, windows that are final out.

    It has no thread. Each worker that answers a share of the windows alone has one of these.
    """

    def __init__(self, query: Query, kinds: Kinds, merge: str = "auto") -> None:
        self._labels = {label: k for k, label in enumerate(sorted(query.windows))}
        timed = timed_by_slices(query, kinds)
        others = {n: w for n, w in query.windows.items() if n not in timed}
        folded = {n: w for n, w in others.items() if isinstance(w, Session)}
        if not foldable(query, kinds):
            folded = {}
        others = {n: w for n, w in others.items() if n not in folded}
        self._by_slices = (
            BySlices(query.with_windows(timed), kinds, self._labels, merge) if timed else None
        )
        self._by_sessions = [
            BySessions(query, kinds, self._labels[n], w) for n, w in folded.items()
        ]
        self._by_events = (
            ByEvents(query.with_windows(others), self._labels, merge) if others else None
        )
        self._settled: BySlices | None = None
        self.settle()

    @property
    def held(self) -> int:
        """How many slices, sessions and events are remembered."""
        every = (self._by_slices, *self._by_sessions, self._by_events)
        return sum(each.held for each in every if each is not None)

    def settle(self) -> None:
        """What has been taken and given out stays so."""
        self._settled = None if self._by_slices is None else self._by_slices.copy()
        for each in (*self._by_sessions, self._by_events):
            if each is not None:
                each.settle()

    def undo(self) -> None:
        """As it was when it was settled."""
        self._by_slices = None if self._settled is None else self._settled.copy()
        for each in (*self._by_sessions, self._by_events):
            if each is not None:
                each.undo()

    def take(self, events: Batch) -> None:
        """Take events in, in total order, or stragglers."""
        for each in (self._by_slices, *self._by_sessions, self._by_events):
            if each is not None:
                each.take(events)

    def advance(self, watermark: int, arrived: float) -> list[Rows]:
        """The windows that are final at a watermark."""
        if watermark == BEFORE_ALL:
            return []
        every = (self._by_slices, *self._by_sessions, self._by_events)
        return [
            rows for each in every if each is not None for rows in each.advance(watermark, arrived)
        ]

    def early(self, held: Batch | None, arrived: float) -> list[Rows]:
        """The windows that are open, as they would be if all events had come with these.

        Nothing of this stays; what was taken and given out must have been settled.
        """
        # A copy of slices costs little, and what is kept merged need not be built again.
        slices = None if self._by_slices is None else self._by_slices.copy()
        every = [each for each in (slices, *self._by_sessions, self._by_events) if each is not None]
        try:
            for each in every:
                if held is not None:
                    each.take(held)
            return [rows for each in every for rows in each.advance(END_OF_STREAM, arrived)]
        finally:
            for changed in (*self._by_sessions, self._by_events):
                if changed is not None:
                    changed.undo()


class Single(Strategy):
    """Answers in the caller's thread."""

    name: ClassVar[str] = "single"

    @classmethod
    def refuses(cls, query: Query, kinds: Kinds) -> str | None:
        return None

    def __init__(
        self,
        query: Query,
        kinds: Kinds,
        workers: int,
        pauses: Pauses | None = None,
        merge: str = "auto",
    ) -> None:
        self._open = OpenStream(query, kinds, merge)
        self._passing = Completeness(query)
        self._pauses = pauses
        self._rows: list[Rows] = []
        self._arrived = 0.0
        self._tuples = self._results = 0
        self._closed = BEFORE_ALL
        self._stopped = False
        # A session is not closed by the moment at which it ends.
        self._at_end = not any(isinstance(w, Session) for w in query.windows.values())
        self._since: list[Batch] = []
        """What has come since the last watermark, should that go wrong."""

    def feed(self, batch: Batch) -> None:
        self._check_open()
        if not len(batch):
            return
        assert isinstance(batch, Batch)
        if self._pauses is not None:
            self._pauses(0)
        self._arrived = batch.arrived
        self._tuples += len(batch)
        self._since.append(batch)
        with self._attempt():
            self._take(batch)

    def advance(self, watermark: int) -> None:
        self._check_open()
        with self._attempt(watermark):
            self._close(watermark)
        self._settle()
        self._since = []

    def early(self, held: Batch | None) -> list[Rows]:
        """The windows that are open at the last watermark, as they would be if the stream ended.

        `held` are events that are not final yet, in order. Nothing of this stays.
        """
        try:
            return self._open.early(held, self._arrived)
        except PaneflowError:
            raise
        except Exception as error:
            raise self._failure(error) from error

    @property
    def idle(self) -> bool:
        return True

    @property
    def brief(self) -> bool:
        return False

    def take(self) -> list[Rows]:
        rows, self._rows = self._rows, []
        return rows

    def finish(self) -> None:
        self.advance(END_OF_STREAM)

    def stop(self) -> None:
        self._stopped = True
        self._rows = []

    def metrics(self) -> list[UnitMetrics]:
        held = self._open.held
        return [UnitMetrics(0, tuples=self._tuples, results=self._results, depth=held)]

    def _check_open(self) -> None:
        if self._stopped:
            raise stopped(self.name)

    def _take(self, events: Batch) -> None:
        self._passing.note(events)
        self._open.take(events)

    def _close(self, watermark: int) -> None:
        rows = self._open.advance(watermark, self._arrived)
        self._results += sum(map(len, rows))
        # Only behind the last of them is it known that nothing more ends so early.
        self._rows += [*rows, no_rows(self._arrived, self._passing.passed(watermark))]
        self._closed = watermark

    @contextlib.contextmanager
    def _attempt(self, watermark: int = BEFORE_ALL) -> Iterator[None]:
        """On a failure, give out what was final before, and say what failed, and how."""
        try:
            yield
        except Exception as error:
            self._undo()
            if all(self._goes_well(events) for events in self._since):
                self._close_before(watermark)
            if isinstance(error, PaneflowError):  # bad data speaks for itself
                raise
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> PaneflowError:
        return PaneflowError(
            f"processing unit 0 of 1 (strategy {self.name!r}) failed with "
            f"{type(error).__name__}: {error}; its traceback is shown above, and the rows "
            f"that were final before are kept"
        )

    def _goes_well(self, events: Batch) -> bool:
        """Answer events up to the first that cannot be answered; whether there is none."""
        try:
            self._take(events)
            if not events.behind:
                self._close(int(events.t[-1]))
        except Exception:
            self._undo()
            if len(events) == 1:
                if not events.behind:
                    self._close_by(events)
                return False
            early = np.arange(len(events)) < len(events) // 2
            return self._goes_well(events.chosen(early)) and self._goes_well(events.chosen(~early))
        self._settle()
        return True

    def _close_by(self, event: Batch) -> None:
        """Close what an event ends, up to the first window that fails, unless the event does."""
        with contextlib.suppress(Exception):
            self._take(event)
            self._settle()
            self._close_before(int(event.t[0]))

    def _settle(self) -> None:
        """From here on everything can be undone."""
        self._open.settle()
        self._passing.settle()

    def _undo(self) -> None:
        """Back to where it was settled."""
        self._open.undo()
        self._passing.undo()

    def _close_before(self, watermark: int) -> None:
        """Close what can be closed of windows that a watermark ends, up to the first that fails."""
        while watermark - self._closed > 1:
            between = self._closed + (watermark - self._closed) // 2
            try:
                self._close(between)
            except Exception:
                self._undo()
                watermark = between
            else:
                self._settle()
        # The watermark is beyond it: nothing will come that ends with what was closed last.
        passed = min(self._closed + self._at_end, self._passing.passed(self._closed + 1))
        self._rows.append(no_rows(self._arrived, passed))
