"""Cells: the windows or panes that one PU has open, found by their number and key.

A pane is a window like any other, only shorter. Whatever contributes to cells, an event or a
finished pane, does it in two steps, as in the thesis: find or create the cell, then run a step of
the aggregate on it. Both are compiled loops over pairs (contributor, number).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numba
import numpy as np

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Partials
from paneflow.engines.multicore.holding import FEW, concatenated, held, marked, put, taken
from paneflow.engines.multicore.question import Events, Question
from paneflow.engines.multicore.tracing import absorbing, combining

FEWEST = 64

compiled = numba.njit(nogil=True, cache=True)


@dataclass(frozen=True, eq=False)
class Contents:
    """What cells hold, one array for each thing; travels between PUs."""

    number: Array
    key: Array
    rows: Array
    """How many events."""
    first: Array
    last: Array
    """The times of the first and the last event."""
    counts: list[Array]
    """For each set of columns that is counted: how many events have all its values."""
    partials: list[Partials]

    def __len__(self) -> int:
        return len(self.number)

    def arrays(self) -> list[Array]:
        """All of them, always in the same order."""
        parts = [column for partial in self.partials for column in partial]
        return [self.number, self.key, self.rows, self.first, self.last, *self.counts, *parts]

    def like(self, arrays: Iterable[Array]) -> Contents:
        """Others in the place of these."""
        each = iter(arrays)
        return Contents(
            next(each),
            next(each),
            next(each),
            next(each),
            next(each),
            [next(each) for _ in self.counts],
            [tuple(next(each) for _ in partial) for partial in self.partials],
        )

    def chosen(self, which: Array | slice) -> Contents:
        """Some of them: a stretch, as views, or those at places or marked by a mask."""
        if isinstance(which, slice):
            return self.like([array[which] for array in self.arrays()])
        places = marked(which) if which.dtype == np.bool_ else which
        return self.like([taken(array, places) for array in self.arrays()])

    def fill(self, source: Contents) -> None:
        """Let others stand in the first places."""
        for ours, theirs in zip(self.arrays(), source.arrays(), strict=True):
            put(theirs, ours, 0)


def joined(several: list[Contents]) -> Contents:
    """The contents of all, one behind the other."""
    columns = zip(*(contents.arrays() for contents in several), strict=True)
    return several[0].like(concatenated(column) for column in columns)


class Cells:
    """Open cells, at most one for each pair of number and key."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._used = 0
        self._table = np.full(2 * FEWEST, -1, np.int32)
        self._held = self._room(FEWEST)
        self._absorb = [kernel(op, "absorb_all", absorb_loop) for op in question.operators]
        self._combine = [kernel(op, "combine_all", combine_loop) for op in question.operators]

    def __len__(self) -> int:
        return self._used

    def contents(self) -> Contents:
        """What is held now, as views."""
        return self._held.chosen(slice(self._used))

    def warm(self) -> None:
        """Build and compile everything, by doing it with nothing."""
        none = np.zeros(0, np.int64)
        self.absorb(Events(self._question, self._question.no_events()), none, none)
        self.merge(self.take(), none, none)
        held = self.take()
        self._question.lower(held.rows, held.counts, held.partials)

    def absorb(self, events: Events, which: Array, numbers: Array) -> int:
        """Let event which[j] contribute to the cell numbers[j] of its key; how many steps."""
        cells = self._find(numbers, which, events.key)
        held = self._held
        # The aggregates first: if a user's function fails, its events have not been counted.
        for op, run, inputs, partial in zip(
            self._question.operators, self._absorb, events.inputs, held.partials, strict=True
        ):
            with absorbing(op, cells, which, inputs, partial):
                run(cells, which, *inputs, *partial)
        few = len(cells) <= FEW
        for present, counts in zip(events.counted, held.counts, strict=True):
            (_tally_few_events if few else _tally_events)(cells, which, present, counts)
        note = _note_few_events if few else _note_events
        note(cells, which, events.t, held.rows, held.first, held.last)
        return len(cells)

    def merge(self, panes: Contents, which: Array, numbers: Array) -> int:
        """Let pane which[j] contribute to the cell numbers[j] of its key, the earlier panes first.

        How many steps that were.
        """
        cells = self._find(numbers, which, panes.key)
        held = self._held
        few = len(cells) <= FEW
        note = _note_few_panes if few else _note_panes
        note(cells, which, panes.rows, panes.first, panes.last, held.rows, held.first, held.last)
        for theirs, ours in zip(panes.counts, held.counts, strict=True):
            (_tally_few_panes if few else _tally_panes)(cells, which, theirs, ours)
        for op, run, parts, partial in zip(
            self._question.operators, self._combine, panes.partials, held.partials, strict=True
        ):
            with combining(op, cells, which, parts, partial):
                run(cells, which, *parts, *partial)
        return len(cells)

    def remove(self, leaving: Array) -> Contents:
        """Take out those that are marked among `contents`."""
        held = self.contents()
        leaving_now = held.chosen(leaving)
        if len(leaving_now):
            kept = held.chosen(marked(leaving, False))
            self._used = len(kept)
            self._held.fill(kept)
            enter = _enter_few if self._used <= FEW else _enter
            enter(self._table, self._held.number, self._held.key, self._used)
        return leaving_now

    def take(self) -> Contents:
        """Take out all of them; their room stays for others."""
        held = self.contents()
        taken = held.like(array.copy() for array in held.arrays())
        self._used = 0
        self._table[:] = -1
        return taken

    def _find(self, numbers: Array, which: Array, keys: Array) -> Array:
        self._reserve(self._used + len(numbers))
        cells = np.empty(len(numbers), np.int64)
        before = self._used
        find = _find_or_create_few if len(numbers) <= FEW else _find_or_create
        self._used = find(
            numbers, which, keys, self._table, before, self._held.number, self._held.key, cells
        )
        new = slice(before, self._used)
        self._held.rows[new] = 0
        for counts in self._held.counts:
            counts[new] = 0
        for op, partial in zip(self._question.operators, self._held.partials, strict=True):
            for column, value in zip(partial, op.start(), strict=True):
                column[new] = value
        return cells

    def _reserve(self, n: int) -> None:
        room = len(self._held)
        if n <= room:
            return
        while room < n:
            room *= 2
        now = self.contents()
        self._held = self._room(room)
        self._held.fill(now)
        self._table = np.empty(2 * room, np.int32)
        _enter(self._table, self._held.number, self._held.key, self._used)

    def _room(self, n: int) -> Contents:
        number, key, rows, first, last = (np.empty(n, np.int64) for _ in range(5))
        return Contents(
            number,
            key,
            rows,
            first,
            last,
            [np.empty(n, np.int64) for _ in self._question.counted],
            [op.empty(n) for op in self._question.operators],
        )


def absorb_loop(shape: Shape) -> str:
    """A step of the aggregate for each pair of cell and event, in order."""
    return f"""
        def absorb_all(cells, which, present, {shape.value_names()}, {shape.names("o")}):
            for j in range(len(cells)):
                i = which[j]
                if len(present) == 0 or present[i]:
                    c = cells[j]
                    p = absorb({shape.load("o", "c")}, {shape.values("i")})
                    {shape.store("o", "c", "p")}
        """


def combine_loop(shape: Shape) -> str:
    """A step of the aggregate for each pair of cell and pane, in order."""
    return f"""
        def combine_all(cells, which, {shape.names("s")}, {shape.names("o")}):
            for j in range(len(cells)):
                i = which[j]
                c = cells[j]
                p = {shape.load("o", "c")}
                q = {shape.load("s", "i")}
                {shape.merge_at("o", "c", "p", "q")}
        """


@numba.njit(nogil=True, inline="always")
def _place(number, key):  # type: ignore[no-untyped-def]
    # The finaliser of splitmix64 spreads neighbouring numbers and keys over the table.
    x = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((x ^ (x >> np.uint64(31))) >> np.uint64(1))


@compiled
def _find_or_create(numbers, which, keys, table, used, number, key, cells):  # type: ignore[no-untyped-def]
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
                number[cell] = n
                key[cell] = k
                used += 1
                break
            if number[cell] == n and key[cell] == k:
                break
            at = (at + 1) & mask
        cells[j] = cell
    return used


@compiled
def _enter(table, number, key, used):  # type: ignore[no-untyped-def]
    table[:] = -1
    mask = len(table) - 1
    for cell in range(used):
        at = _place(number[cell], key[cell]) & mask
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = cell


@compiled
def _note_events(cells, which, t, rows, first, last):  # type: ignore[no-untyped-def]
    for j in range(len(cells)):
        c = cells[j]
        if rows[c] == 0:
            first[c] = t[which[j]]
        last[c] = t[which[j]]
        rows[c] += 1


@compiled
def _note_panes(cells, which, pane_rows, pane_first, pane_last, rows, first, last):  # type: ignore[no-untyped-def]
    for j in range(len(cells)):
        c = cells[j]
        i = which[j]
        if rows[c] == 0:
            first[c] = pane_first[i]
        last[c] = pane_last[i]
        rows[c] += pane_rows[i]


@compiled
def _tally_events(cells, which, present, counts):  # type: ignore[no-untyped-def]
    for j in range(len(cells)):
        if len(present) == 0 or present[which[j]]:
            counts[cells[j]] += 1


@compiled
def _tally_panes(cells, which, pane_counts, counts):  # type: ignore[no-untyped-def]
    for j in range(len(cells)):
        counts[cells[j]] += pane_counts[which[j]]


@held
def _find_or_create_few(*arguments):  # type: ignore[no-untyped-def]
    return _find_or_create(*arguments)


@held
def _enter_few(*arguments):  # type: ignore[no-untyped-def]
    _enter(*arguments)


@held
def _note_few_events(*arguments):  # type: ignore[no-untyped-def]
    _note_events(*arguments)


@held
def _note_few_panes(*arguments):  # type: ignore[no-untyped-def]
    _note_panes(*arguments)


@held
def _tally_few_events(*arguments):  # type: ignore[no-untyped-def]
    _tally_events(*arguments)


@held
def _tally_few_panes(*arguments):  # type: ignore[no-untyped-def]
    _tally_panes(*arguments)
