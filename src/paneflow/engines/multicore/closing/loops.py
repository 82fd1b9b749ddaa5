"""For each kind of window: what an event does to the open windows of its key.

Each loop goes over fresh events in their order and over nothing else. What it must know of the
events before them is in the state of their key: numbers, and slots from which on the chain of the
key's events can be followed. A slot that is followed is passed once and for all, so that an event
costs the same however many are held.

Every loop writes the windows that have closed as columns of `out`: key, number, the slot of the
first event, and how many events there are from there on. It gives how many windows that were.
Row `FIRST` of a state is the first slot that a later window of the key may need.
"""

from __future__ import annotations

from paneflow.compiling import compiled, helper
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.slicing.bounds.by_growth import beyond

NONE = -1
"""No slot."""
FIRST, SEQ, EVENTS, LAST = range(4)
"""Of all states: the first slot needed, the number of the next window, the events from the first
slot on, and the slot of the key's last event."""
POSITION = 4
"""Of count, slide_by_tuple and custom windows: the key's events so far."""
PENDING = 4
"""Of slide_by_time: the boundary behind which the key's last events wait."""
EARLIEST, LATEST = 4, 5
"""Of sessions: the times of the open one's events."""
TRIGGER = 4
"""Of delta: the slot of the last trigger."""
OPENED, STARTED = 5, 6
"""Of custom windows: how many are open, and the position of the first event of the oldest."""


@helper
def _emit(out, found, key, seq, first, events):  # type: ignore[no-untyped-def]
    out[0, found] = key
    out[1, found] = seq
    out[2, found] = first
    out[3, found] = events
    return found + 1


@compiled
def count(first, key, following, state, out, size, slide):  # type: ignore[no-untyped-def]
    """Every `slide` positions, the next `size` events."""
    found = 0
    for i in range(len(key)):
        k, slot = key[i], first + i
        position = state[POSITION, k]
        state[POSITION, k] += 1
        start = state[SEQ, k] * slide
        if position == start:
            state[FIRST, k] = slot
        if position == start + size - 1:
            found = _emit(out, found, k, state[SEQ, k], state[FIRST, k], size)
            state[SEQ, k] += 1
            if start + slide > position:
                state[FIRST, k] = NONE
            else:
                at = state[FIRST, k]
                for _ in range(slide):
                    at = following[at]
                state[FIRST, k] = at
    return found


@compiled
def slide_by_tuple(first, key, t, following, state, out, reach, every):  # type: ignore[no-untyped-def]
    """Every so many events, those of the last `range` of time."""
    found = 0
    for i in range(len(key)):
        k, slot = key[i], first + i
        if state[FIRST, k] == NONE:
            state[FIRST, k] = slot
        state[EVENTS, k] += 1
        state[POSITION, k] += 1
        while t[state[FIRST, k]] <= t[slot] - reach:
            state[FIRST, k] = following[state[FIRST, k]]
            state[EVENTS, k] -= 1
        if state[POSITION, k] % every == 0:
            found = _emit(out, found, k, state[SEQ, k], state[FIRST, k], state[EVENTS, k])
            state[SEQ, k] += 1
    return found


@compiled
def slide_by_time(first, key, t, following, state, out, size, slide, offset):  # type: ignore[no-untyped-def]
    """At each boundary behind new events, the last `size` events."""
    found = 0
    for i in range(len(key)):
        k, slot = key[i], first + i
        number = (t[slot] - offset) // slide
        pending = state[PENDING, k]
        if pending != BEFORE_ALL and pending != number:
            found = _emit(out, found, k, pending, state[FIRST, k], state[EVENTS, k])
        state[PENDING, k] = number
        if state[FIRST, k] == NONE:
            state[FIRST, k] = slot
        state[EVENTS, k] += 1
        if state[EVENTS, k] > size:
            state[FIRST, k] = following[state[FIRST, k]]
            state[EVENTS, k] -= 1
        state[LAST, k] = slot
    return found


@compiled
def pass_boundaries(seen, key, state, out):  # type: ignore[no-untyped-def]
    """Windows of slide_by_time whose last event is from a slot on: their boundary is reached."""
    found = 0
    for slot in range(seen, len(key)):
        k = key[slot]
        if state[LAST, k] == slot and state[PENDING, k] != BEFORE_ALL:
            found = _emit(out, found, k, state[PENDING, k], state[FIRST, k], state[EVENTS, k])
            state[PENDING, k] = BEFORE_ALL
    return found


@compiled
def session(first, key, t, state, out, gap):  # type: ignore[no-untyped-def]
    """Runs of events with no gap between them."""
    found = 0
    for i in range(len(key)):
        k, slot = key[i], first + i
        if state[EARLIEST, k] != BEFORE_ALL and t[slot] - state[LATEST, k] > gap:
            found = _end_session(state, out, found, k)
        if state[EARLIEST, k] == BEFORE_ALL:
            state[EARLIEST, k] = t[slot]
            state[LATEST, k] = t[slot]
        if state[FIRST, k] == NONE:
            state[FIRST, k] = slot
        state[LATEST, k] = max(state[LATEST, k], t[slot])
        state[EVENTS, k] += 1
        state[LAST, k] = slot
    return found


@helper
def _end_session(state, out, found, k):  # type: ignore[no-untyped-def]
    found = _emit(out, found, k, state[SEQ, k], state[FIRST, k], state[EVENTS, k])
    state[SEQ, k] += 1
    state[FIRST, k] = NONE
    state[LAST, k] = NONE
    state[EVENTS, k] = 0
    state[EARLIEST, k] = BEFORE_ALL
    state[LATEST, k] = BEFORE_ALL
    return found


@compiled
def pass_gaps(seen, key, state, out, gap, watermark):  # type: ignore[no-untyped-def]
    """Sessions whose last event is from a slot on, and longer ago than the gap."""
    found = 0
    for slot in range(seen, len(key)):
        k = key[slot]
        if state[LAST, k] == slot and state[LATEST, k] + gap < watermark:
            found = _end_session(state, out, found, k)
    return found


@compiled
def end_sessions(keys, state, out, gap, watermark):  # type: ignore[no-untyped-def]
    """Sessions of some keys that the watermark has ended."""
    found = 0
    for k in keys:
        if state[EARLIEST, k] != BEFORE_ALL and state[LATEST, k] + gap < watermark:
            found = _end_session(state, out, found, k)
    return found


@compiled
def punctuation(first, key, marked, state, out):  # type: ignore[no-untyped-def]
    """From behind one mark up to and including the next."""
    found = 0
    for i in range(len(key)):
        k = key[i]
        if state[FIRST, k] == NONE:
            state[FIRST, k] = first + i
        state[EVENTS, k] += 1
        if marked[i]:
            found = _emit(out, found, k, state[SEQ, k], state[FIRST, k], state[EVENTS, k])
            state[SEQ, k] += 1
            state[FIRST, k] = NONE
            state[EVENTS, k] = 0
    return found


@compiled
def delta(first, key, d, following, state, out, reach, slide):  # type: ignore[no-untyped-def]
    """Whenever the column `d` has grown by more than `slide`, the last `range` of it.

    All events before a trigger are below it, or one of them would have been the trigger. If the
    column decreases the place of that event is given, less one, with a minus.
    """
    found = 0
    for i in range(len(key)):
        k, slot = key[i], first + i
        if state[TRIGGER, k] != NONE and d[slot] < d[state[LAST, k]]:
            return -i - 1
        if state[TRIGGER, k] == NONE or d[slot] - d[state[TRIGGER, k]] > slide:
            state[TRIGGER, k] = slot
            while state[EVENTS, k] > 0 and beyond(d[state[FIRST, k]], d[slot], reach):
                state[FIRST, k] = following[state[FIRST, k]]
                state[EVENTS, k] -= 1
            if state[EVENTS, k] > 0:
                found = _emit(out, found, k, state[SEQ, k], state[FIRST, k], state[EVENTS, k])
            state[SEQ, k] += 1
        if state[EVENTS, k] == 0:
            state[FIRST, k] = slot
        state[EVENTS, k] += 1
        state[LAST, k] = slot
    return found


@compiled
def marked(first, key, marks, following, state, out):  # type: ignore[no-untyped-def]
    """Open and close as a custom window's marks say, which are kept by slot."""
    found = 0
    for i in range(len(key)):
        k, slot = key[i], first + i
        mark, position = marks[slot], state[POSITION, k]
        state[POSITION, k] += 1
        if mark & 1 and state[OPENED, k] > 0:
            found = _close_oldest(marks, following, state, out, found, k, position)
        if mark & 2:
            if state[OPENED, k] == 0:
                state[FIRST, k] = slot
                state[STARTED, k] = position
            state[OPENED, k] += 1
        if mark & 4 and state[OPENED, k] > 0:
            found = _close_oldest(marks, following, state, out, found, k, position + 1)
    return found


@helper
def _close_oldest(marks, following, state, out, found, k, end):  # type: ignore[no-untyped-def]
    events = end - state[STARTED, k]
    found = _emit(out, found, k, state[SEQ, k], state[FIRST, k], events)
    state[SEQ, k] += 1
    state[OPENED, k] -= 1
    if state[OPENED, k] == 0:
        state[FIRST, k] = NONE
        return found
    while True:
        state[FIRST, k] = following[state[FIRST, k]]
        state[STARTED, k] += 1
        if marks[state[FIRST, k]] & 2:
            return found


@compiled
def follow(key, first, events, following, slots, lo, hi):  # type: ignore[no-untyped-def]
    """The slots of windows that come key by key, in order; those of one key may overlap.

    Window i has the slots from lo[i] to hi[i]; gives how many there are in all.
    """
    end = 0
    begin = 0
    for i in range(len(key)):
        if i == 0 or key[i] != key[i - 1]:
            begin = end
        low = begin
        if end > begin and slots[end - 1] >= first[i]:
            # The first event is among those of the windows before.
            high = end
            while low < high:
                middle = (low + high) // 2
                if slots[middle] < first[i]:
                    low = middle + 1
                else:
                    high = middle
        else:
            low = end
            slots[end] = first[i]
            end += 1
        lo[i] = low
        hi[i] = low + events[i]
        while end < hi[i]:
            slots[end] = following[slots[end - 1]]
            end += 1
    return end
