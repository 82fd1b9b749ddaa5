"""Windows whose bounds are times: sliding, slide_by_time, session."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds.ranges import Found, Ranges
from paneflow.slicing.events import Part
from paneflow.slicing.times import FARTHEST
from paneflow.windows import Session, SlideByTime, Sliding

compiled = numba.njit(nogil=True, cache=True)


Ends = tuple[int | None, int | None]
"""Of sliding windows only those that end after the first and not after the second."""


def sliding(windows: Sequence[Sliding], part: Part, ends_in: Ends = (None, None)) -> Found:
    """All windows that reach an event of their key, for many sliding windows in one call."""
    t, offsets = part.t, part.offsets
    sizes = [
        (w.range.value, w.slide.value, w.offset.value, *_numbers(w, *ends_in)) for w in windows
    ]
    bounds = np.array(sizes, np.int64).reshape(-1, 5)
    room = Ranges.room(_sliding_room(t, offsets, bounds))
    ends = np.empty(len(windows), np.int64)
    _sliding(t, offsets, bounds, room.key, room.seq, room.lo, room.hi, ends)
    return Found(room.first(int(ends[-1])), ends.tolist())


def count_sliding(window: Sliding, part: Part, first: int, several: int) -> Array:
    """How many keys have each of the windows from number `first` on, without finding them."""
    changes = np.zeros(several + 1, np.int64)
    bounds = (window.range.value, window.slide.value, window.offset.value)
    _count_sliding(part.t, part.offsets, *bounds, first, changes)
    counted: Array = np.cumsum(changes[:-1])
    return counted


def _numbers(window: Sliding, after: int | None, until: int | None) -> tuple[int, int]:
    """The first and the last number of windows that end after one time and until another."""
    reach = window.offset.value + window.range.value
    first = -FARTHEST if after is None else (after - reach) // window.slide.value + 1
    last = FARTHEST if until is None else (until - reach) // window.slide.value
    return first, last


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
def _sliding_room(t, offsets, bounds):  # type: ignore[no-untyped-def]
    """No fewer windows than there can be."""
    total = 0
    for b in range(len(bounds)):
        reach, slide, offset, least, most = bounds[b]
        overlap = (reach - 1) // slide + 1
        for k in range(len(offsets) - 1):
            events = offsets[k + 1] - offsets[k]
            if events > 0:
                first = max(least, (t[offsets[k]] - offset - reach) // slide + 1)
                last = min(most, (t[offsets[k + 1] - 1] - offset) // slide)
                # Both are bounds; a sparse key has far fewer windows than its span has room for.
                total += max(0, min(last - first + 1, events * overlap))
    return total


@compiled
def _reach(t, i, end, bound, guess):  # type: ignore[no-untyped-def]
    """The first position from i on with t >= bound: near ones by walking, far ones by leaps.

    The last leap is a good guess of the next; the search widens from there.
    """
    near = min(i + 8, end)
    while i < near:
        if t[i] >= bound:
            return i
        i += 1
    low = i
    high = end
    middle = min(i + guess, end - 1)
    step = 8
    if middle >= low and t[middle] < bound:
        low = middle + 1
        while low + step < high and t[low + step] < bound:
            low += step + 1
            step *= 2
        high = min(low + step, high)
    elif middle >= low:
        high = middle
        while high - step > low and t[high - step] >= bound:
            high -= step
            step *= 2
        low = max(high - step, low)
    while low < high:
        middle = (low + high) // 2
        if t[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _sliding(t, offsets, bounds, key, seq, lo, hi, ends):  # type: ignore[no-untyped-def]
    found = 0
    for n in range(len(bounds)):
        reach, slide, offset, least, most = bounds[n]
        for k in range(len(offsets) - 1):
            end = offsets[k + 1]
            a = offsets[k]
            b = a
            if a == end:
                continue
            leap = 0
            w = max(least, (t[a] - offset - reach) // slide + 1)
            start = offset + w * slide
            while w <= most:
                begin = a
                a = _reach(t, a, end, start, leap)
                if a == end:
                    break
                if t[a] >= start + reach:
                    # Nothing here: go on to the first window that reaches the next event.
                    w = (t[a] - offset - reach) // slide + 1
                    start = offset + w * slide
                    if t[a] < start or w > most:
                        # The event lies in the gap between two windows, or behind the last.
                        continue
                b = max(a, b)
                before = b
                b = _reach(t, b, end, start + reach, leap)
                leap = max(a - begin, b - before) - 8
                key[found] = k
                seq[found] = w
                lo[found] = a
                hi[found] = b
                found += 1
                w += 1
                start += slide
                if slide >= reach:
                    a = b
        ends[n] = found


@compiled
def _count_sliding(t, offsets, reach, slide, offset, first, changes):  # type: ignore[no-untyped-def]
    for k in range(len(offsets) - 1):
        counted = first
        same_until = 0
        for i in range(offsets[k], offsets[k + 1]):
            if i > offsets[k] and t[i] < same_until:
                continue
            last = (t[i] - offset) // slide
            same_until = offset + (last + 1) * slide
            from_ = max(counted, (t[i] - offset - reach) // slide + 1)
            if from_ <= last:
                changes[from_ - first] += 1
                changes[last + 1 - first] -= 1
                counted = last + 1


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
