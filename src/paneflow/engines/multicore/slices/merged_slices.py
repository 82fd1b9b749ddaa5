"""The slices that events still join: those of all workers, merged in the order of batches.

A hash table finds the cell of a slice by its key and its start. What merges is in the order of
batches, so a combine that needs the order of events has it, and floats are added in an order that
does not depend on which worker was faster. When the watermark has passed a slice, it leaves.
"""

from __future__ import annotations

import numpy as np

from paneflow.aggregates.kernels import kernel
from paneflow.aggregates.lowering import Lowering
from paneflow.aggregates.operator import Array, Partials, fill
from paneflow.compiling import compiled, pasted
from paneflow.engines.multicore.one_worker.slice_runs import Block
from paneflow.engines.multicore.stores.folding_loops import combine_each_loop
from paneflow.engines.multicore.stores.growing import Grown
from paneflow.engines.multicore.tracing import combine_plainly
from paneflow.engines.multicore.tuning import tuning
from paneflow.slicing.ordering import stable_order


class MergedSlices:
    """Slices by key and start, each of them once."""

    def __init__(self, lowering: Lowering) -> None:
        self._key, self._start = Grown(), Grown()
        self._counts = {columns: Grown() for columns in lowering.counted}
        self._partials = {
            op: tuple(Grown.like(column) for column in op.empty(0)) for op in lowering.operators
        }
        self._table = np.full(2 * tuning.first_room, -1, np.int32)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def merge(self, block: Block) -> None:
        """Combine further slices with those that are there, in order."""
        cells = self._cells_of(block)
        for columns, n in block.counts.items():
            _add(cells, n, self._counts[columns].values)
        for operator, parts in block.partials.items():
            held = tuple(column.values for column in self._partials[operator])
            try:
                kernel(operator, "combine_each", combine_each_loop)(cells, *parts, *held)
            except Exception:
                combine_plainly(operator, cells, np.arange(len(cells)), parts, held)
                raise

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
        if left is not None:
            self._put(left)
        return block

    def _all(self) -> Block:
        """All slices, as views."""
        used = self._used
        return Block(
            self._key.values[:used],
            self._start.values[:used],
            {columns: n.values[:used] for columns, n in self._counts.items()},
            {op: _first(columns, used) for op, columns in self._partials.items()},
        )

    def _put(self, block: Block) -> None:
        """Hold slices, where there are none."""
        self._cells_of(block)
        for columns, n in block.counts.items():
            self._counts[columns].put(0, n)
        for operator, parts in block.partials.items():
            for column, values in zip(self._partials[operator], parts, strict=True):
                column.put(0, values)

    def _cells_of(self, block: Block) -> Array:
        """The cells of slices; those that are not there yet hold nothing."""
        n, before = len(block), self._used
        if 2 * (before + n) > len(self._table):
            self._table = np.full(1 << (4 * (before + n) - 1).bit_length(), -1, np.int32)
            _enter(self._key.values[:before], self._start.values[:before], self._table)
        for grown in (self._key, self._start):
            grown.reserve(before + n)
        cells = np.empty(n, np.int64)
        self._used = _find_or_add(
            block.key, block.start, self._table, before, self._key.values, self._start.values, cells
        )
        fresh = self._used - before
        if fresh:
            for count in self._counts.values():
                count.put(before, np.zeros(fresh, np.int64))
            for operator, columns in self._partials.items():
                empty = operator.empty(fresh)
                for column, start, values in zip(columns, operator.start(), empty, strict=True):
                    fill(values, start)
                    column.put(before, values)
        return cells


def _first(columns: tuple[Grown, ...], n: int) -> Partials:
    return tuple(column.values[:n] for column in columns)


@pasted
def _home(key, start):  # type: ignore[no-untyped-def]
    # Spreads keys and starts that lie close together, as well as those far apart.
    x = np.uint64(start) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64(x >> np.uint64(32))


@compiled
def _find_or_add(key, start, table, used, keys, starts, cells):  # type: ignore[no-untyped-def]
    mask = len(table) - 1
    for j in range(len(key)):
        at = _home(key[j], start[j]) & mask
        while True:
            cell = table[at]
            if cell < 0:
                cell = used
                table[at] = cell
                keys[cell] = key[j]
                starts[cell] = start[j]
                used += 1
                break
            if keys[cell] == key[j] and starts[cell] == start[j]:
                break
            at = (at + 1) & mask
        cells[j] = cell
    return used


@compiled
def _enter(keys, starts, table):  # type: ignore[no-untyped-def]
    mask = len(table) - 1
    for cell in range(len(keys)):
        at = _home(keys[cell], starts[cell]) & mask
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = cell


@compiled
def _add(cells, n, counts):  # type: ignore[no-untyped-def]
    for j in range(len(cells)):
        counts[cells[j]] += n[j]
