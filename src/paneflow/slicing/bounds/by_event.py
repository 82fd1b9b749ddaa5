"""Windows whose bounds are events: count, slide_by_tuple."""

from __future__ import annotations

from paneflow.compiling import compiled
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.events import Part
from paneflow.windows import Count, SlideByTuple


def count(window: Count, part: Part, columns: Arranged) -> Ranges:
    """Every `slide` positions, the next `size` events."""
    room = Ranges.room(len(part.t) // window.slide + len(part.offsets))
    found = _count(
        part.offsets,
        window.size,
        window.slide,
        window.partial,
        room.key,
        room.seq,
        room.lo,
        room.hi,
    )
    return room.first(found)


def slide_by_tuple(window: SlideByTuple, part: Part, columns: Arranged) -> Ranges:
    """Every `slide` events, those of the last `range` of time."""
    room = Ranges.room(len(part.t) // window.every + len(part.offsets))
    bounds = (window.range.value, window.every, window.partial)
    found = _slide_by_tuple(part.t, part.offsets, *bounds, room.key, room.seq, room.lo, room.hi)
    return room.first(found)


@compiled
def _count(offsets, size, slide, partial, key, seq, lo, hi):  # type: ignore[no-untyped-def]
    found = 0
    for k in range(len(offsets) - 1):
        w = 0
        start = offsets[k]
        while start + size <= offsets[k + 1] or (partial and start < offsets[k + 1]):
            key[found] = k
            seq[found] = w
            lo[found] = start
            hi[found] = min(start + size, offsets[k + 1])
            found += 1
            if start + size > offsets[k + 1]:
                break
            w += 1
            start += slide
    return found


@compiled
def _slide_by_tuple(t, offsets, reach, every, partial, key, seq, lo, hi):  # type: ignore[no-untyped-def]
    found = 0
    for k in range(len(offsets) - 1):
        a = offsets[k]
        end = offsets[k + 1]
        w = 0
        trigger = a + every - 1
        while trigger < end or (partial and trigger - every < end - 1):
            at = min(trigger, end - 1)
            while t[a] <= t[at] - reach:
                a += 1
            key[found] = k
            seq[found] = w
            lo[found] = a
            hi[found] = at + 1
            found += 1
            if trigger >= end:
                break
            w += 1
            trigger += every
    return found
