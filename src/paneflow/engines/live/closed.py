"""What a watermark has closed: the windows of a time, the session of a span of time, everything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds.by_time import session
from paneflow.slicing.ends import last_end
from paneflow.slicing.events import order_events
from paneflow.windows import Session, SlideByTime, Sliding, Window

IN_NO_WINDOW = int(np.iinfo(np.int64).min)


def last_ends(windows: Sequence[Sliding], t: Array) -> Array:
    """When the last window that a time is in ends; IN_NO_WINDOW if it is in none."""
    ends = np.full(len(t), IN_NO_WINDOW)
    if len(windows) > len(t):
        bounds = [(w.offset.value, w.slide.value, w.range.value) for w in windows]
        offset, slide, reach = np.array(bounds, np.int64).T
        for k, time in enumerate(t):
            latest = offset + (time - offset) // slide * slide + reach
            ends[k] = latest[latest > time].max(initial=IN_NO_WINDOW)
        return ends
    for window in windows:
        latest = last_end(window, t)
        np.maximum(ends, np.where(latest > t, latest, IN_NO_WINDOW), out=ends)
    return ends


def missed_by_time(windows: Sequence[Sliding], t: Array, watermark: int) -> tuple[Array, Array]:
    """Which times are in windows that have all ended by a watermark, and which are in none."""
    ends = last_ends(windows, t)
    nowhere = ends == IN_NO_WINDOW
    return (ends <= watermark) & ~nowhere, nowhere


def ended_sessions(
    codes: Array, start: Array, last: Array, window: Session, watermark: int
) -> Array:
    """Which spans of time, each of the key with a code, are of sessions that have closed."""
    ended = np.zeros(len(start), np.bool_)
    if len(start):
        keys = pa.table({"code": np.arange(int(codes.max()) + 1)})
        events = order_events(codes, keys, start, last)
        (part,) = events.parts(1)
        found = session(window, part, Arranged(events, {}))
        latest = np.maximum.reduceat(part.last, found.lo)
        done = np.repeat(latest + window.gap.value < watermark, found.hi - found.lo)
        ended[events.arrange(np.arange(len(start)))[done]] = True
    return ended


def horizon(windows: Iterable[Window], latest: int) -> int:
    """The watermark at which every window of events until `latest` has closed."""
    ends = [latest]
    for window in windows:
        if isinstance(window, Session):
            ends.append(latest + window.gap.value + 1)
        elif isinstance(window, Sliding):
            ends.append(last_end(window, latest))
        elif isinstance(window, SlideByTime):
            offset, slide = window.offset.value, window.slide.value
            ends.append(offset + ((latest - offset) // slide + 1) * slide)
    return max(ends)
