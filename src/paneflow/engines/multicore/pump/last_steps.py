"""The last steps of a stream, which one worker repeats if several workers fail.

Several workers fail in the middle of a message, in which many windows may end: some PUs have
processed it, others only a part, or nothing. One worker can go back, and answers up to the very
event or window that fails. So if user-defined functions may fail, events are kept while they may be
in an open window: as references, and up to a limit.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING

from paneflow.aggregates.aggregate import Kinds
from paneflow.aggregates.defined import Defined
from paneflow.aggregates.sequences import Applied
from paneflow.engines.multicore.contract import Batch, Rows
from paneflow.engines.multicore.one_worker.single import Single
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.engines.multicore.tuning import tuning
from paneflow.windows import Sliding

if TYPE_CHECKING:
    from paneflow.query import Query


def may_fail(query: Query) -> bool:
    """Whether user-defined functions are called."""
    return any(isinstance(a, Defined | Applied) for a in query.aggregates.values())


class LastSteps:
    """Events and watermarks, as they were passed to the strategy."""

    def __init__(self, query: Query, kinds: Kinds) -> None:
        self._query = query
        self._kinds = kinds
        windows = query.windows.values()
        ranges = [w.range.value for w in windows if isinstance(w, Sliding)]
        self._reach = max(ranges) if len(ranges) == len(windows) else None
        """The longest range of a window, if all windows are by time."""
        self._steps: deque[Batch | int] = deque()
        self._kept = 0
        self._dropped = BEFORE_ALL
        """The latest time among events that are no longer kept."""
        self.ending = False
        """Whether all windows close after the last step."""

    def add(self, step: Batch | int, passed: int) -> None:
        """Keep events or a watermark; all rows that end before `passed` have been emitted."""
        if self._reach is None and self._dropped > BEFORE_ALL:
            return  # windows may go back to the first event
        self._steps.append(step)
        self._kept += 0 if isinstance(step, int) else len(step)
        while self._steps and (self._kept > tuning.most_kept or self._is_over(passed)):
            first = self._steps.popleft()
            if not isinstance(first, int):
                self._kept -= len(first)
                self._dropped = max(self._dropped, int(first.t[-1]))

    def _is_over(self, passed: int) -> bool:
        """Whether no window that is still to be emitted needs the first step.

        A watermark matters for the events that follow it, unless another watermark follows.
        """
        if self._reach is None or passed == BEFORE_ALL:
            return False
        told = isinstance(self._steps[0], int)
        if told and len(self._steps) == 1:
            return False
        step = self._steps[int(told)]
        return isinstance(step, int) or int(step.t[-1]) < passed - self._reach

    def again(self, passed: int) -> list[Rows]:
        """The rows of one worker up to where it fails; none if too little was kept."""
        if self._dropped > BEFORE_ALL and (
            self._reach is None or self._dropped >= passed - self._reach
        ):
            return []
        one = Single(self._query, self._kinds, 1)
        with contextlib.suppress(Exception):  # the same error that several workers have failed with
            for step in self._steps:
                if isinstance(step, int):
                    one.advance(step)
                else:
                    one.feed(step)
            if self.ending:
                one.finish()
        return one.take()
