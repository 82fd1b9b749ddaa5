"""What the stream and the ways to answer it agree on.

Everything about arrival is settled before events reach a strategy: they come in total order, and no
earlier ones will follow, except for *stragglers*: events behind the watermark that have an open
window. Stragglers come in batches of their own, after windows that are closed to them have been
emitted. After a strategy, rows are sorted and typed. The strategy itself hands the work to
processing units (PUs), each of them one thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from paneflow.aggregates.aggregate import Kinds
from paneflow.aggregates.operator import Array
from paneflow.errors import PaneflowError
from paneflow.slicing.columns import Column

if TYPE_CHECKING:
    from paneflow.query import Query

Pauses = Callable[[int], None]
"""Called by each PU with its rank between two steps; tests make it sleep."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Events in total order, keys mixed, all final: only stragglers may still come before them."""

    key: Array
    """Codes of keys, int64: dense from 0, in the order in which keys first appear."""
    t: Array
    """Times, int64, never decreasing within a batch nor, except for stragglers, across batches."""
    given: pa.RecordBatch
    """The query's columns as they were pushed, one row for each event."""
    columns: dict[str, Column]
    """The columns that windows and aggregates read, as kernels hold them; texts only in `given`."""
    arrived: float
    """`time.perf_counter()` at the first push in the batch that may have ended windows.

    If no push may have ended any, at the first of them."""
    order: Array | None = field(default=None, kw_only=True)
    """Time and source as one number, if there are several sources and a result depends on it.

    With stragglers, times alone do not give the order of events with equal times."""
    behind: bool = field(default=False, kw_only=True)
    """Whether these are stragglers, behind the last watermark that was passed to `advance`.

    They join time windows that end after it, and sessions that are open at it; they never join
    windows by positions, marks or growing values."""

    @property
    def moments(self) -> Array:
        """What orders the events; equal values stay in the order in which they came."""
        return self.t if self.order is None else self.order

    def between(self, start: int, end: int) -> Batch:
        """Consecutive events, as views."""
        if end - start == len(self):
            return self
        return self._part(slice(start, end), self.given.slice(start, end - start))

    def chosen(self, mask: Array) -> Batch:
        """Some of the events, copied."""
        return self._part(mask, self.given.filter(pa.array(mask)))

    def _part(self, which: Array | slice, given: pa.RecordBatch) -> Batch:
        return replace(
            self,
            key=self.key[which],
            t=self.t[which],
            given=given,
            columns={name: column.part(which) for name, column in self.columns.items()},
            order=None if self.order is None else self.order[which],
        )

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True, eq=False)
class Result:
    """The values of one aggregate for many windows, and which of them are valid (None for all)."""

    values: Array | pa.Array
    valid: Array | None


@dataclass(frozen=True, eq=False)
class Rows:
    """Final windows, with one array for each column.

    Within one `Rows` they are in any order, but no later `Rows` ends before an earlier `passed`.
    Without rows, only `passed` counts, and `results` may be empty.
    """

    label: Array
    """int32: the place of the window's label among all labels in sorted order."""
    key: Array
    seq: Array
    start: Array
    end: Array
    results: dict[str, Result]
    arrived: float
    """`Batch.arrived` of the batch that made the last of these windows final."""
    passed: int
    """No later row has an `end` below this: what ends before it is complete, ties included."""

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True)
class UnitMetrics:
    """What one PU has done so far; docs/multicore.md compares it with the tables of the thesis."""

    rank: int
    tuples: int = 0
    """Events it received ("get tuple")."""
    forwarded: int = 0
    """Events it passed on to a neighbour ("forward tuple")."""
    hash_operations: int = 0
    windows_found: int = 0
    """Windows found or created, once for each contributing event or pane; in `pane_line`, parts of
    windows."""
    window_updates: int = 0
    """Steps of an aggregate on a window, by an event or by a pane."""
    pane_updates: int = 0
    """Steps of an aggregate on a pane, by an event."""
    panes_forwarded: int = 0
    """Panes it received, its own included, and processed or passed on ("get & forward pane")."""
    result_checks: int = 0
    """How often it checked whether a result set is due."""
    result_sets: int = 0
    """Result sets it added its windows to, and passed on or emitted."""
    results: int = 0
    """Windows it finished."""
    waits: int = 0
    """How often it found nothing to do and waited."""
    depth: int = 0
    """Messages in its rings now."""
    busy: float = 0.0
    """Seconds of processor time spent on its messages. Of short messages only some are timed, and
    the others are taken to last as long."""
    steps: int = 0
    """Messages it has processed."""
    helped: int = 0
    """How many of these another thread has processed in its place."""


class Strategy(ABC):
    """One way to answer with threads, which run from the beginning until `stop`.

    `feed`, `advance` and `finish` are called by one thread; `take` may be called by another.
    """

    name: ClassVar[str]
    front: ClassVar[type[Any] | None] = None
    """What puts events in order for it, if it does not leave that to the usual front.

    Pushing threads add to such a front by themselves (`multiway/source_front.py`)."""

    @classmethod
    @abstractmethod
    def refuses(cls, query: Query, kinds: Kinds) -> str | None:
        """Why it cannot serve a query over columns of these kinds; None if it can."""

    @abstractmethod
    def __init__(
        self, query: Query, kinds: Kinds, workers: int, pauses: Pauses | None = None
    ) -> None: ...

    @abstractmethod
    def feed(self, batch: Batch) -> None:
        """Take events, or none; waits while too many are under way, raises if a PU has failed."""

    @abstractmethod
    def advance(self, watermark: int) -> None:
        """Make windows final that end by the watermark: nothing earlier will come for them."""

    @property
    @abstractmethod
    def idle(self) -> bool:
        """Whether everything it was given has been processed."""

    @property
    @abstractmethod
    def brief(self) -> bool:
        """Whether recent messages were so short that the feeding thread does all the work."""

    def due(self, limit: int) -> bool:
        """Whether windows that have not been emitted may have ended by a time."""
        return True

    def check(self) -> None:
        """Raise what a PU has failed with, if one has, once what came before it is done."""
        return None

    @abstractmethod
    def take(self) -> list[Rows]:
        """The rows that have become final since the last call, in order of `end`; never waits."""

    @abstractmethod
    def finish(self) -> None:
        """No more events will come: make everything final, for `take` to return."""

    @abstractmethod
    def stop(self) -> None:
        """End all threads at once; may be called again, and after a failure.

        Events, watermarks and the end are refused from then on."""

    @abstractmethod
    def metrics(self) -> list[UnitMetrics]:
        """What each PU has done so far."""


def stopped(name: str) -> PaneflowError:
    """What a strategy raises if it is given anything after `stop`."""
    return PaneflowError(f"strategy {name!r} has been stopped: open another stream to go on")
