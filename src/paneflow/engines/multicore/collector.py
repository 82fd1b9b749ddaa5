"""The collector: rows of all strategies, in the one order (end, window, seq, key).

Strategies give windows in no order of their own, with word of the time before which nothing more
will end (`Rows.passed`). Rows are kept until that time has passed their end, then leave in order,
as a table in the query's result types: across all tables that ever leave, no row stands before a
lesser one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paneflow.aggregates.aggregate import Aggregate
from paneflow.aggregates.operator import Array
from paneflow.aggregates.values import kind_of, plain_type, sortable_type
from paneflow.engines.multicore.contract import Result, Rows
from paneflow.engines.multicore.keys import KeyCodes
from paneflow.engines.multicore.passing import NEVER
from paneflow.slicing.columns import Column
from paneflow.slicing.ordering import stable_order
from paneflow.slicing.times import TimeType

if TYPE_CHECKING:
    from paneflow.query import Query


@dataclass(frozen=True, eq=False)
class Collected:
    """Rows that leave, and for how many of them the event that made them final came when."""

    table: pa.Table
    arrivals: list[tuple[float, int]]


class Collector:
    """Keeps rows until nothing can come before them."""

    def __init__(self, query: Query, source: pa.Schema, keys: KeyCodes) -> None:
        self._query = query
        self._source = source
        self._schema = query.result_schema(source)
        self._labels = pa.array(sorted(query.windows), pa.string())
        self._keys = keys
        self._kept: list[Rows] = []
        self.passed = NEVER

    @property
    def held(self) -> int:
        """Rows that wait for others that may come before them."""
        return sum(map(len, self._kept))

    def add(self, rows: list[Rows]) -> None:
        """Take rows of a strategy."""
        for some in rows:
            if len(some):
                self._kept.append(some)
            self.passed = max(self.passed, some.passed)

    def collect(self) -> Collected | None:
        """The rows that nothing can come before any more, in order; None if there are none."""
        leaving, staying = [], []
        for rows in self._kept:
            ready = rows.end < self.passed
            if ready.all():
                leaving.append(rows)
            elif not ready.any():
                staying.append(rows)
            else:
                leaving.append(_some(rows, ready))
                staying.append(_some(rows, ~ready))
        self._kept = staying
        if not leaving:
            return None
        return Collected(self._table(leaving), [(rows.arrived, len(rows)) for rows in leaving])

    def _table(self, rows: list[Rows]) -> pa.Table:
        label, key, seq, start, end = (
            np.concatenate([getattr(some, name) for some in rows])
            for name in ("label", "key", "seq", "start", "end")
        )
        fields = [end, seq, self._keys.ranks(key)]
        if len(self._labels) > 1:
            fields.insert(1, label.astype(np.int64))
        order = stable_order(fields, len(end))
        if order is not None:
            label, key, seq, start, end = (c[order] for c in (label, key, seq, start, end))
        moment = TimeType(self._schema.field("end").type)
        keys = self._keys.table
        columns = {
            "window": pa.DictionaryArray.from_arrays(pa.array(label), self._labels),
            "seq": pa.array(seq),
            "start": moment.restore(start),
            "end": moment.restore(end),
        }
        for name in self._query.key:
            columns[name] = keys.column(name).combine_chunks().take(pa.array(key))
        for name, aggregate in self._query.aggregates.items():
            columns[name] = self._result(aggregate, [some.results[name] for some in rows], order)
        arrays = [
            columns[f.name] if columns[f.name].type == f.type else columns[f.name].cast(f.type)
            for f in self._schema
        ]
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def _result(self, aggregate: Aggregate, parts: list[Result], order: Array | None) -> pa.Array:
        if any(isinstance(part.values, pa.Array) for part in parts):
            joined = pa.concat_arrays([self._decoded(aggregate, part) for part in parts])
            return joined if order is None else joined.take(pa.array(order))
        values = np.concatenate([part.values for part in parts])
        valid = None
        if any(part.valid is not None for part in parts):
            valid = np.concatenate(
                [np.ones(len(p.values), np.bool_) if p.valid is None else p.valid for p in parts]
            )
        if order is not None:
            values = values[order]
            valid = None if valid is None else valid[order]
        return self._decoded(aggregate, Result(values, valid))

    def _decoded(self, aggregate: Aggregate, part: Result) -> pa.Array:
        """Values in the type of the result."""
        if isinstance(part.values, pa.Array):
            if part.valid is None or part.valid.all():
                return part.values
            places = pa.array(np.arange(len(part.valid)), mask=~part.valid)
            return part.values.take(places)
        if aggregate.result_column is None:
            return pa.array(part.values, mask=None if part.valid is None else ~part.valid)
        name = aggregate.columns[aggregate.result_column]
        type_ = self._source.field(name).type
        plain = sortable_type(plain_type(type_))
        return Column(name, plain, kind_of(type_, name), part.values, None).decode(
            part.values, part.valid
        )


def _some(rows: Rows, chosen: Array) -> Rows:
    """Some of the rows, chosen by a mask."""

    def of(result: Result) -> Result:
        mask = pa.array(chosen) if isinstance(result.values, pa.Array) else chosen
        values = (
            result.values.filter(mask)
            if isinstance(result.values, pa.Array)
            else result.values[mask]
        )
        return Result(values, None if result.valid is None else result.valid[chosen])

    return Rows(
        rows.label[chosen],
        rows.key[chosen],
        rows.seq[chosen],
        rows.start[chosen],
        rows.end[chosen],
        {name: of(result) for name, result in rows.results.items()},
        rows.arrived,
        rows.passed,
    )
