"""What no later window of a stream needs: how many events of each key a window is done with."""

from __future__ import annotations

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.ends import last_end
from paneflow.slicing.events import Events
from paneflow.windows import (
    Count,
    Delta,
    Punctuation,
    Session,
    SlideByTime,
    SlideByTuple,
    Sliding,
    Window,
)


def forgotten(
    window: Window, found: Ranges, ordered: Events, watermark: int
) -> tuple[Array, Array]:
    """For each key, how many events no later window needs, and how many windows go with them."""
    offsets = ordered.key_offsets
    starts, counts = offsets[:-1], np.diff(offsets)
    none = np.zeros(len(counts), np.int64)
    windows = np.bincount(found.key, minlength=len(counts)).astype(np.int64)
    if len(ordered.t) == 0:
        return none, none
    if isinstance(window, Count):
        windows = np.minimum(windows, counts // window.slide)
        return windows * window.slide, windows
    if isinstance(window, SlideByTuple):
        last = ordered.t[offsets[1:] - 1]
        old = ordered.t < np.repeat(last - window.range.value, counts)
        windows = np.add.reduceat(old, starts, dtype=np.int64) // window.every
        return windows * window.every, windows
    if isinstance(window, SlideByTime):
        return np.maximum(counts - window.size, 0), none
    if isinstance(window, Punctuation):
        done = none.copy()
        np.maximum.at(done, found.key, found.hi - starts[found.key])
        return done, windows
    if isinstance(window, Delta):
        return _before_a_trigger(found, starts)
    if isinstance(window, Session):
        closed = ordered.t[found.hi - 1] + window.gap.value < watermark
        done = none.copy()
        np.maximum.at(done, found.key[closed], (found.hi - starts[found.key])[closed])
        return done, none
    assert isinstance(window, Sliding)
    passed = last_end(window, ordered.t) <= watermark
    return np.add.reduceat(passed, starts, dtype=np.int64), none


def _before_a_trigger(found: Ranges, starts: Array) -> tuple[Array, Array]:
    """Delta windows can be taken up at a trigger, behind which everything needed lies.

    A window ends where its trigger stands. Later windows need nothing before the last one's start.
    """
    gone, windows = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    if len(found) == 0:
        return gone, windows
    last_start = np.zeros(len(starts), np.int64)
    np.maximum.at(last_start, found.key, found.lo)
    fit = found.hi <= last_start[found.key]
    np.maximum.at(gone, found.key[fit], (found.hi - starts[found.key])[fit])
    np.maximum.at(windows, found.key[fit], found.seq[fit])
    return gone, windows
