"""The slices of one shard that events still join.

An event finds the cell of its slice by its key, in an array that remembers the last slice of every
key, and is added to it. Only where that slice is another one does a hash table of keys and starts
find the cell. Events are added in the order in which they came, so a combine that needs the order
has it, and floats are added in an order that depends neither on the clock nor on the number of
workers. When the watermark has passed a slice, it leaves.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paneflow.aggregates.kernels import kernel
from paneflow.aggregates.lowering import Lowering, column_set
from paneflow.aggregates.operator import TIME, Array, Operator, Partials, fill
from paneflow.compiling import compiled, pasted
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.one_worker.folding import folded_one
from paneflow.engines.multicore.one_worker.slice_runs import Block
from paneflow.engines.multicore.slices.dealing import Sharding
from paneflow.engines.multicore.stores.folding_loops import absorb_loop, combine_each_loop
from paneflow.engines.multicore.stores.growing import Grown
from paneflow.engines.multicore.threads.short_loops import places
from paneflow.engines.multicore.tracing import absorb_plainly, combine_plainly
from paneflow.engines.multicore.tuning import tuning
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.columns import Column
from paneflow.slicing.events import Events as Ordered
from paneflow.slicing.ordering import places_by_code, stable_order

NONE_MISSING = np.zeros(0, np.bool_)
"""In place of a mask: no value is missing."""
NO_COUNTS = np.zeros(0, np.int64)
"""In place of counts: events are not counted."""
BY_CODE = Sharding(0)
"""For keys that have their code within the shard."""


class Asked(NamedTuple):
    """Events whose slices are to be found: those of a shard, by their places among all."""

    t: Array
    key: Array
    which: Array
    bits: int


class Found(NamedTuple):
    """What finds the cell of a slice."""

    edges: Array
    last: Array
    table: Array
    key: Array
    start: Array


class Counting(NamedTuple):
    """For which columns events are counted as their slices are found."""

    columns: tuple[str, ...]
    present: Array
    """Which events have a value in all of them."""


class OpenSlices:
    """Slices by key and start, each of them once. Keys have their codes within the shard."""

    def __init__(self, lowering: Lowering, edges: Array, sharding: Sharding) -> None:
        """`edges`: where slices begin, as pairs of a time and the step from one to the next."""
        self._lowering = lowering
        self._edges = edges
        self._sharding = sharding
        self._key, self._start = Grown(), Grown()
        self._counts = {columns: Grown() for columns in lowering.counted}
        self._partials = {
            op: tuple(Grown.like(column) for column in op.empty(0)) for op in lowering.operators
        }
        """Those of operators that add events in another form are in that form (`running`)."""
        self._last = np.full(tuning.first_room, -1)
        """For each key the cell of its last slice; -1 if it has none."""
        self._table = np.full(2 * tuning.first_room, -1, np.int32)
        self._used = 0
        self._room = np.empty(tuning.first_room, np.int64)
        """For the cells of events: to ask for it each time would cost as much as to find them."""

    def __len__(self) -> int:
        return self._used

    def since(self, first: int) -> tuple[Array, Array]:
        """The keys and starts of slices, without the first few."""
        return self._key.values[first : self._used], self._start.values[first : self._used]

    def absorb(self, events: Batch, which: Array, ends: Array) -> None:
        """Add some events, in order; `ends` are those of pushes."""
        if len(which) > len(self._room):
            self._room = np.empty(2 * len(which), np.int64)
        cells = self._room[: len(which)]
        first, *others = self._lowering.counted
        counting = Counting(first, present(events.columns, first))
        self._find(events.t, events.key, which, self._sharding, cells, counting)
        for columns in others:
            _count(cells, which, present(events.columns, columns), self._counts[columns].values)
        for operator in self._lowering.operators:
            if operator.fold_many is None:
                self._absorb_each(operator, events, which, cells)
            else:
                for begin, end in pairwise([0, *np.searchsorted(which, ends).tolist()]):
                    self._fold(operator, events, which[begin:end], cells[begin:end])

    def merge(self, block: Block) -> None:
        """Combine further slices with those that are there, in order."""
        cells = np.empty(len(block), np.int64)
        self._find(block.start, block.key, places(len(block)), BY_CODE, cells)
        for columns, n in block.counts.items():
            _add(cells, n, self._counts[columns].values)
        for operator, parts in block.partials.items():
            self._combine_each(operator, cells, parts)

    def take_before(self, end: int) -> Block | None:
        """Remove and return the slices that begin before a time, ordered by (key, start)."""
        used = self._used
        leaving = self._start.values[:used] < end
        gone = int(np.count_nonzero(leaving))
        if gone == 0:
            return None
        block, left = self._all(), None
        if gone < used:
            left, block = block.at(~leaving), block.at(leaving)
        order = stable_order([block.key, block.start], gone)
        if order is not None:
            block = block.at(order)
        elif left is None:
            block = block.at(np.arange(gone))  # a copy: cells are written again
        self._used = 0
        self._table[:] = -1
        self._last[:] = -1
        if left is not None:
            self._put(left)
        settled = {
            op: op.running.settled(parts) for op, parts in block.partials.items() if op.running
        }
        return replace(block, partials=block.partials | settled)

    def _absorb_each(self, operator: Operator, events: Batch, which: Array, cells: Array) -> None:
        """Add events to their cells one by one."""
        held = self._held(operator)
        adding = operator.running.operator if operator.running else operator
        inputs = [present(events.columns, column_set(operator.columns))]
        for each in operator.inputs:
            of_time = each.column == TIME
            inputs.append(
                events.moments if of_time else events.columns[each.column].form(each.form)
            )
        try:
            kernel(adding, "absorb_all", absorb_loop)(cells, which, *inputs, *held)
        except Exception:
            absorb_plainly(operator, cells, which, inputs, held)
            raise

    def _fold(self, operator: Operator, events: Batch, which: Array, cells: Array) -> None:
        """Fold the events of each cell as a whole, and combine that with what the cell holds."""
        distinct, codes = np.unique(cells, return_inverse=True)
        order, counts = places_by_code(codes, len(distinct))
        edges = np.append(0, np.cumsum(counts))
        ordered = Ordered(pa.table({}), edges, order, events.t[which], events.t[which])
        columns = {name: events.columns[name].part(which) for name in operator.columns}
        arranged = Arranged(ordered, columns)
        parts = folded_one(operator, arranged, ordered.arrange(events.moments[which]), edges)
        self._combine_each(operator, distinct, parts)

    def _combine_each(self, operator: Operator, cells: Array, parts: Partials) -> None:
        held = self._held(operator)
        if operator.running:
            parts, operator = operator.running.opened(parts), operator.running.operator
        try:
            kernel(operator, "combine_each", combine_each_loop)(cells, *parts, *held)
        except Exception:
            combine_plainly(operator, cells, np.arange(len(cells)), parts, held)
            raise

    def _held(self, operator: Operator) -> Partials:
        return tuple(column.values for column in self._partials[operator])

    def _all(self) -> Block:
        """All slices, as views."""
        used = self._used
        return Block(
            self._key.values[:used],
            self._start.values[:used],
            {columns: n.values[:used] for columns, n in self._counts.items()},
            {op: tuple(c.values[:used] for c in parts) for op, parts in self._partials.items()},
        )

    def _put(self, block: Block) -> None:
        """Hold slices, where there are none."""
        cells = np.empty(len(block), np.int64)
        self._find(block.start, block.key, places(len(block)), BY_CODE, cells)
        for columns, n in block.counts.items():
            self._counts[columns].put(0, n)
        for operator, parts in block.partials.items():
            for column, values in zip(self._partials[operator], parts, strict=True):
                column.put(0, values)

    def _find(
        self,
        t: Array,
        key: Array,
        which: Array,
        sharding: Sharding,
        cells: Array,
        counting: Counting | None = None,
    ) -> None:
        """Find the cells of events by time and key; those of new slices hold nothing yet."""
        before, done = self._used, 0
        events = Asked(t, key, which, sharding.bits)
        counted, present = counting or (None, NONE_MISSING)
        while True:
            counts = NO_COUNTS if counted is None else self._counts[counted].values
            slices = Found(
                self._edges, self._last, self._table, self._key.values, self._start.values
            )
            done, self._used = _find_cells(events, slices, cells, present, counts, done, self._used)
            if done == len(which):
                break
            self._make_room(int(sharding.inner(key[which[done]])))
        fresh = self._used - before
        if fresh == 0:
            return
        for columns, count in self._counts.items():
            if columns != counted:
                count.put(before, np.zeros(fresh, np.int64))
        for operator, parts in self._partials.items():
            empty = operator.empty(fresh)
            for column, start, values in zip(parts, operator.start(), empty, strict=True):
                fill(values, start)
                column.put(before, values)

    def _make_room(self, key: int) -> None:
        """Have room for another slice, and for a key."""
        used = self._used
        for grown in (self._key, self._start, *self._counts.values()):
            grown.reserve(used + 1)
        if 2 * used >= len(self._table):
            self._table = np.full(2 * len(self._table), -1, np.int32)
            _enter(self._key.values[:used], self._start.values[:used], self._table)
        if key >= len(self._last):
            grown_last = np.full(2 * (key + 1), -1)
            grown_last[: len(self._last)] = self._last
            self._last = grown_last


def present(columns: dict[str, Column], names: tuple[str, ...]) -> Array:
    """Which events have a value in all of some columns; empty if none is missing."""
    valid = [columns[name].valid for name in names]
    masks = [mask for mask in valid if mask is not None]
    return np.logical_and.reduce(masks) if masks else NONE_MISSING


@pasted
def _home(key, start):  # type: ignore[no-untyped-def]
    # Spreads keys and starts that lie close together, as well as those far apart.
    x = np.uint64(start) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64(x >> np.uint64(32))


@compiled
def _find_cells(events, slices, cells, present, counts, done, used):  # type: ignore[no-untyped-def]
    """Find the cells of events, and count these; ends early if there is no room for a slice.

    Returns how many events have a cell now, and how many cells are used.
    """
    t, key, which, bits = events
    edges, last, table, keys, start = slices
    mask = len(table) - 1
    begin = until = 0
    for j in range(done, len(which)):
        i = np.uint64(which[j])  # it cannot count from the end, which takes steps to find out
        now = t[i]
        if now < begin or now >= until:
            begin = now - (now - edges[0, 0]) % edges[0, 1]
            until = begin + edges[0, 1]
            for e in range(1, len(edges)):
                edge = now - (now - edges[e, 0]) % edges[e, 1]
                begin = max(begin, edge)
                until = min(until, edge + edges[e, 1])
        k = key[i] >> bits
        if k >= len(last):
            return j, used
        cell = last[np.uint64(k)]
        if cell < 0 or start[np.uint64(cell)] != begin:
            at = _home(k, begin) & mask
            while True:
                cell = table[at]
                if cell < 0:
                    if used == len(keys) or 2 * used >= len(table):
                        return j, used
                    cell = used
                    table[at] = cell
                    keys[cell] = k
                    start[cell] = begin
                    if len(counts):
                        counts[cell] = 0
                    used += 1
                    break
                if keys[cell] == k and start[cell] == begin:
                    break
                at = (at + 1) & mask
            last[k] = cell
        cells[j] = cell
        if len(counts):
            counts[np.uint64(cell)] += len(present) == 0 or present[i]
    return len(which), used


@compiled
def _enter(keys, starts, table):  # type: ignore[no-untyped-def]
    mask = len(table) - 1
    for cell in range(len(keys)):
        at = _home(keys[cell], starts[cell]) & mask
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = cell


@compiled
def _count(cells, which, present, counts):  # type: ignore[no-untyped-def]
    if len(present) == 0:
        for j in range(len(cells)):
            counts[cells[j]] += 1
    else:
        for j in range(len(cells)):
            counts[cells[j]] += present[which[j]]


@compiled
def _add(cells, n, counts):  # type: ignore[no-untyped-def]
    for j in range(len(cells)):
        counts[cells[j]] += n[j]
