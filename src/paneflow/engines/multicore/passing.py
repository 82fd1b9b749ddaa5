"""Which rows are complete at a watermark: the order of rows is only as good as this bound.

Rows leave in order of their `end`. A row may go once no later one can end before it or with it.
Time windows that end by the watermark are all known when it comes. Sessions and windows by
positions or marks may still end at the watermark itself. A delta window, and a custom one, ends at
its last event, but is known only when the next one closes it, perhaps much later: the row that a
key may still give ends at that key's last event, so a key that falls silent holds rows back.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.contract import Rows
from paneflow.windows import Custom, Delta, SlideByTime, Sliding

if TYPE_CHECKING:
    from paneflow.query import Query

NEVER = int(np.iinfo(np.int64).min)
FOREVER = 2**62
"""The watermark once every source has ended: beyond the end of any window."""


class Passing:
    """From watermarks to the time before which all rows are known."""

    def __init__(self, query: Query) -> None:
        windows = query.windows.values()
        self._by_time = all(isinstance(w, Sliding | SlideByTime) for w in windows)
        self._by_growth = any(isinstance(w, Delta | Custom) for w in windows)
        self._last = np.empty(0, np.int64)

    def copy(self) -> Passing:
        """As it is now."""
        other = copy.copy(self)
        other._last = self._last.copy()
        return other

    def note(self, key: Array, t: Array) -> None:
        """Remember when each key was seen last, if it matters."""
        if not self._by_growth or len(key) == 0:
            return
        more = int(key.max()) + 1 - len(self._last)
        if more > 0:
            self._last = np.concatenate([self._last, np.full(more, FOREVER)])
        self._last[key] = t  # of several writes to one place the last one stays

    def passed(self, watermark: int) -> int:
        """No later row will end before this."""
        if watermark >= FOREVER:
            return FOREVER
        if watermark == NEVER:
            return NEVER
        if self._by_time:
            return watermark + 1
        return min(watermark, int(self._last.min(initial=FOREVER)))


def no_rows(arrived: float, passed: int) -> Rows:
    """Word that nothing more will end before a time, without any rows."""
    none = np.empty(0, np.int64)
    return Rows(np.empty(0, np.int32), none, none, none, none, {}, arrived, passed)
