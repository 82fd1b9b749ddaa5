"""The windows of one label, kept merged for every key from one watermark to the next.

Windows that overlap hold mostly what the windows before them held. So for each key the slices of
its last window are kept as a streaming algorithm wants them (`merging/keyed/fifos.py`); when the
next window closes, a few slices enter and a few leave. A push then costs by what comes and by how
many rows close, not by how many slices windows have.

Nothing is lost when these are dropped: they can be built again from the slices themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from paneflow.aggregates._functions.roles import merging
from paneflow.aggregates.lowering import Lowering
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.compiling import compiled
from paneflow.engines.multicore.one_worker.slice_runs import Block, empty_block
from paneflow.merging.keyed.fifos import Slides, moved_cells
from paneflow.merging.keyed.regions import FEWEST, Regions, spread
from paneflow.merging.streaming import keyed_windows
from paneflow.windows import Sliding


class Closed(NamedTuple):
    """Windows that have closed, ordered by key and number, and what they amount to."""

    key: Array
    seq: Array
    counts: Mapping[tuple[str, ...], Array]
    merged: Mapping[Operator, Partials]


class Queues(NamedTuple):
    """For each slot, the slices in its window: when they begin, and how many events they have."""

    span: Array
    """Counters: how many slices have left the window of a slot, and how many have entered it."""
    base: Array
    size: Array
    start: Array
    counts: Array
    """A row for each set of columns; cells as in `start`."""
    total: Array
    """For each slot and set of columns, the events in the window."""


class Found(NamedTuple):
    """Room for the rows of windows."""

    at: Array
    seq: Array
    lo: Array
    hi: Array
    counts: Array


class KeptWindows:
    """The last windows of one label, for all keys that have one."""

    def __init__(self, window: Sliding, names: Mapping[Operator, str], lowering: Lowering) -> None:
        """`names`: the algorithm that merges the partials of each operator."""
        self._window = window
        self._counted = counted = lowering.counted
        self._operators = {
            op: keyed_windows(name, op, window.overlap) for op, name in names.items()
        }
        self.takes_late = set(names.values()) <= {"fiba"}
        """Whether slices may enter behind others."""
        self._regions = Regions()
        self._span = np.zeros((0, 2), np.int64)
        self._start = np.empty(FEWEST, np.int64)
        self._counts = np.empty((len(counted), FEWEST), np.int64)
        self._total = np.zeros((0, len(counted)), np.int64)
        self._keys = np.empty(0, np.int64)
        self._slots = np.empty(0, np.int64)
        self._free = np.empty(0, np.int64)
        self._all = 0

    def slide(self, entering: Block | None, first: int, last: int) -> Closed:
        """Close the windows from one number to another, behind those that were closed before.

        All slices of them that have not entered yet must enter now.
        """
        if entering is None:
            entering = empty_block(self._operators, self._counted)
        self._welcome(entering.key)
        slots = self._slots
        begins = np.append(np.searchsorted(entering.key, self._keys), len(entering.key))
        self._make_room(slots, np.diff(begins))
        most = len(slots) * (last - first + 1)
        found = Found(
            at=np.empty(len(slots) + 1, np.int64),
            seq=np.empty(most, np.int64),
            lo=np.empty(most, np.int64),
            hi=np.empty(most, np.int64),
            counts=np.empty((len(self._counted), most), np.int64),
        )
        counts = np.array([entering.counts[columns] for columns in self._counted])
        counts = counts.reshape(len(self._counted), len(entering.key))
        span, offset = (getattr(self._window, name).value for name in ("range", "offset"))
        slide = self._window.slide.value
        queues = Queues(
            self._span,
            self._regions.base,
            self._regions.size,
            self._start,
            self._counts,
            self._total,
        )
        numbers = (first, last, offset, slide, span)
        _close(numbers, slots, begins, entering.start, counts, queues, found)
        rows = int(found.at[-1])
        since = offset + found.seq[:rows] * slide
        slides = Slides(
            slots,
            found.at,
            found.lo[:rows],
            found.hi[:rows],
            since,
            since + span,
            begins,
            entering.start,
        )
        merged = {}
        for operator, windows in self._operators.items():
            partials = entering.partials[operator]
            with merging(operator, partials, begins[:-1], begins[1:]):
                merged[operator] = windows.slide(slides, partials)
        closed = Closed(
            np.repeat(self._keys, np.diff(found.at)),
            found.seq[:rows],
            {c: n[:rows] for c, n in zip(self._counted, found.counts, strict=True)},
            merged,
        )
        self._dismiss(self._span[slots, 0] == self._span[slots, 1])
        return closed

    def _welcome(self, keys: Array) -> None:
        """Have a slot for each of some keys, which are in order."""
        keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
        places = np.searchsorted(self._keys, keys)
        known = np.append(self._keys, -1)[places] == keys
        new, places = keys[~known], places[~known]
        again = self._free[: len(new)]
        self._free = self._free[len(new) :]
        fresh = np.arange(self._all, self._all + len(new) - len(again))
        self._all += len(fresh)
        self._keys = np.insert(self._keys, places, new)
        self._slots = np.insert(self._slots, places, np.append(again, fresh))
        self._regions.reserve(self._all)
        room = len(self._regions.base) - len(self._span)
        if room > 0:
            self._span = np.append(self._span, np.zeros((room, 2), np.int64), axis=0)
            none = np.zeros((room, len(self._counted)), np.int64)
            self._total = np.append(self._total, none, axis=0)
        for windows in self._operators.values():
            windows.reserve(self._all)

    def _make_room(self, slots: Array, entering: Array) -> None:
        """Let queues hold what is in them and what enters."""
        inside = self._span[slots, 1] - self._span[slots, 0]
        move = self._regions.grow(slots, inside + entering)
        if move is None:
            return
        positions, which = spread(self._span[move.slots, 0], self._span[move.slots, 1])
        source = move.old_base[which] + (positions & (move.old_size[which] - 1))
        target = move.base[which] + (positions & (move.size[which] - 1))
        end = self._regions.end
        self._start = moved_cells(self._start, source, target, end, move.fresh)
        moved = [moved_cells(row, source, target, end, move.fresh) for row in self._counts]
        self._counts = np.array(moved).reshape(len(moved), -1)

    def _dismiss(self, empty: Array) -> None:
        """Take the slots of keys back whose windows are empty."""
        if empty.any():
            slots = self._slots[empty]
            self._regions.free(slots)
            self._span[slots] = 0
            self._total[slots] = 0
            for windows in self._operators.values():
                windows.clear(slots)
            self._free = np.append(self._free, slots)
            self._keys, self._slots = self._keys[~empty], self._slots[~empty]


@compiled
def _close(numbers, slots, begins, start, counts, queues, found):  # type: ignore[no-untyped-def]
    """Let slices enter and leave the queues of slots, window by window; a row for each not empty.

    A slice may be late: then it goes to its place among those that are there, or joins the one
    that begins with it.
    """
    first, last, offset, slide, span = numbers
    row = 0
    sets = len(counts)
    for j in range(len(slots)):
        slot = slots[j]
        base = queues.base[slot]
        mask = queues.size[slot] - 1
        front = queues.span[slot, 0]
        back = queues.span[slot, 1]
        found.at[j] = row
        i = begins[j]
        for number in range(first, last + 1):
            since = offset + number * slide
            until = since + span
            while i < begins[j + 1] and start[i] < until:
                place = back
                while place > front and queues.start[base + ((place - 1) & mask)] > start[i]:
                    place -= 1
                joins = place > front and queues.start[base + ((place - 1) & mask)] == start[i]
                if joins:
                    place -= 1
                else:
                    for p in range(back, place, -1):
                        to = base + (p & mask)
                        of = base + ((p - 1) & mask)
                        queues.start[to] = queues.start[of]
                        for c in range(sets):
                            queues.counts[c, to] = queues.counts[c, of]
                    back += 1
                cell = base + (place & mask)
                queues.start[cell] = start[i]
                for c in range(sets):
                    queues.counts[c, cell] = counts[c, i] + (queues.counts[c, cell] if joins else 0)
                    queues.total[slot, c] += counts[c, i]
                i += 1
            while front < back and queues.start[base + (front & mask)] < since:
                for c in range(sets):
                    queues.total[slot, c] -= queues.counts[c, base + (front & mask)]
                front += 1
            if front < back:
                found.seq[row] = number
                found.lo[row] = front
                found.hi[row] = back
                for c in range(sets):
                    found.counts[c, row] = queues.total[slot, c]
                row += 1
        queues.span[slot, 0] = front
        queues.span[slot, 1] = back
    found.at[len(slots)] = row
