"""Windows whose bounds are times: sliding, slide_by_time, session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled, helper, lean
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds import few_events
from paneflow.slicing.bounds.fresh import rooms_of
from paneflow.slicing.bounds.ranges import Ends, Found, Ranges
from paneflow.slicing.events import Part
from paneflow.slicing.times import FARTHEST
from paneflow.windows import Session, SlideByTime, Sliding

Index = tuple[Array, Array, Array]
"""Where each key's buckets begin, the bits of time in a bucket, and the first event of each."""
_NO_INDEX: Index = (np.zeros(0, np.int64),) * 3
BEYOND = 2 * FARTHEST
"""Farther from zero than the end of any window."""
MANY = 16
"""The number of windows from which an index of the times pays off."""
EVENTS_PER_BUCKET = 8
MUCH_ROOM = 2**24
"""More windows than this are counted before memory is reserved for them."""


def sliding(windows: Sequence[Sliding], part: Part, ends_in: Ends = (None, None)) -> Found:
    """All windows that reach an event of their key, for many sliding windows in one call."""
    t, offsets = part.t, part.offsets
    bounds = np.empty((len(windows), 5), np.int64)
    bounds[:, :3] = [(w.range.value, w.slide.value, w.offset.value) for w in windows]
    bounds[:, 3:] = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    # Times farther apart than any window need not be told apart.
    after, until = (None if e is None else max(-BEYOND, min(e, BEYOND)) for e in ends_in)
    reach, slide, offset = bounds[:, :3].T
    if after is not None:
        bounds[:, 3] = (after - offset - reach) // slide + 1
    if until is not None:
        bounds[:, 4] = (until - offset - reach) // slide
    first, spans = _sliding_spans(t, offsets, bounds)
    if few_events.are_few(t, spans):
        return few_events.sliding(t, offsets, bounds, first, spans)
    overlap = ((reach - 1) // slide + 1)[:, None]
    # Both are bounds; a sparse key has far fewer windows than its span has room for.
    rooms = np.where(np.diff(offsets) <= spans // overlap, np.diff(offsets) * overlap, spans)
    if len(t) and rooms.sum() > MUCH_ROOM:
        # Count them first: events close together share most of their windows.
        rooms = np.array([rooms_of(window, t, offsets, (after, until)) for window in windows])
    begins = np.cumsum(rooms).reshape(rooms.shape) - rooms
    room = Ranges.room(int(rooms.sum()))
    counts = np.empty_like(rooms)
    columns = (room.key, room.seq, room.lo, room.hi)
    if len(windows) >= MANY:
        _sliding_by_index(t, offsets, bounds, *_indexed(t, offsets), begins, *columns, counts)
    else:
        _sliding_by_leaps(t, offsets, bounds, *_NO_INDEX, begins, *columns, counts)
    if len(windows) > 1 and counts.sum() < len(room):
        for column in columns:
            _close_gaps(begins, counts, column)
    ends = np.cumsum(counts.sum(axis=1))
    return Found(room.first(int(ends[-1])), ends.tolist())


def _sliding_spans(t: Array, offsets: Array, bounds: Array) -> tuple[Array, Array]:
    """For each window and key, the number of the first, and how many there are up to the last."""
    events = np.diff(offsets)
    reach, slide, offset, least, most = (bounds[:, n, None] for n in range(5))
    # A key without events has no times; it gets some that are never read.
    some = t if len(t) else np.zeros(1, np.int64)
    earliest = some[np.minimum(offsets[:-1], len(some) - 1)]
    latest = some[np.maximum(offsets[1:] - 1, 0)]
    first = np.maximum(least, (earliest - offset - reach) // slide + 1)
    last = np.minimum(most, (latest - offset) // slide)
    spans: Array = np.where(events > 0, np.maximum(0, last - first + 1), 0)
    return first, spans


def _indexed(t: Array, offsets: Array) -> Index:
    """For each key, where in its events each of equal spans of time begins."""
    events = np.diff(offsets)
    buckets = events // EVENTS_PER_BUCKET + 1
    begins = np.append(0, np.cumsum(buckets + 1))
    shifts = np.empty(len(events), np.int64)
    index = np.empty(begins[-1], np.int64)
    _fill_index(t, offsets, begins, shifts, index)
    return begins, shifts, index


def count_sliding(window: Sliding, part: Part, first: int, several: int) -> Array:
    """How many keys have each of the windows from number `first` on, without finding them."""
    changes = np.zeros(several + 1, np.int64)
    bounds = (window.range.value, window.slide.value, window.offset.value)
    _count_sliding(part.t, part.offsets, *bounds, first, changes)
    counted: Array = np.cumsum(changes[:-1])
    return counted


def slide_by_time(window: SlideByTime, part: Part, columns: Arranged) -> Ranges:
    """At each boundary after new events, the last `size` events."""
    bounds = (window.size, window.slide.value, window.offset.value)
    room = Ranges.room(len(part.t))
    found = _slide_by_time(part.t, part.offsets, *bounds, room.key, room.seq, room.lo, room.hi)
    return room.first(found)


def session(window: Session, part: Part, columns: Arranged) -> Ranges:
    """Runs of events with no gap between them."""
    gap = window.gap.value
    # Rows that are slices have an end of their own.
    if few_events.are_few(part.t) and part.events.last is part.events.t:
        return few_events.session(part.t, part.offsets, gap)
    room = Ranges.room(len(part.t))
    found = _session(part.t, part.last, part.offsets, gap, room.key, room.seq, room.lo, room.hi)
    return room.first(found)


@compiled
def _close_gaps(begins, counts, column):  # type: ignore[no-untyped-def]
    to = 0
    for n in range(begins.shape[0]):
        for k in range(begins.shape[1]):
            for i in range(begins[n, k], begins[n, k] + counts[n, k]):
                column[to] = column[i]
                to += 1


@helper
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
def _fill_index(t, offsets, begins, shifts, index):  # type: ignore[no-untyped-def]
    for k in range(len(offsets) - 1):
        i, end = offsets[k], offsets[k + 1]
        buckets = begins[k + 1] - begins[k] - 1
        shift = 0
        while i < end and (t[end - 1] - t[i]) >> shift >= buckets:
            shift += 1
        shifts[k] = shift
        first = t[i] if i < end else 0
        for b in range(buckets + 1):
            while i < end and (t[i] - first) >> shift < b:
                i += 1
            index[begins[k] + b] = i


@lean
def _look_up(t, first, begin, buckets, shift, index, bound):  # type: ignore[no-untyped-def]
    """The first position of a key with t >= bound, by the key's index."""
    if bound <= t[first]:
        return first
    bucket = (bound - t[first]) >> shift
    if bucket >= buckets:
        return index[begin + buckets]
    low, high = index[begin + bucket], index[begin + bucket + 1]
    while low < high:
        middle = (low + high) // 2
        if t[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@lean
def _by_leaps(t, i, bound, leap, key, index):  # type: ignore[no-untyped-def]
    return _reach(t, i, key[1], bound, leap)


@lean
def _by_index(t, i, bound, leap, key, index):  # type: ignore[no-untyped-def]
    head, _, base, buckets, shift = key
    return _look_up(t, head, base, buckets, shift, index, bound)


def _sliding(name: str, find: Callable[..., Any]) -> Any:
    """Finds the windows of every key, given what finds a key's first event from a time on."""

    def sliding(  # type: ignore[no-untyped-def]
        t, offsets, bounds, buckets, shifts, index, begins, key, seq, lo, hi, counts
    ):
        # Key by key, so that a key's times stay in the cache for all windows.
        found = 0
        for k in range(len(offsets) - 1):
            head, end = offsets[k], offsets[k + 1]
            here = (head, end, head, end, end)
            if len(buckets) > 0:
                here = (head, end, buckets[k], buckets[k + 1] - buckets[k] - 1, shifts[k])
            for n in range(len(bounds)):
                if len(bounds) > 1:
                    found = begins[n, k]
                before = found
                reach, slide, offset, least, most = bounds[n]
                # Typed as positions are: a plain zero would be compiled as a case of its own.
                a, b, leap = head, head, head - head
                w = start = leap
                if head < end:
                    w = max(least, (t[a] - offset - reach) // slide + 1)
                    start = offset + w * slide
                while a < end and w <= most:
                    skipped = a
                    if t[a] < start:
                        a = find(t, a, start, leap, here, index)
                    if a == end:
                        break
                    if t[a] >= start + reach:
                        # Nothing here: continue with the first window that reaches the next event.
                        w = (t[a] - offset - reach) // slide + 1
                        start = offset + w * slide
                        if t[a] < start or w > most:
                            # The event lies in the gap between two windows, or behind the last.
                            continue
                    b = max(a, b)
                    passed = b
                    b = find(t, b, start + reach, leap, here, index)
                    leap = max(a - skipped, b - passed) - 8
                    key[found] = k
                    seq[found] = w
                    lo[found] = a
                    hi[found] = b
                    found += 1
                    w += 1
                    start += slide
                    if slide >= reach:
                        a = b
                counts[n, k] = found - before

    # Machine code goes by this name: two functions of one name would be taken for each other.
    sliding.__qualname__ = name
    return compiled(sliding)


_sliding_by_leaps = _sliding("_sliding_by_leaps", _by_leaps)
_sliding_by_index = _sliding("_sliding_by_index", _by_index)


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
