"""W-Hive: the open windows of many writers, and the windows that none of them can update any more.

Section 5.6 of Gulisano et al., "Efficient data streaming multiway aggregation through concurrent
algorithmic designs and new abstract data types". A *winset* is the windows of all keys over one
interval. Writers update winsets concurrently; a winset is given out once, when every writer has
passed it. Winsets may also be slices: then an event updates one of them, and whoever takes them
makes windows of them.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from paneflow.aggregates.kernels import kernel
from paneflow.aggregates.operator import Array, Operator, Partials, fill
from paneflow.engines.multicore.multiway.hive_loops import (
    Bounds,
    Events,
    Own,
    Pairs,
    Released,
    Retired,
    arrange,
    final_slots,
    free_among,
    free_lane,
    pass_on,
    place,
    release,
    release_lane,
)
from paneflow.engines.multicore.multiway.hive_memory import NO_ROOM, room_for
from paneflow.engines.multicore.stores.folding_loops import absorb_loop, combine_loop
from paneflow.engines.multicore.ticks import AFTER_ALL
from paneflow.engines.multicore.tracing import absorb_plainly, combine_plainly
from paneflow.engines.multicore.tuning import tuning
from paneflow.errors import UnsupportedError

NOWHERE = np.empty(0, np.int64)


class Folded(Protocol):
    """What is folded: `Question` of the topologies is one."""

    operators: tuple[Operator, ...]
    counted: tuple[tuple[str, ...], ...]
    in_order: bool


@dataclass(frozen=True, eq=False)
class Winsets:
    """The windows of final winsets: one for each pair of number and key, ordered by number."""

    number: Array
    """When the interval of the winset begins."""
    key: Array
    fields: Array
    """How many events each window has, and how many of them have the values of each set."""
    partials: list[Partials]

    def __len__(self) -> int:
        return len(self.key)


class Lane:
    """The cells of one lane: what it knows of the windows that were updated in it.

    One thread at a time writes to them, so they may hold Python objects, and grow: the output reads
    only cells of final winsets, whose values are the same in old and new arrays.
    """

    def __init__(self, folded: Folded, slices: bool) -> None:
        self._operators = folded.operators
        self._slices = slices
        rows = 1 + len(folded.counted)
        self.fields = np.zeros((rows, 0), np.int64)
        self.partials = [op.empty(0) for op in folded.operators]
        self.freed: deque[Array] = deque()
        """Cells that the output has read."""
        self._start = [op.start() for op in folded.operators]
        self._free = NOWHERE
        self._left = np.zeros(1, np.int64)
        self._seen, self._spot = NOWHERE, NOWHERE

    def own(self, highest: int, cells: int) -> Own:
        """For a loop over keys up to some code, which may take so many cells."""
        while self.freed:
            self._put_back(self.freed.popleft())
        while self._left[0] < cells:
            self._grow()
        if self._slices and highest >= len(self._seen):
            more = max(2 * len(self._seen), highest + 1, tuning.first_room) - len(self._seen)
            self._seen = np.append(self._seen, np.full(more, AFTER_ALL))
            self._spot = np.append(self._spot, np.zeros(more, np.int64))
        return Own(self.fields, self._free, self._left, self._seen, self._spot)

    def _grow(self) -> None:
        """Make room for twice as many cells."""
        before = self.fields.shape[1]
        room = max(2 * before, tuning.first_cells)
        fields = np.empty((len(self.fields), room), np.int64)
        fields[:, :before] = self.fields
        partials = []
        for op, columns in zip(self._operators, self.partials, strict=True):
            grown = op.empty(room)
            for column, held in zip(grown, columns, strict=True):
                column[:before] = held
            partials.append(grown)
        self.fields, self.partials = fields, partials
        self._free = np.append(self._free, np.empty(room - before, np.int64))
        self._put_back(np.arange(before, room))

    def _put_back(self, cells: Array) -> None:
        """Cells that are free hold nothing."""
        self.fields[:, cells] = 0
        for start, columns in zip(self._start, self.partials, strict=True):
            for column, value in zip(columns, start, strict=True):
                if column.dtype == object:
                    for cell in cells.tolist():
                        column[cell] = value
                else:
                    column[cells] = value
        left = int(self._left[0])
        self._free[left : left + len(cells)] = cells
        self._left[0] = left + len(cells)


class Hive:
    """Open winsets.

    `update` and `passes` of one writer are called by one thread at a time, and `next_winsets` by
    one thread at a time; apart from that, threads do not wait for each other.
    """

    def __init__(
        self,
        folded: Folded,
        writers: int,
        edges: Sequence[tuple[int, int]],
        span: tuple[int, int, int] | None = None,
    ) -> None:
        """Windows of range, slide and offset `span`; without it, slices between the edges."""
        self._any_lane = not folded.in_order and all(op.exact for op in folded.operators)
        self._apart = min(writers, os.cpu_count() or 1)
        """Shares of the keys that are updated apart from each other, if keys are many."""
        self._folded = folded
        self._bounds = Bounds(
            np.array(edges, np.int64).reshape(-1, 2), *(span or (0, 0, 0)), -AFTER_ALL
        )
        self._memory = room_for(writers, tuning.most_winsets, tuning.most_tables, tuning.most_slots)
        self._lanes = [Lane(folded, span is None) for _ in range(writers)]
        self._pairs = [Pairs(*_room(tuning.pairs, 2)) for _ in range(writers)]
        self._absorb = [kernel(op, "absorb_all", absorb_loop) for op in folded.operators]
        self._combine = [kernel(op, "combine_all", combine_loop) for op in folded.operators]
        self._levels_held = np.zeros(tuning.most_winsets, np.int64)
        nodes, epochs = _room(tuning.most_winsets, 2)
        self._retired = Retired(nodes, epochs, np.zeros(2, np.int64))
        self._row_of, self._seen = NOWHERE, NOWHERE
        self._stamp = 1

    def update(
        self,
        writer: int,
        key: Array,
        t: Array,
        present: Array,
        inputs: Sequence[tuple[Array, ...]],
        share: tuple[int, int] = (0, 1),
        least: int = -AFTER_ALL,
    ) -> int:
        """Add events to the winsets they belong to; returns how many windows were updated.

        `present` and `inputs` are what `Inputs` of the topologies gives. Of the keys, only those
        are the writer's own that leave the remainder share[0] when divided by share[1]. Winsets
        that begin before `least` are closed to the events.
        """
        if self._is_apart(key) and share == (0, 1):
            return self._update_apart(Events(key, t, present, *share), inputs, least)
        lane = free_lane(self._memory) if self._any_lane else writer
        try:
            return self._update(lane, Events(key, t, present, *share), inputs, least)
        finally:
            if self._any_lane:
                release_lane(self._memory, lane)

    def _is_apart(self, key: Array) -> bool:
        """Whether shares of the keys are updated in lanes of their own."""
        return (
            self._any_lane
            and self._apart > 1
            and len(key) > self._apart * tuning.apart_events
            and int(key.max()) >= tuning.apart_keys
        )

    def _update_apart(self, events: Events, inputs: Sequence[tuple[Array, ...]], least: int) -> int:
        """Add events share by share of the keys, each in a lane of its own if that is free soon.

        Many windows do not fit into the cache. If every lane had its own cells of all of them,
        there would be twice as many with two threads.
        """
        of = events.key % self._apart
        left = list(range(self._apart))
        updated = 0
        while left:
            lane = free_among(self._memory, np.array(left), tuning.apart_looks)
            share = left[0] if lane < 0 else lane
            left.remove(share)
            lane = free_lane(self._memory) if lane < 0 else lane
            try:
                which = np.flatnonzero(of == share)
                some = events._replace(
                    key=events.key[which],
                    t=events.t[which],
                    present=events.present[:, which] if events.present.shape[1] else events.present,
                )
                parts = [tuple(v[which] if len(v) else v for v in values) for values in inputs]
                updated += self._update(lane, some, parts, least)
            finally:
                release_lane(self._memory, lane)
        return updated

    def _update(
        self, lane: int, events: Events, inputs: Sequence[tuple[Array, ...]], least: int
    ) -> int:
        mine, pairs = self._lanes[lane], self._pairs[lane]
        key, t = events.key, events.t
        bounds = self._bounds._replace(least=least)
        highest = int(key.max(initial=0))
        start, updated = 0, 0
        while start < len(t):
            own = mine.own(highest, len(pairs.which))
            done, listed = place(self._memory, lane, own, bounds, events, start, pairs)
            if done == NO_ROOM:
                raise UnsupportedError(
                    f"so many windows are open at a time that the memory of a hive is used up "
                    f"({tuning.most_winsets} intervals with {tuning.most_slots} windows, for each "
                    f"writer): one source may be far ahead of the others; use another strategy, "
                    f"or push sources at the same pace"
                )
            if done == start:
                pairs = self._pairs[lane] = Pairs(*_room(2 * len(pairs.which), 2))
            self._fold(mine, pairs.cells[:listed], pairs.which[:listed], inputs)
            updated += listed
            start = done
        return updated

    def _fold(
        self, mine: Lane, cells: Array, which: Array, inputs: Sequence[tuple[Array, ...]]
    ) -> None:
        if not len(cells):
            return
        for op, run, values, partial in zip(
            self._folded.operators, self._absorb, inputs, mine.partials, strict=True
        ):
            try:
                run(cells, which, *values, *partial)
            except Exception:
                absorb_plainly(op, cells, which, values, partial)
                raise

    def passes(self, writer: int, number: int) -> None:
        """The writer will update no winset any more that begins before a time."""
        pass_on(self._memory, writer, number)

    def next_winsets(self, most: int = AFTER_ALL) -> Winsets | None:
        """The earliest winsets, if no writer can update them any more; None if there are none."""
        memory, lanes = self._memory, len(self._lanes)
        winsets, slots, least = final_slots(memory, most)
        if winsets == 0:
            return None
        released = Released(*_room(winsets, 2), *_room(slots, 2))
        found = release(memory, winsets, least, released, self._levels_held, self._retired)
        self._reserve(int(released.codes[:found].max(initial=0)) // lanes)
        out = (*_room(found, 4), np.empty(lanes + 1, np.int64))
        rows = arrange(released, winsets, found, lanes, self._row_of, self._seen, self._stamp, out)
        self._stamp += winsets
        number, key, target, cells, starts = out
        return self._combined(number[:rows], key[:rows], target, cells, starts)

    def _combined(
        self, number: Array, key: Array, target: Array, cells: Array, starts: Array
    ) -> Winsets:
        fields = np.zeros((1 + len(self._folded.counted), len(number)), np.int64)
        partials = [op.empty(len(number)) for op in self._folded.operators]
        for op, columns in zip(self._folded.operators, partials, strict=True):
            for column, value in zip(columns, op.start(), strict=True):
                fill(column, value)
        for lane, mine in enumerate(self._lanes):
            part = slice(int(starts[lane]), int(starts[lane + 1]))
            if part.start == part.stop:
                continue
            to, of = target[part], cells[part]
            for ours, counted in zip(fields, mine.fields, strict=True):
                ours[to] += counted[of]
            for op, run, theirs, out in zip(
                self._folded.operators, self._combine, mine.partials, partials, strict=True
            ):
                try:
                    run(to, of, *theirs, *out)
                except Exception:
                    combine_plainly(op, to, of, theirs, out)
                    raise
            mine.freed.append(of)
        return Winsets(number, key, fields, partials)

    def _reserve(self, highest: int) -> None:
        more = highest + 1 - len(self._seen)
        if more > 0:
            more = max(more, len(self._seen), tuning.first_room)
            self._row_of = np.append(self._row_of, np.zeros(more, np.int64))
            self._seen = np.append(self._seen, np.zeros(more, np.int64))


def _room(n: int, arrays: int) -> list[Any]:
    return [np.empty(n, np.int64) for _ in range(arrays)]
