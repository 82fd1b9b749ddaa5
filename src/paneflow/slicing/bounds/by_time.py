"""Windows whose bounds are times: sliding, slide_by_time, session."""

from __future__ import annotations

import numba

from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.events import Part
from paneflow.windows import Session, SlideByTime, Sliding

compiled = numba.njit(nogil=True, cache=True)


def sliding(window: Sliding, part: Part, columns: Arranged) -> Ranges:
    """All windows that reach an event of the key."""
    bounds = (window.range.value, window.slide.value, window.offset.value)
    room = Ranges.room(_sliding_room(part.t, part.offsets, *bounds))
    found = _sliding(part.t, part.offsets, *bounds, room.key, room.seq, room.lo, room.hi)
    return room.first(found)


def slide_by_time(window: SlideByTime, part: Part, columns: Arranged) -> Ranges:
    """At each boundary behind new events, the last `size` events."""
    bounds = (window.size, window.slide.value, window.offset.value)
    room = Ranges.room(len(part.t))
    found = _slide_by_time(part.t, part.offsets, *bounds, room.key, room.seq, room.lo, room.hi)
    return room.first(found)


def session(window: Session, part: Part, columns: Arranged) -> Ranges:
    """Runs of events with no gap between them."""
    room = Ranges.room(len(part.t))
    gap = window.gap.value
    found = _session(part.t, part.last, part.offsets, gap, room.key, room.seq, room.lo, room.hi)
    return room.first(found)


@compiled
def _sliding_room(t, offsets, reach, slide, offset):  # type: ignore[no-untyped-def]
    """No fewer windows than there can be."""
    total = 0
    overlap = (reach - 1) // slide + 1
    for k in range(len(offsets) - 1):
        events = offsets[k + 1] - offsets[k]
        if events > 0:
            first = (t[offsets[k]] - offset - reach) // slide + 1
            last = (t[offsets[k + 1] - 1] - offset) // slide
            # Both are bounds; a sparse key has far fewer windows than its span has room for.
            total += max(0, min(last - first + 1, events * overlap))
    return total


@compiled
def _reach(t, i, end, bound):  # type: ignore[no-untyped-def]
    """The first position from i on with t >= bound: near ones by walking, far ones by leaps."""
    near = min(i + 8, end)
    while i < near:
        if t[i] >= bound:
            return i
        i += 1
    step = 8
    while i + step < end and t[i + step] < bound:
        i += step
        step *= 2
    far = min(i + step, end)
    while i < far:
        middle = (i + far) // 2
        if t[middle] < bound:
            i = middle + 1
        else:
            far = middle
    return i


@compiled
def _sliding(t, offsets, reach, slide, offset, key, seq, lo, hi):  # type: ignore[no-untyped-def]
    found = 0
    for k in range(len(offsets) - 1):
        end = offsets[k + 1]
        a = offsets[k]
        b = a
        if a == end:
            continue
        w = (t[a] - offset - reach) // slide + 1
        start = offset + w * slide
        while True:
            a = _reach(t, a, end, start)
            if a == end:
                break
            if t[a] >= start + reach:
                # Nothing here: go on to the first window that reaches the next event.
                w = (t[a] - offset - reach) // slide + 1
                start = offset + w * slide
                if t[a] < start:
                    # The event lies in the gap between two windows.
                    continue
            b = _reach(t, max(a, b), end, start + reach)
            key[found] = k
            seq[found] = w
            lo[found] = a
            hi[found] = b
            found += 1
            w += 1
            start += slide
    return found


@compiled
def _slide_by_time(t, offsets, size, slide, offset, key, seq, lo, hi):  # type: ignore[no-untyped-def]
    found = 0
    for k in range(len(offsets) - 1):
        i = offsets[k]
        while i < offsets[k + 1]:
            w = (t[i] - offset) // slide
            boundary = offset + (w + 1) * slide
            while i < offsets[k + 1] and t[i] < boundary:
                i += 1
            key[found] = k
            seq[found] = w
            lo[found] = max(offsets[k], i - size)
            hi[found] = i
            found += 1
    return found


@compiled
def _session(t, last, offsets, gap, key, seq, lo, hi):  # type: ignore[no-untyped-def]
    found = 0
    for k in range(len(offsets) - 1):
        i = offsets[k]
        number = 0
        while i < offsets[k + 1]:
            key[found] = k
            seq[found] = number
            lo[found] = i
            latest = last[i]
            i += 1
            while i < offsets[k + 1] and t[i] - latest <= gap:
                # Rows that are slices may lie inside one another.
                latest = max(latest, last[i])
                i += 1
            hi[found] = i
            found += 1
            number += 1
    return found
