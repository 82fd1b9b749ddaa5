"""A batch of events becomes private slices: what one worker does, without the interpreter lock.

Events are not sorted. Each finds its slice by its key, in an array that remembers the last slice of
every key, and is added to it. So the loops take a few nanoseconds for an event, and touch no memory
that another worker writes.

Where a batch consists of several pushes, slices end at the end of each push. A sum of floats then
depends on what was pushed together, and not on how many pushes a worker took at once.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paneflow.aggregates.kernels import kernel
from paneflow.aggregates.lowering import Lowering, column_set
from paneflow.aggregates.operator import TIME, Array, Operator, Partials, fill
from paneflow.compiling import compiled
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.one_worker.folding import folded_one
from paneflow.engines.multicore.one_worker.slice_runs import Block
from paneflow.engines.multicore.stores.folding_loops import absorb_each_loop
from paneflow.engines.multicore.tracing import absorb_plainly
from paneflow.engines.multicore.tuning import tuning
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.columns import Column
from paneflow.slicing.events import Events as Ordered
from paneflow.slicing.ordering import places_by_code

NONE_MISSING = np.zeros(0, np.bool_)
"""In place of a mask: no value is missing."""


class Cutter:
    """Cuts batches; each worker has one."""

    def __init__(self, lowering: Lowering, edges: Array) -> None:
        """`edges`: where slices begin, as pairs of a time and the step from one to the next."""
        self._lowering = lowering
        self._edges = edges
        self._last = np.full(tuning.first_room, -1)
        """For each key the number of its last slice; slices of all batches are numbered."""
        self._numbered = 0
        self._room = np.empty((3, tuning.first_room), np.int64)
        """Room to work in: to ask for it each time would cost as much as the work."""

    def cut(self, events: Batch, ends: Array) -> Block:
        """The slices of events, in the order in which they begin; `ends` are those of pushes.

        A slice that events leave and come back to may be there several times.
        """
        n = len(events.t)
        most = int(events.key.max(initial=-1)) + 1
        if most > len(self._last):
            room = np.full(2 * most, -1)
            room[: len(self._last)] = self._last
            self._last = room
        if n > self._room.shape[1]:
            self._room = np.empty((3, 2 * n), np.int64)
        cells, keys, starts = self._room[:, :n]
        found = _find_slices(
            events.t, events.key, ends, self._edges, self._last, self._numbered, cells, keys, starts
        )
        self._numbered += found
        counts = {}
        for columns in self._lowering.counted:
            counts[columns] = np.zeros(found, np.int64)
            _count(cells, _present(events.columns, columns), counts[columns])
        return Block(
            keys[:found].copy(),
            starts[:found].copy(),
            counts,
            self._folded(events, cells, found),
        )

    def _folded(self, events: Batch, cells: Array, found: int) -> dict[Operator, Partials]:
        partials = {}
        gathered = None
        for operator in self._lowering.operators:
            if operator.compiled and operator.fold_many is None and operator.gather is None:
                partials[operator] = _absorbed(operator, events, cells, found)
            else:
                if gathered is None:
                    gathered = _by_slice(events, cells, found)
                partials[operator] = folded_one(operator, *gathered)
        return partials


def _absorbed(operator: Operator, events: Batch, cells: Array, found: int) -> Partials:
    """What the events of each slice amount to, one event after the other."""
    held = operator.empty(found)
    for column, start in zip(held, operator.start(), strict=True):
        fill(column, start)
    inputs = [_present(events.columns, column_set(operator.columns))]
    for each in operator.inputs:
        of_time = each.column == TIME
        inputs.append(events.moments if of_time else events.columns[each.column].form(each.form))
    try:
        kernel(operator, "absorb_each", absorb_each_loop)(cells, *inputs, *held)
    except Exception:
        absorb_plainly(operator, cells, np.arange(len(cells)), inputs, held)
        raise
    return held


def _by_slice(events: Batch, cells: Array, found: int) -> tuple[Arranged, Array, Array]:
    """The events of each slice side by side, for what cannot be folded one by one."""
    order, counts = places_by_code(cells, found)
    edges = np.append(0, np.cumsum(counts))
    ordered = Ordered(pa.table({}), edges, order, events.t, events.t)
    return Arranged(ordered, events.columns), ordered.arrange(events.moments), edges


def _present(columns: dict[str, Column], names: tuple[str, ...]) -> Array:
    """Which events have a value in all of some columns; empty if none is missing."""
    valid = [columns[name].valid for name in names]
    masks = [mask for mask in valid if mask is not None]
    return np.logical_and.reduce(masks) if masks else NONE_MISSING


@compiled
def _find_slices(t, key, ends, edges, last, numbered, cells, keys, starts):  # type: ignore[no-untyped-def]
    """Number the slices, and say which of them each event is in; returns how many there are."""
    found = numbered
    i = 0
    for p in range(len(ends)):
        since = found
        begin = until = 0
        while i < ends[p]:
            now = t[i]
            if now < begin or now >= until:
                begin = now - (now - edges[0, 0]) % edges[0, 1]
                until = begin + edges[0, 1]
                for e in range(1, len(edges)):
                    edge = now - (now - edges[e, 0]) % edges[e, 1]
                    begin = max(begin, edge)
                    until = min(until, edge + edges[e, 1])
                since = found
            k = key[i]
            cell = last[k]
            if cell < since:
                cell = found
                last[k] = cell
                keys[cell - numbered] = k
                starts[cell - numbered] = begin
                found += 1
            cells[i] = cell - numbered
            i += 1
    return found - numbered


@compiled
def _count(cells, present, counts):  # type: ignore[no-untyped-def]
    for i in range(len(cells)):
        counts[cells[i]] += len(present) == 0 or present[i]
