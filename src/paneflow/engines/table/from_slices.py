"""A store over slices that were cut before, perhaps elsewhere and in several parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.lowering import column_set
from paneflow.aggregates.operator import TIME, Array, Operator, Partials
from paneflow.aggregates.values import kind_of
from paneflow.engines.table.store import Held, Positions, Runs
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds import find_ranges
from paneflow.slicing.bounds.ranges import Ends, Found, Ranges
from paneflow.slicing.columns import Column, read_column
from paneflow.slicing.events import Part, order_events
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.layout import (
    counted_columns,
    runs_columns,
    sequence_columns,
    stored_operators,
)
from paneflow.slicing.ordering import is_sorted, stable_order
from paneflow.slicing.slices import LAST, ROWS, SLICING, START, TIME_SLICES, Slices
from paneflow.slicing.slicings import slicings
from paneflow.slicing.times import EARLIEST_EDGE, read_times
from paneflow.windows import Window

if TYPE_CHECKING:
    from paneflow.query import Query


def read_slices(
    query: Query, slices: Slices, ends_in: Ends
) -> tuple[pa.Table, list[tuple[SliceStore, Mapping[str, Window]]]]:
    """The distinct keys, and for each slicing a store of its slices with its windows."""
    table = slices.table.combine_chunks()
    codes, keys = encode_keys(table, tuple(f"key:{name}" for name in query.key))
    if query.key:
        keys = keys.rename_columns(list(query.key))
    start, _ = read_times(table, START, EARLIEST_EDGE)
    last, _ = read_times(table, LAST)
    labels = table.column(SLICING)
    work: list[tuple[SliceStore, Mapping[str, Window]]] = []
    for slicing, windows in slicings(query).items():
        rows = np.flatnonzero(pc.equal(labels, slicing).to_numpy())
        events = order_events(codes[rows], keys, start[rows], last[rows])
        mine = events.arrange(rows)
        (part,) = events.parts(1)
        store = SliceStore(query, slicing, part, table, mine, slices.source, ends_in)
        work.append((store, windows))
    return keys, work


class SliceStore:
    """Slices of all keys, in total order: the given rows of a table of slices."""

    def __init__(
        self,
        query: Query,
        slicing: str,
        part: Part,
        table: pa.Table,
        rows: Array,
        source: pa.Schema,
        ends_in: Ends,
    ) -> None:
        kinds = {name: kind_of(type_, name) for name, type_ in query.types(source).items()}
        self.part = part
        self.slicing = slicing
        self._ends_in = ends_in
        self._rows = rows
        # Slices of one part are in order already, and may hold many values.
        in_order = len(rows) == table.num_rows and is_sorted(rows)
        known = (SLICING, START, LAST)
        read = table.select([name for name in table.column_names if name not in known])
        self._table = read if in_order else read.take(pa.array(rows))
        self._operators = stored_operators(query, kinds)
        self._interleaved = slicing != TIME_SLICES
        self._counted = counted_columns(query)
        self._runs = runs_columns(query)
        self._sequences = sequence_columns(query)
        self._held: dict[tuple[Operator, int], Column] = {}
        self._times: dict[tuple[str, ...], Array] = {}

    def ranges(self, windows: Sequence[Window]) -> Found:
        # A slice lies wholly inside or outside each window, so its start can stand for it.
        found = find_ranges(windows, self.part, Arranged(self.part.events, {}), self._ends_in)
        if self._interleaved:
            self._put_in_order(found.ranges.between(0, found.ends[0]))
        return found

    def _put_in_order(self, session: Ranges) -> None:
        """Within a session, put slices of earlier parts first.

        Slices that interleave stand in the order of their starts. Events of equal time stand in
        the order of their parts, so a session must meet its slices in that order; a time window
        does, because there parts of a slice have the same start.
        """
        if len(session):
            member = np.repeat(np.arange(len(session)), session.hi - session.lo)
            order = stable_order([member, self._rows], len(self._rows))
            if order is not None:
                self._table = self._table.take(pa.array(order))

    def counts(self, columns: tuple[str, ...], lo: Array, hi: Array) -> Array:
        name = self._counted[column_set(columns)] if columns else ROWS
        before = np.zeros(self._table.num_rows + 1, np.int64)
        np.cumsum(self._table.column(name).to_numpy(), out=before[1:])
        counted: Array = before[hi] - before[lo]
        return counted

    def partials(self, operator: Operator) -> tuple[Partials, Positions]:
        prefix = self._operators[operator]
        parts = []
        for k, (component, identity) in enumerate(
            zip(operator.components, operator.start(), strict=True)
        ):
            name = f"{prefix}.{component.name}"
            if component.column == TIME:
                values, _ = read_times(self._table, name)
                counted = self.counts(operator.columns, *self._each())
                parts.append(np.where(counted > 0, values, identity))
            elif component.column is not None:
                column = read_column(self._table, name)
                self._held[operator, k] = column
                held = column.values
                parts.append(
                    held if column.valid is None else np.where(column.valid, held, identity)
                )
            elif component.width is not None:
                flat = self._table.column(name).combine_chunks().flatten().to_numpy()
                parts.append(flat.reshape(-1, component.width))
            elif operator.load is not None:
                loaded = np.empty(self._table.num_rows, object)
                loaded[:] = [operator.load(v) for v in self._table.column(name).to_pylist()]
                parts.append(loaded)
            else:
                parts.append(self._table.column(name).to_numpy())
        return tuple(parts), _unchanged

    def runs(self, column: str) -> Runs:
        held = self.values(column)
        assert held.counts is not None, "slices hold counts"
        ranks, distinct = held.column.ranked
        return Runs(ranks, held.counts, distinct, held.column, held.at)

    def values(self, column: str) -> Held:
        """The values of a column, before they have ranks."""
        lists = self._table.column(self._runs[column]).combine_chunks()
        pairs = lists.flatten()
        held = read_column(pa.table({column: pairs.field("value")}), column)
        counts = pairs.field("count").to_numpy()
        return Held(held.values, counts, held, _list_positions(lists))

    def sequences(self, columns: tuple[str, ...]) -> tuple[list[pa.Array], Positions]:
        lists = self._table.column(self._sequences[columns]).combine_chunks()
        events = lists.flatten()
        lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
        key = np.searchsorted(self.part.offsets, np.arange(len(lists)), side="right")
        times, _ = read_times(pa.table({"time": events.field("time")}), "time")
        # Parts of one slice interleave; neighbouring slices do not, so ranges stay where they are.
        order = stable_order([np.repeat(key, lengths), times], len(times))
        arrays = [events.field(f"value_{k}") for k in range(len(columns))]
        self._times[columns] = times if order is None else times[order]
        if order is not None:
            arrays = [array.take(pa.array(order)) for array in arrays]
        return arrays, _list_positions(lists)

    def times(self, columns: tuple[str, ...]) -> Array:
        """The times of the values that `sequences` gave."""
        return self._times[columns]

    def held(self, operator: Operator, component: int) -> Column:
        return self._held[operator, component]

    def _each(self) -> tuple[Array, Array]:
        rows = np.arange(self._table.num_rows)
        return rows, rows + 1


def _unchanged(positions: Array) -> Array:
    return positions


def _list_positions(lists: pa.ListArray) -> Positions:
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(lists.value_lengths().to_numpy(zero_copy_only=False), out=offsets[1:])
    return lambda positions: offsets[positions]
