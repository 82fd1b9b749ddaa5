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
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.one_worker.folding import folded_one
from paneflow.engines.multicore.one_worker.slice_runs import Block
from paneflow.engines.multicore.slices.dealing import Sharding
from paneflow.engines.multicore.slices.slice_loops import (
    Asked,
    Found,
    add,
    count,
    enter,
    find_cells,
    runs,
)
from paneflow.engines.multicore.stores.folding_loops import (
    absorb_loop,
    absorb_runs_loop,
    combine_each_loop,
)
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

    @property
    def takes_runs(self) -> bool:
        """Whether events of one key can be added run by run."""
        return all(operator.fold_many is None for operator in self._lowering.operators)

    def absorb_alike(self, events: Batch) -> None:
        """Add events of one key, run by run of the same slice."""
        n = len(events)
        starts = np.empty(n + 1, np.int64)
        starts = starts[: runs(events.t, self._edges, starts) + 1]
        cells = np.empty(len(starts) - 1, np.int64)
        first = starts[:-1]
        self._find(events.t[first], events.key[first], places(len(first)), self._sharding, cells)
        for columns, counts in self._counts.items():
            some = present(events.columns, columns)
            held = (
                np.diff(starts) if len(some) == 0 else np.add.reduceat(some, first, dtype=np.int64)
            )
            add(cells, held, counts.values)
        for operator in self._lowering.operators:
            self._absorb_runs(operator, events, starts, cells)

    def absorb(self, events: Batch, which: Array, ends: Array) -> None:
        """Add some events, in order; `ends` are those of pushes."""
        if len(which) > len(self._room):
            self._room = np.empty(2 * len(which), np.int64)
        cells = self._room[: len(which)]
        first, *others = self._lowering.counted
        counting = Counting(first, present(events.columns, first))
        self._find(events.t, events.key, which, self._sharding, cells, counting)
        for columns in others:
            count(cells, which, present(events.columns, columns), self._counts[columns].values)
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
            add(cells, n, self._counts[columns].values)
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
        inputs, held = self._inputs(operator, events), self._held(operator)
        try:
            kernel(_adding(operator), "absorb_all", absorb_loop)(cells, which, *inputs, *held)
        except Exception:
            absorb_plainly(operator, cells, which, inputs, held)
            raise

    def _absorb_runs(self, operator: Operator, events: Batch, starts: Array, cells: Array) -> None:
        """Add runs of events to their cells."""
        inputs, held = self._inputs(operator, events), self._held(operator)
        try:
            kernel(_adding(operator), "absorb_runs", absorb_runs_loop)(
                cells, starts, *inputs, *held
            )
        except Exception:
            each = np.repeat(cells, np.diff(starts))
            absorb_plainly(operator, each, places(len(each)), inputs, held)
            raise

    def _inputs(self, operator: Operator, events: Batch) -> list[Array]:
        """Which events count for an operator, and the values that it reads."""
        inputs = [present(events.columns, column_set(operator.columns))]
        for each in operator.inputs:
            of_time = each.column == TIME
            inputs.append(
                events.moments if of_time else events.columns[each.column].form(each.form)
            )
        return inputs

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
            done, self._used = find_cells(events, slices, cells, present, counts, done, self._used)
            if done == len(which):
                break
            self._make_room(int(sharding.inner(key[which[done]])))
        fresh = self._used - before
        if fresh == 0:
            return
        for columns, grown in self._counts.items():
            if columns != counted:
                grown.put(before, np.zeros(fresh, np.int64))
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
            enter(self._key.values[:used], self._start.values[:used], self._table)
        if key >= len(self._last):
            grown_last = np.full(2 * (key + 1), -1)
            grown_last[: len(self._last)] = self._last
            self._last = grown_last


def _adding(operator: Operator) -> Operator:
    """The operator that adds events one by one."""
    return operator.running.operator if operator.running else operator


def present(columns: dict[str, Column], names: tuple[str, ...]) -> Array:
    """Which events have a value in all of some columns; empty if none is missing."""
    valid = [columns[name].valid for name in names]
    masks = [mask for mask in valid if mask is not None]
    return np.logical_and.reduce(masks) if masks else NONE_MISSING
