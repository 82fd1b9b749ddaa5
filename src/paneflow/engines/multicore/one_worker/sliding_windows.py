"""The windows of one label by time: which of them close, and whether they are kept merged.

Windows are kept merged where that has been found to pay (`planning/merge_choice.py`), unless more
of them close at once than overlap: then nothing of the first is left in the last, and all are
merged anew. The next to close are built from slices again.
"""

from __future__ import annotations

import copy

from paneflow.aggregates.lowering import Lowering
from paneflow.aggregates.operator import Operator
from paneflow.engines.multicore.one_worker.kept_windows import Closed, KeptWindows
from paneflow.engines.multicore.one_worker.slice_runs import Block, SliceRuns, once, together
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.merging.streaming import keyed_windows
from paneflow.planning.merge_choice import ANEW, StreamMerge, choose_stream_merge
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
        if asked not in ("auto", ANEW):
            for operator in lowering.operators:
                keyed_windows(asked, operator, 1)  # a law that is broken is said at once

    def merge_of(self, operator: Operator | None) -> StreamMerge:
        """By what the partials of an operator are merged, and why; None for counts of events."""
        return choose_stream_merge(self.window, operator, late=self._late, asked=self._asked)

    def copy(self) -> SlidingWindows:
        """The same windows; what is kept merged has to be built again."""
        other = copy.copy(self)
        other.drop()
        return other

    def last(self, watermark: int) -> int:
        """The number of the last window that ends by a watermark."""
        window = self.window
        return (watermark - window.offset.value - window.range.value) // window.slide.value

    def first_start(self, watermark: int) -> int:
        """When the first window begins that ends after a watermark."""
        return self.window.offset.value + (self.last(watermark) + 1) * self.window.slide.value

    def keeps(self, before: int, watermark: int) -> bool:
        """Whether the windows between two watermarks are made of those that are kept merged."""
        if before == BEFORE_ALL or self.window.overlap <= self.last(watermark) - self.last(before):
            return False
        return self.merge_of(None).name != ANEW

    def drop(self) -> None:
        """Keep nothing merged."""
        self._kept = None
        self._behind = []

    def take_behind(self, block: Block, before: int, replaced: bool) -> None:
        """Stragglers have made slices; if `replaced`, these stand for the ones that were there."""
        late = block.at(block.start < self._entered(before))
        if before == BEFORE_ALL or len(late) == 0:
            return
        if replaced or self._kept is None or not self._kept.takes_late:
            self._late += not replaced
            self.drop()
        else:
            self._behind.append(late)

    def slide(self, slices: SliceRuns, before: int, watermark: int) -> Closed:
        """Close the windows that end after one watermark and by another."""
        first, last = self.last(before) + 1, self.last(watermark)
        begin = self._entered(before)
        if self._kept is None:
            begin = self.first_start(before)
            names = {op: self.merge_of(op).name for op in self._lowering.operators}
            self._kept = KeptWindows(self.window, names, self._lowering)
        end = self._entered(watermark)
        parts = [block.at(block.start >= self.first_start(before)) for block in self._behind]
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

    def _entered(self, watermark: int) -> int:
        """Slices before this time were in a window that has closed by a watermark."""
        window = self.window
        return window.offset.value + self.last(watermark) * window.slide.value + window.range.value
