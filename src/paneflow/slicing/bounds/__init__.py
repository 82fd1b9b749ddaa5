"""Where windows begin and end: for every window kind, the ranges of positions it picks.

Because events stand in total order, each window of a key is a range `lo <= i < hi`. Within a
part, keys come one after the other, and lo and hi never decrease. Windows without an event are
left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds import by_event, by_mark, by_step, by_time
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.events import Part
from paneflow.windows import (
    Count,
    Custom,
    Delta,
    Punctuation,
    Session,
    SlideByTime,
    SlideByTuple,
    Sliding,
    Window,
)

Finder = Callable[[Any, Part, Arranged], Ranges]

FINDERS: dict[type[Window], Finder] = {
    Sliding: by_time.sliding,
    SlideByTime: by_time.slide_by_time,
    Session: by_time.session,
    Count: by_event.count,
    SlideByTuple: by_event.slide_by_tuple,
    Delta: by_event.delta,
    Punctuation: by_mark.punctuation,
    Custom: by_step.custom,
}


def find_ranges(window: Window, part: Part, columns: Arranged) -> Ranges:
    """The windows of a part, key by key."""
    kind = Custom if isinstance(window, Custom) else type(window)
    return FINDERS[kind](window, part, columns)
