"""Where windows begin and end: for every window kind, the ranges of positions it picks.

Because events stand in total order, each window of a key is a range `lo <= i < hi`. Within a
part, keys come one after the other, and lo and hi never decrease. Windows without an event are
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from paneflow.compiling import in_any_order
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds import by_event, by_growth, by_mark, by_step, by_time
from paneflow.slicing.bounds.given import Given, given
from paneflow.slicing.bounds.ranges import Ends, Found, Ranges
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
    SlideByTime: by_time.slide_by_time,
    Session: by_time.session,
    Count: by_event.count,
    SlideByTuple: by_event.slide_by_tuple,
    Delta: by_growth.delta,
    Punctuation: by_mark.punctuation,
    Custom: by_step.custom,
    Given: given,
}


def find_ranges(
    windows: Sequence[Window], part: Part, columns: Arranged, ends_in: Ends = (None, None)
) -> Found:
    """The windows of a part, key by key, for each of the windows asked for."""
    sliding = [window for window in windows if isinstance(window, Sliding)]
    if len(sliding) == len(windows):
        return by_time.sliding(sliding, part, ends_in)

    def found(window: Window) -> Ranges:
        if isinstance(window, Sliding):
            return by_time.sliding([window], part, ends_in).ranges
        return _finder(window)(window, part, columns)

    return Found.joined(in_any_order(found, windows))


def _finder(window: Window) -> Finder:
    return FINDERS[Custom if isinstance(window, Custom) else type(window)]
