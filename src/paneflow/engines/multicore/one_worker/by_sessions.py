"""Sessions of a stream, each folded into one partial while it is open.

The events of a push are folded into runs with no gap between them, and each run joins the open
session of its key, or ends it and opens the next. What is kept is a cell for each open session,
however long it is. Stragglers are runs of their own.

Cells have numbers that grow. When most of them are of sessions that have ended, the others get new
numbers.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paneflow.aggregates.aggregate import Constant, Kinds
from paneflow.aggregates.defined import Defined
from paneflow.aggregates.kernels import kernel
from paneflow.aggregates.lowering import Lowering
from paneflow.aggregates.operator import Array, Operator, Partials, fill
from paneflow.aggregates.values import Kind
from paneflow.compiling import compiled, helper
from paneflow.engines.multicore.contract import Batch, Result, Rows
from paneflow.engines.multicore.one_worker.folding import folded
from paneflow.engines.multicore.stores.folding_loops import combine_loop
from paneflow.engines.multicore.stores.growing import Grown, KeyState
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.engines.multicore.tracing import combine_plainly
from paneflow.engines.multicore.tuning import tuning
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds.by_time import session
from paneflow.slicing.events import Events as Ordered, Part
from paneflow.slicing.ordering import places_by_code
from paneflow.windows import Session

if TYPE_CHECKING:
    from paneflow.query import Query

NONE = -1
CELL, SEQ, EARLIEST, LATEST = range(4)
"""Of each key: the cell of its open session, that session's number, its first and last time."""


def foldable(query: Query, kinds: Kinds) -> bool:
    """Whether partials of sessions can be combined as events come.

    Stragglers come out of order, so the order of events must not matter to what a user combines.
    """
    return all(
        isinstance(a, Constant)
        and not (isinstance(a, Defined) and not a.laws.commutative)
        and all(kinds[c] is not Kind.TEXT for c in a.columns)
        and all(op.compiled and op.fold_many is None for op in a.operators(kinds))
        for a in query.aggregates.values()
    )


class BySessions:
    """The open sessions of one window of the query."""

    def __init__(self, query: Query, kinds: Kinds, label: int, window: Session) -> None:
        self._label = label
        self._window = window
        self._gap = window.gap.value
        self._lowering = Lowering(query.aggregates, kinds)
        self._state = KeyState(NONE, 0, 0, 0)
        self._key = Grown()
        self._counts = {columns: Grown() for columns in self._lowering.counted}
        self._partials = {
            op: tuple(Grown.like(column) for column in op.empty(0))
            for op in self._lowering.operators
        }
        self._cells = self._live = 0
        self._due_key, self._due = Grown(), Grown()
        """The last times of runs, in order, and their keys."""
        self._passed = self._runs = 0
        self._stragglers: list[tuple[int, int]] = []
        """The same of stragglers: a heap."""
        self._closed: list[Array] = []
        self._before = BEFORE_ALL
        self._noted: list[tuple[Array, list[Array]]] = []
        self._settled = (0, 0, 0, BEFORE_ALL, list(self._stragglers))

    @property
    def held(self) -> int:
        """How many sessions are remembered."""
        return self._cells

    def take(self, events: Batch) -> None:
        """Let events join open sessions, or open some."""
        keys, local = np.unique(events.key, return_inverse=True)
        places, counts = places_by_code(local, len(keys))
        ordered = Ordered(pa.table({}), np.append(0, np.cumsum(counts)), places, events.t, events.t)
        t = ordered.arrange(events.t)
        arranged = Arranged(ordered, events.columns)
        if events.behind:
            lo = np.arange(len(t))
            hi, key = lo + 1, keys[ordered.arrange(local)]
        else:
            sorted_ = Ordered(pa.table({}), ordered.key_offsets, places, t, t)
            found = session(self._window, Part(sorted_, 0, len(keys)), arranged)
            lo, hi, key = found.lo, found.hi, keys[found.key]
        moments = t if events.order is None else ordered.arrange(events.order)
        counted, partials = folded(self._lowering, arranged, moments, np.append(lo, len(t)))
        self._state.touch(key)
        join = self._join_behind if events.behind else self._join
        which, cells = join(key, t[lo], t[hi - 1])
        self._combine(which, cells, counted, partials)

    def advance(self, watermark: int, arrived: float) -> list[Rows]:
        """The sessions that the watermark has ended."""
        self._before = watermark
        self._pass(watermark)
        if not self._closed:
            return []
        cell, key, seq, earliest, latest = np.concatenate(self._closed, axis=1)
        self._closed = []
        start, end = self._window.extent(seq, earliest, latest)
        partials = {
            op: tuple(column.values[cell] for column in columns)
            for op, columns in self._partials.items()
        }
        results = {}
        for name in self._lowering.aggregates:
            n = self._counts[self._lowering.columns(name)].values[cell]
            results[name] = Result(*self._lowering.lower(name, n, partials))
        label = np.full(len(key), self._label, np.int32)
        return [Rows(label, key, seq, start, end, results, arrived, BEFORE_ALL)]

    def settle(self) -> None:
        """What has been taken and given out stays so."""
        self._state.settle()
        self._noted.clear()
        if self._cells > 2 * self._live + tuning.spare_sessions:
            self._close_up()
        if self._passed > tuning.spare_sessions and 2 * self._passed > self._runs:
            later = np.arange(self._runs) >= self._passed
            self._due_key.keep(later)
            self._due.keep(later)
            self._passed, self._runs = 0, self._runs - self._passed
        counters = (self._cells, self._passed, self._runs, self._before)
        self._settled = (*counters, list(self._stragglers))

    def undo(self) -> None:
        """As it was when it was settled."""
        self._state.undo()
        while self._noted:
            cells, before = self._noted.pop()
            for column, values in zip(self._columns(), before, strict=True):
                column.values[cells] = values
        self._cells, self._passed, self._runs, self._before, stragglers = self._settled
        self._stragglers = list(stragglers)
        self._closed = []

    def _join(self, key: Array, start: Array, last: Array) -> tuple[Array, Array]:
        """Which runs join which cells, in order."""
        which = np.argsort(last, kind="stable")
        key, start, last = key[which], start[which], last[which]
        cells = np.empty(len(which), np.int64)
        closed = np.empty((5, len(which)), np.int64)
        state = self._state.values
        found, end = _join_runs(key, start, last, state, self._gap, self._cells, cells, closed)
        self._closed += [closed[:, :found]] if found else []
        self._due_key.put(self._runs, key)
        self._due.put(self._runs, last)
        self._runs += len(key)
        self._open(key, cells, end)
        return which, cells

    def _join_behind(self, key: Array, start: Array, last: Array) -> tuple[Array, Array]:
        """The same of stragglers, of which some may find no open session."""
        which, cells, keys = [], [], []
        state, end = self._state.values, self._cells
        # The latest first: one that came behind them may be in their session only with them.
        for i in np.argsort(-last, kind="stable").tolist():
            k, t = key[i], int(start[i])
            if state[CELL, k] == NONE:
                if t + self._gap < self._before:
                    continue
                state[:, k] = end, state[SEQ, k], t, t
                end += 1
            elif not state[EARLIEST, k] - self._gap <= t <= state[LATEST, k] + self._gap:
                continue
            state[EARLIEST, k] = min(state[EARLIEST, k], t)
            state[LATEST, k] = max(state[LATEST, k], t)
            which.append(i)
            cells.append(state[CELL, k])
            keys.append(k)
            heapq.heappush(self._stragglers, (t, int(k)))
        joined, runs = np.array(cells, np.int64), np.array(which, np.int64)
        self._open(np.array(keys, np.int64), joined, end)
        in_order = np.argsort(runs)
        return runs[in_order], joined[in_order]

    def _open(self, key: Array, cells: Array, end: int) -> None:
        """Make fresh cells up to a number."""
        first, self._cells = self._cells, end
        fresh = np.empty(end - first, np.int64)
        opened = cells >= first
        fresh[cells[opened] - first] = key[opened]
        self._key.put(first, fresh)
        for count in self._counts.values():
            count.put(first, np.zeros(end - first, np.int64))
        for operator, columns in self._partials.items():
            empty = operator.empty(end - first)
            for column, start, values in zip(columns, operator.start(), empty, strict=True):
                fill(values, start)
                column.put(first, values)

    def _combine(
        self,
        which: Array,
        cells: Array,
        counted: dict[tuple[str, ...], Array],
        partials: dict[Operator, Partials],
    ) -> None:
        """Combine runs into their cells; cells that were there before can be put back."""
        old = cells[cells < self._settled[0]]
        self._noted.append((old, [column.values[old] for column in self._columns()]))
        for columns, n in counted.items():
            np.add.at(self._counts[columns].values, cells, n[which])
        for operator, parts in partials.items():
            held = tuple(column.values for column in self._partials[operator])
            try:
                kernel(operator, "combine_all", combine_loop)(cells, which, *parts, *held)
            except Exception:
                combine_plainly(operator, cells, which, parts, held)
                raise

    def _columns(self) -> list[Grown]:
        """All that cells hold."""
        partials = (column for columns in self._partials.values() for column in columns)
        return [*self._counts.values(), *partials]

    def _pass(self, watermark: int) -> None:
        """Close the sessions whose last event is longer ago than the gap."""
        due = self._due.values[: self._runs]
        until = int(np.searchsorted(due, watermark - self._gap))
        key = self._due_key.values[self._passed : until]
        late = []
        while self._stragglers and self._stragglers[0][0] + self._gap < watermark:
            late.append(heapq.heappop(self._stragglers)[1])
        self._passed = max(self._passed, until)
        key = np.append(key, np.array(late, np.int64))
        self._state.touch(key)
        closed = np.empty((5, len(key)), np.int64)
        found = _end_silent(key, self._state.values, self._gap, watermark, closed)
        self._closed += [closed[:, :found]] if found else []

    def _close_up(self) -> None:
        """Keep the cells of open sessions alone."""
        cells = np.arange(self._cells)
        open_ = self._state.values[CELL][self._key.values[: self._cells]] == cells
        key = self._key.values[: self._cells][open_]
        for column in (self._key, *self._columns()):
            column.keep(open_)
        self._state.values[CELL, key] = np.arange(len(key))
        self._cells = self._live = len(key)


@helper
def _end(state, k, closed, found):  # type: ignore[no-untyped-def]
    closed[0, found] = state[CELL, k]
    closed[1, found] = k
    closed[2, found] = state[SEQ, k]
    closed[3, found] = state[EARLIEST, k]
    closed[4, found] = state[LATEST, k]
    state[CELL, k] = NONE
    state[SEQ, k] += 1
    return found + 1


@compiled
def _join_runs(key, start, last, state, gap, end, cells, closed):  # type: ignore[no-untyped-def]
    """Runs in order of their ends: how many sessions they end, and the number of the next cell."""
    found = 0
    for j in range(len(key)):
        k = key[j]
        if state[CELL, k] != NONE and start[j] - state[LATEST, k] > gap:
            found = _end(state, k, closed, found)
        if state[CELL, k] == NONE:
            state[CELL, k] = end
            state[EARLIEST, k] = start[j]
            state[LATEST, k] = last[j]
            end += 1
        state[LATEST, k] = max(state[LATEST, k], last[j])
        cells[j] = state[CELL, k]
    return found, end


@compiled
def _end_silent(key, state, gap, watermark, closed):  # type: ignore[no-untyped-def]
    found = 0
    for k in key:
        if state[CELL, k] != NONE and state[LATEST, k] + gap < watermark:
            found = _end(state, k, closed, found)
    return found
