"""The windows of one label by time: which of them close, and whether they are kept merged.

Windows are kept merged where that has been found to pay (`planning/merge_choice.py`), unless more
of them close at once than overlap: then nothing of the first is left in the last, and all are
merged anew. The next to close are built from slices again.
"""

from __future__ import annotations

import copy

from paneflow.aggregates.lowering import Lowering
from paneflow.aggregates.operator import Array, Operator
from paneflow.engines.multicore.one_worker.kept_windows import Closed, KeptWindows
from paneflow.engines.multicore.one_worker.slice_runs import Block, SliceRuns, once, together
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.planning.merge_choice import ANEW, StreamMerge, choose_stream_merge
from paneflow.slicing.ends import ended_until, first_open, last_ended
from paneflow.windows import Sliding


class SlidingWindows:
    """The open windows of one label."""

    def __init__(self, label: int, window: Sliding, lowering: Lowering, asked: str) -> None:
        self.label = label
        self.window = window
        self._lowering = lowering
        self._asked = asked
        self._kept: KeptWindows | None = None
        self._behind: list[Block] = []
        """Slices of stragglers, which windows before the next to close would have held."""
        self._late = 0
        """How often slices have come behind such a window."""

    def merge_of(self, operator: Operator | None) -> StreamMerge:
        """By what the partials of an operator are merged, and why; None for counts of events."""
        return choose_stream_merge(self.window, operator, late=self._late, asked=self._asked)

    @property
    def begun(self) -> bool:
        """Whether windows are kept merged, and the next to close follow them."""
        return self._kept is not None

    def copy(self) -> SlidingWindows:
        """The same windows; what is kept merged has to be built again."""
        other = copy.copy(self)
        other.drop()
        return other

    def keeps(self, before: int, watermark: int) -> bool:
        """Whether the windows between two watermarks are made of those that are kept merged."""
        if before == BEFORE_ALL:
            return False
        closing = last_ended(self.window, watermark) - last_ended(self.window, before)
        return closing < self.window.overlap and self.merge_of(None).name != ANEW

    def drop(self) -> None:
        """Keep nothing merged."""
        self._kept = None
        self._behind = []

    def is_behind(self, start: Array, before: int) -> bool:
        """Whether some slices begin before the end of a window that a watermark has closed."""
        return before != BEFORE_ALL and bool((start < ended_until(self.window, before)).any())

    def take_behind(self, block: Block, before: int, replaced: bool) -> None:
        """Stragglers have made slices; if `replaced`, these stand for the ones that were there."""
        if replaced or self._kept is None or not self._kept.takes_late:
            self._late += not replaced
            self.drop()
        else:
            self._behind.append(block.at(block.start < ended_until(self.window, before)))

    def slide(self, slices: SliceRuns, before: int, watermark: int) -> Closed:
        """Close the windows that end after one watermark and by another."""
        first, last = last_ended(self.window, before) + 1, last_ended(self.window, watermark)
        begin = ended_until(self.window, before)
        if self._kept is None:
            begin = first_open(self.window, before)
            names = {op: self.merge_of(op).name for op in self._lowering.operators}
            self._kept = KeptWindows(self.window, names, self._lowering)
        end = ended_until(self.window, watermark)
        parts = [block.at(block.start >= first_open(self.window, before)) for block in self._behind]
        self._behind = []
        held = slices.since(begin)
        if held is not None:
            inside = (held.start >= begin) & (held.start < end)
            parts.append(held if inside.all() else held.at(inside))
        entering = once(together(parts)) if len(parts) > 1 else parts[0] if parts else None
        try:
            return self._kept.slide(entering, first, last)
        except BaseException:
            self.drop()
            raise
