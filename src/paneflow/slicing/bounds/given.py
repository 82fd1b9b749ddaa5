"""Windows whose bounds are known already, so that only their results are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.events import Part
from paneflow.windows import Window, WindowClass
from paneflow.windows.window import Ticks


@dataclass(frozen=True, eq=False)
class Given(Window):
    """Windows of a kind, as ranges of the events in total order, key by key."""

    window_class: ClassVar[WindowClass] = WindowClass.FCA

    kind: Window
    ranges: Ranges
    """Counted from the first event of all, not of the key."""

    def extent(self, seq: Ticks, first_t: Ticks, last_t: Ticks) -> tuple[Ticks, Ticks]:
        return self.kind.extent(seq, first_t, last_t)

    def __str__(self) -> str:
        return str(self.kind)


def given(window: Given, part: Part, columns: Arranged) -> Ranges:
    """The windows of a part."""
    ranges = window.ranges
    first, end = np.searchsorted(ranges.key, [part.first_key, part.end_key])
    mine = ranges.between(int(first), int(end))
    return Ranges(
        mine.key - np.int32(part.first_key), mine.seq, mine.lo - part.start, mine.hi - part.start
    )
