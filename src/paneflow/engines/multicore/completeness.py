"""Which rows are complete at a watermark: the order of rows is only as good as this bound.

Rows leave in order of their `end`. A row may leave once no later one can end before it or with it.
All time windows that end by the watermark are known when it arrives. Sessions and windows by
positions or marks may still end at the watermark itself. A delta or custom window ends at its last
event, but is known only when the next event closes it, perhaps much later. So the next row of a key
may end as early as that key's last event, and a key that falls silent holds rows back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.engines.multicore.contract import Batch, Rows
from paneflow.engines.multicore.stores.growing import Grown, KeyState
from paneflow.engines.multicore.ticks import BEFORE_ALL, END_OF_STREAM
from paneflow.engines.multicore.tuning import tuning
from paneflow.windows import Custom, Delta, SlideByTime, Sliding, Window

if TYPE_CHECKING:
    from paneflow.query import Query


def all_by_time(windows: Iterable[Window]) -> bool:
    """Whether all windows that end at the watermark are known when it comes."""
    return all(isinstance(w, Sliding | SlideByTime) for w in windows)


class Completeness:
    """From watermarks to the time before which all rows are known."""

    def __init__(self, query: Query) -> None:
        windows = query.windows.values()
        self._by_time = all_by_time(windows)
        self._silent = SilentKeys() if any(isinstance(w, Delta | Custom) for w in windows) else None

    def settle(self) -> None:
        """Keep what was noted."""
        if self._silent is not None:
            self._silent.settle()

    def undo(self) -> None:
        """Restore the state at the last `settle`."""
        if self._silent is not None:
            self._silent.undo()

    def note(self, events: Batch) -> None:
        """Remember when each key was seen last, if it matters."""
        if self._silent is not None and len(events) and not events.behind:
            self._silent.note(events.key, events.t)

    def passed(self, watermark: int) -> int:
        """No later row will end before this."""
        if watermark >= END_OF_STREAM:
            return END_OF_STREAM
        if watermark == BEFORE_ALL:
            return BEFORE_ALL
        if self._by_time:
            return watermark + 1
        return watermark if self._silent is None else min(watermark, self._silent.since())


class SilentKeys:
    """Knows the earliest of the times at which keys were last seen.

    Events come in order of time, so it is the time of the first event that is the last of its key.
    Events before that one never need to be looked at again.
    """

    def __init__(self) -> None:
        self._key, self._t = Grown(), Grown()
        self._last = KeyState(END_OF_STREAM)
        self._end = self._first = self._live = 0
        self._settled = 0, 0

    def note(self, key: Array, t: Array) -> None:
        """Note events."""
        self._key.put(self._end, key)
        self._t.put(self._end, t)
        self._end += len(key)
        self._last.touch(key)
        self._last.values[0, key] = t  # of several writes to one key the last one wins

    def since(self) -> int:
        """The earliest of the times at which keys were seen last."""
        columns = (self._key.values, self._t.values, self._last.values[0])
        self._first = _first_silent(self._first, self._end, *columns)
        return int(self._t.values[self._first]) if self._first < self._end else END_OF_STREAM

    def settle(self) -> None:
        """Keep what was noted; drop events that are passed, if there are many."""
        self._last.settle()
        if self._end > 2 * self._live + tuning.spare_silent:
            key, t = self._key.values[: self._end], self._t.values[: self._end]
            last = self._last.values[0][key] == t
            self._key.keep(last)
            self._t.keep(last)
            self._end = self._live = int(np.count_nonzero(last))
            self._first = 0
        self._settled = self._end, self._first

    def undo(self) -> None:
        """Restore the state at the last `settle`."""
        self._last.undo()
        self._end, self._first = self._settled


@compiled
def _first_silent(first, end, key, t, last):  # type: ignore[no-untyped-def]
    while first < end and last[key[first]] != t[first]:
        first += 1
    return first


def no_rows(arrived: float, passed: int) -> Rows:
    """No rows, only that nothing more will end before a time."""
    none = np.empty(0, np.int64)
    return Rows(np.empty(0, np.int32), none, none, none, none, {}, arrived, passed)
