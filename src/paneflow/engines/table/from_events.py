"""A store over the events of a table: each is folded into its slice once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import TIME, Array, Operator, Partials
from paneflow.engines.table.store import Positions, Runs
from paneflow.slicing.bounds import find_ranges
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.columns import Column
from paneflow.slicing.events import Part, Presence
from paneflow.slicing.fold import Edges, fold
from paneflow.windows import Window


class EventStore:
    """Events of some keys, and the columns of the whole table they come from."""

    def __init__(self, part: Part, columns: Mapping[str, Column]) -> None:
        self.part = part
        self._columns = columns
        self._edges: Edges | None = None
        self._inputs: dict[tuple[str, str, tuple[str, ...]], Array] = {}

    def ranges(self, window: Window) -> Ranges:
        return find_ranges(window, self.part, self._columns)

    def settle(self, ranges: list[Ranges]) -> None:
        self._edges = Edges(len(self.part.t), ranges)

    def cut_at(self, positions: Array) -> None:
        """Fix the slices by where they begin."""
        everything = Ranges(positions, positions, positions, np.array([len(self.part.t)]))
        self._edges = Edges(len(self.part.t), [everything])

    def counts(self, columns: tuple[str, ...], lo: Array, hi: Array) -> Array:
        presence = self._presence(columns)
        counted: Array = presence.position(hi) - presence.position(lo)
        return counted

    def partials(self, operator: Operator) -> tuple[Partials, Positions]:
        assert self._edges is not None
        presence = self._presence(operator.columns)
        inputs = [self._input(i.column, i.form, operator.columns) for i in operator.inputs]
        edges = presence.position(self._edges.positions)
        return fold(operator, inputs, edges), self._edges.slices

    def runs(self, column: str) -> Runs:
        ranks, values = self._columns[column].ranked
        presence = self._presence((column,))
        mine = presence.keep(self.part.sorted(ranks))
        ones = np.broadcast_to(np.int64(1), len(mine))
        return Runs(mine, ones, values, self._columns[column], presence.position)

    def sequences(self, columns: tuple[str, ...]) -> tuple[list[pa.Array], Positions]:
        presence = self._presence(columns)
        kept = [presence.keep(self.part.sorted(self._columns[c].values)) for c in columns]
        arrays = [self._columns[c].decode(k) for c, k in zip(columns, kept, strict=True)]
        return arrays, presence.position

    def times(self, columns: tuple[str, ...]) -> Array:
        """The times of the events with a value in each of the columns."""
        return self._presence(columns).keep(self.part.t)

    def held(self, operator: Operator, component: int) -> Column:
        name = operator.components[component].column
        assert name is not None
        return self._columns[name]

    def _presence(self, columns: tuple[str, ...]) -> Presence:
        return self.part.presence(tuple(self._columns[c] for c in columns))

    def _input(self, column: str, form: str, counted: tuple[str, ...]) -> Array:
        """An operator's input; the same for all operators that ask for it alike."""
        asked = (column, form, counted)
        if asked not in self._inputs:
            if column == TIME:
                values = self.part.t
            else:
                values = self.part.sorted(self._columns[column].form(form))
            self._inputs[asked] = self._presence(counted).keep(values)
        return self._inputs[asked]
