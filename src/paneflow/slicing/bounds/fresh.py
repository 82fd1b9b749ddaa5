"""How many sliding windows an event is the first of: this counts windows without finding them."""

from __future__ import annotations

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.slicing.bounds.ranges import Ends
from paneflow.windows import Sliding

BEFORE_ALL = -(2**62)


def fresh_windows(window: Sliding, t: Array, offsets: Array, ends_in: Ends = (None, None)) -> Array:
    """For each event, the windows that it is the first event of."""
    reach, slide, offset = window.range.value, window.slide.value, window.offset.value
    last = (t - offset) // slide
    first = (t - offset - reach) // slide + 1
    begins = offsets[:-1][np.diff(offsets) > 0]
    counted = np.empty_like(last)
    counted[1:] = last[:-1]
    counted[begins] = BEFORE_ALL
    np.maximum(first, counted + 1, out=first)
    after, until = ends_in
    if after is not None:
        np.maximum(first, (after - offset - reach) // slide + 1, out=first)
    if until is not None:
        np.minimum(last, (until - offset - reach) // slide, out=last)
    fresh: Array = np.maximum(last - first + 1, 0)
    return fresh


def rooms_of(window: Sliding, t: Array, offsets: Array, ends_in: Ends = (None, None)) -> Array:
    """For each key, how many windows it has."""
    rooms = np.zeros(len(offsets) - 1, np.int64)
    held = np.diff(offsets) > 0
    rooms[held] = np.add.reduceat(fresh_windows(window, t, offsets, ends_in), offsets[:-1][held])
    return rooms
