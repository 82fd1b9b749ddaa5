"""Cells: the open windows or panes of one PU, found by their number and key.

To cells, a pane is just a short window. Events and finished panes contribute to cells in two steps,
as in the thesis: find or create the cell, then run a step of the aggregate on it. Both are compiled
loops over pairs (contributor, number).
"""

from __future__ import annotations

import numpy as np

from paneflow.aggregates.kernels import kernel
from paneflow.aggregates.operator import Array, fill
from paneflow.compiling import helper, pasted
from paneflow.engines.multicore.stores.folding_loops import absorb_loop, combine_loop
from paneflow.engines.multicore.threads.short_loops import Loop
from paneflow.engines.multicore.ticks import AFTER_ALL
from paneflow.engines.multicore.topologies.parts.contents import (
    COUNTS,
    FIRST,
    KEY,
    LAST,
    NUMBER,
    ROWS,
    Contents,
    room_for,
)
from paneflow.engines.multicore.topologies.parts.question import Inputs, Question
from paneflow.engines.multicore.tracing import absorb_plainly, combine_plainly
from paneflow.engines.multicore.tuning import tuning

_NOWHERE = np.empty(0, np.int64)


class Cells:
    """Open cells, at most one for each pair of number and key."""

    def __init__(self, question: Question, watched: bool = False) -> None:
        """`watched`: note which cells are touched, for `touched`."""
        self._question = question
        self._watched = watched
        self._touched: list[Array] = []
        self._used = 0
        self.least = AFTER_ALL
        """The least number of an open cell."""
        self._table = np.full(2 * tuning.first_cells, -1, np.int32)
        self._held = room_for(question, tuning.first_cells)
        self._start = [op.start() for op in question.operators]
        self._absorb = [kernel(op, "absorb_all", absorb_loop) for op in question.operators]
        self._combine = [kernel(op, "combine_all", combine_loop) for op in question.operators]

    def __len__(self) -> int:
        return self._used

    def contents(self) -> Contents:
        """All cells, as views."""
        return self._held.until(self._used)

    def warm(self) -> None:
        """Build and compile all kernels, by running them on nothing."""
        none = np.zeros(0, np.int64)
        self.absorb(Inputs.none(self._question), none, none)
        self.merge(self.take(), none, none)
        held = self.take()
        self._question.lower(held.rows, held.counts, held.partials)

    def absorb(self, events: Inputs, which: Array, numbers: Array) -> int:
        """Add event which[j] to the cell numbers[j] of its key; return the number of steps."""
        cells = self._find(numbers, which, events.key)
        held = self._held
        # Aggregates first: if a user's function fails, the events have not been counted yet.
        for op, run, inputs, partial in zip(
            self._question.operators, self._absorb, events.inputs, held.partials, strict=True
        ):
            try:
                run(cells, which, *inputs, *partial)
            except Exception:
                absorb_plainly(op, cells, which, inputs, partial)
                raise
        _note_events(len(cells), cells, which, events.t, events.counted, held.fields)
        self._note(cells)
        return len(cells)

    def merge(self, panes: Contents, which: Array, numbers: Array) -> int:
        """Merge pane which[j] into the cell numbers[j] of its key; return the number of steps.

        Earlier panes come first.
        """
        cells = self._find(numbers, which, panes.key)
        held = self._held
        _note_panes(len(cells) * len(held.fields), cells, which, panes.fields, held.fields)
        for op, run, parts, partial in zip(
            self._question.operators, self._combine, panes.partials, held.partials, strict=True
        ):
            try:
                run(cells, which, *parts, *partial)
            except Exception:
                combine_plainly(op, cells, which, parts, partial)
                raise
        self._note(cells)
        return len(cells)

    def _note(self, cells: Array) -> None:
        if self._watched and len(cells):
            self._touched.append(cells)

    def touched(self) -> Array:
        """The places of cells that have changed since the last call."""
        touched = np.unique(np.concatenate([_NOWHERE, *self._touched]))
        self._touched = []
        return touched

    def remove_at(self, leaving: Array, watched: Array) -> Contents:
        """Take out the cells at increasing places; those at `watched` count as touched again.

        If few of many leave, the last cells move into the holes, so the cost depends on how many
        leave.
        """
        removed = self._held.chosen(leaving)
        if 4 * len(leaving) > self._used:
            stays = np.ones(self._used, np.bool_)
            stays[leaving] = False
            self._keep(np.flatnonzero(stays))
            places = np.cumsum(stays) - 1
        else:
            places = np.arange(self._used) if len(watched) else _NOWHERE
            source, target = (np.empty(len(leaving), np.int64) for _ in range(2))
            moved = _take_out(
                len(leaving), leaving, self._table, self._held.fields, self._used, source, target
            )
            for k in range(moved):
                for partial in self._held.partials:
                    for column in partial:
                        column[target[k]] = column[source[k]]
                if len(watched):
                    places[places == source[k]] = target[k]
            self._used -= len(leaving)
        if len(watched):
            self._touched.append(places[watched])
        return removed

    def find(self, numbers: Array, keys: Array) -> Array:
        """The places of cells, by number and key; -1 where there is no such cell."""
        cells = np.empty(len(numbers), np.int64)
        _look_up(len(numbers), numbers, keys, self._table, self._held.fields, cells)
        return cells

    def remove(self, leaving: Array) -> Contents:
        """Take out the marked ones among `contents`."""
        left, stay = self._sorted_out(leaving)
        removed = self._held.chosen(left)
        self._keep(stay)
        return removed

    def drop(self, leaving: Array) -> None:
        """Drop the marked ones among `contents`."""
        self._keep(self._sorted_out(leaving)[1])

    def _sorted_out(self, leaving: Array) -> tuple[Array, Array]:
        places = np.empty(len(leaving), np.int64)
        gone = _sort_out(len(leaving), leaving, places)
        return places[:gone], places[gone:]

    def _keep(self, stay: Array) -> None:
        if len(stay) < self._used:
            self._held.close_up(stay)
            self._used = len(stay)
            self.least = int(self.contents().number.min(initial=AFTER_ALL))
            _enter(self._used, self._table, self._held.fields, self._used)

    def take(self) -> Contents:
        """Take out all cells; their room is kept for others."""
        taken = self.contents().copy()
        self._used = 0
        self.least = AFTER_ALL
        self._table[:] = -1
        return taken

    def _find(self, numbers: Array, which: Array, keys: Array) -> Array:
        self._reserve(self._used + len(numbers))
        self.least = min(self.least, int(numbers.min(initial=AFTER_ALL)))
        cells = np.empty(len(numbers), np.int64)
        before = self._used
        self._used = _find_or_create(
            len(numbers), numbers, which, keys, self._table, before, self._held.fields, cells
        )
        if self._used > before:
            for start, partial in zip(self._start, self._held.partials, strict=True):
                for column, value in zip(partial, start, strict=True):
                    fill(column[before : self._used], value)
        return cells

    def _reserve(self, n: int) -> None:
        room = len(self._held)
        if n <= room:
            return
        while room < n:
            room *= 2
        now = self.contents()
        self._held = room_for(self._question, room)
        self._held.fill(now)
        self._table = np.empty(2 * room, np.int32)
        _enter(self._used, self._table, self._held.fields, self._used)


@pasted
def _place(number, key):  # type: ignore[no-untyped-def]
    # Spreads neighbouring numbers and keys over the table, as well as those far apart.
    x = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64(x >> np.uint64(32))


@Loop
def _find_or_create(numbers, which, keys, table, used, fields, cells):  # type: ignore[no-untyped-def]
    mask = len(table) - 1
    for j in range(len(numbers)):
        n = numbers[j]
        k = keys[which[j]]
        at = _place(n, k) & mask
        while True:
            cell = table[at]
            if cell < 0:
                cell = used
                table[at] = cell
                fields[:, cell] = 0
                fields[NUMBER, cell] = n
                fields[KEY, cell] = k
                used += 1
                break
            if fields[NUMBER, cell] == n and fields[KEY, cell] == k:
                break
            at = (at + 1) & mask
        cells[j] = cell
    return used


@Loop
def _sort_out(leaving, places):  # type: ignore[no-untyped-def]
    """List the places of cells that leave, then of those that stay; return how many leave."""
    gone = 0
    for i in range(len(leaving)):
        gone += leaving[i]
    left, stays = 0, gone
    for i in range(len(leaving)):
        if leaving[i]:
            places[left] = i
            left += 1
        else:
            places[stays] = i
            stays += 1
    return gone


@Loop
def _look_up(numbers, keys, table, fields, cells):  # type: ignore[no-untyped-def]
    mask = len(table) - 1
    for j in range(len(numbers)):
        at = _place(numbers[j], keys[j]) & mask
        while table[at] >= 0 and (
            fields[NUMBER, table[at]] != numbers[j] or fields[KEY, table[at]] != keys[j]
        ):
            at = (at + 1) & mask
        cells[j] = table[at]


@helper
def _spot(cell, table, fields):  # type: ignore[no-untyped-def]
    """Where in the hash table a cell is entered."""
    mask = len(table) - 1
    at = _place(fields[NUMBER, cell], fields[KEY, cell]) & mask
    while table[at] != cell:
        at = (at + 1) & mask
    return at


@Loop
def _take_out(leaving, table, fields, used, source, target):  # type: ignore[no-untyped-def]
    """Take cells out, the last first, and fill holes with the last cells; return how many moved."""
    mask = len(table) - 1
    moves = 0
    for j in range(len(leaving) - 1, -1, -1):
        cell = leaving[j]
        hole = _spot(cell, table, fields)
        at = (hole + 1) & mask
        while table[at] >= 0:
            home = _place(fields[NUMBER, table[at]], fields[KEY, table[at]]) & mask
            # Entries after a hole move up, unless that would put them before their home.
            if ((at - home) & mask) >= ((at - hole) & mask):
                table[hole] = table[at]
                hole = at
            at = (at + 1) & mask
        table[hole] = -1
        used -= 1
        if cell < used:
            table[_spot(used, table, fields)] = cell
            fields[:, cell] = fields[:, used]
            source[moves] = used
            target[moves] = cell
            moves += 1
    return moves


@Loop
def _enter(table, fields, used):  # type: ignore[no-untyped-def]
    table[:] = -1
    mask = len(table) - 1
    for cell in range(used):
        at = _place(fields[NUMBER, cell], fields[KEY, cell]) & mask
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = cell


@Loop
def _note_events(cells, which, t, present, fields):  # type: ignore[no-untyped-def]
    all_present = present.shape[1] == 0
    for j in range(len(cells)):
        c = cells[j]
        i = which[j]
        if fields[ROWS, c] == 0:
            fields[FIRST, c] = t[i]
        fields[LAST, c] = t[i]
        fields[ROWS, c] += 1
        for row in range(COUNTS, len(fields)):
            fields[row, c] += all_present or present[row - COUNTS, i]


@Loop
def _note_panes(cells, which, panes, fields):  # type: ignore[no-untyped-def]
    for j in range(len(cells)):
        c = cells[j]
        i = which[j]
        if fields[ROWS, c] == 0:
            fields[FIRST, c] = panes[FIRST, i]
        fields[LAST, c] = panes[LAST, i]
        fields[ROWS, c] += panes[ROWS, i]
        for row in range(COUNTS, len(fields)):
            fields[row, c] += panes[row, i]
