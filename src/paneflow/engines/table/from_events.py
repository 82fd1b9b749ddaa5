"""A store over the events of a table: each is folded into its slice once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paneflow.aggregates.lowering import column_set
from paneflow.aggregates.operator import TIME, Array, Operator, Partials
from paneflow.engines.table.store import Held, Positions, Runs
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds import find_ranges
from paneflow.slicing.bounds.ranges import Found
from paneflow.slicing.columns import Column
from paneflow.slicing.events import Part, Presence
from paneflow.slicing.fold import Edges, fold
from paneflow.windows import Window


class EventStore:
    """Events of some keys, among the columns of the whole table."""

    def __init__(self, part: Part, arranged: Arranged) -> None:
        self.part = part
        self._arranged = arranged
        self._edges: Edges | None = None
        self._presences: dict[tuple[str, ...], Presence] = {}

    def ranges(self, windows: Sequence[Window]) -> Found:
        found = find_ranges(windows, self.part, self._arranged)
        self._edges = Edges(len(self.part.t), found.ranges.lo, found.ranges.hi)
        return found

    def cut_at(self, positions: Array) -> None:
        """Fix the slices by where they begin."""
        n = len(self.part.t)
        self._edges = Edges(n, positions, np.array([n]))

    def counts(self, columns: tuple[str, ...], lo: Array, hi: Array) -> Array:
        presence = self._presence(columns)
        counted: Array = presence.position(hi) - presence.position(lo)
        return counted

    def partials(self, operator: Operator) -> tuple[Partials, Positions]:
        assert self._edges is not None
        presence = self._presence(operator.columns)
        inputs = [presence.keep(self._input(i.column, i.form)) for i in operator.inputs]
        edges = presence.position(self._edges.positions)
        return fold(operator, inputs, edges), self._edges.slices

    def runs(self, column: str) -> Runs:
        presence = self._presence((column,))
        ranks = presence.keep(self.part.mine(self._arranged.ranks(column)))
        ones = np.broadcast_to(np.int64(1), len(ranks))
        read = self._arranged.columns[column]
        return Runs(ranks, ones, read.ranked[1], read, presence.position)

    def values(self, column: str) -> Held:
        """The values of a column, before they have ranks."""
        presence = self._presence((column,))
        values = presence.keep(self._input(column, "value"))
        return Held(values, None, self._arranged.columns[column], presence.position)

    def sequences(self, columns: tuple[str, ...]) -> tuple[list[pa.Array], Positions]:
        presence = self._presence(columns)
        arrays = [
            self._arranged.columns[c].decode(presence.keep(self._input(c, "value")))
            for c in columns
        ]
        return arrays, presence.position

    def times(self, columns: tuple[str, ...]) -> Array:
        """The times of the events with a value in each of the columns."""
        return self._presence(columns).keep(self.part.t)

    def held(self, operator: Operator, component: int) -> Column:
        name = operator.components[component].column
        assert name is not None
        return self._arranged.columns[name]

    def _presence(self, columns: tuple[str, ...]) -> Presence:
        columns = column_set(columns)
        if columns not in self._presences:
            masks = [self._arranged.valid(c) for c in columns]
            mine = [self.part.mine(mask) for mask in masks if mask is not None]
            self._presences[columns] = Presence(np.logical_and.reduce(mine) if mine else None)
        return self._presences[columns]

    def _input(self, column: str, form: str) -> Array:
        if column == TIME:
            return self.part.t
        return self.part.mine(self._arranged.form(column, form))
