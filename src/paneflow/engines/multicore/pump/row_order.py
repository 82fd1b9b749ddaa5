"""The collector: puts the rows of all strategies in the order (end, window, seq, key).

Strategies return windows in any order, together with the time before which nothing more will end
(`Rows.passed`). Rows are kept until that time has passed their end, and then leave in order, as a
table with the query's result types. No later table has a row that belongs before an earlier one.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paneflow.aggregates.aggregate import Aggregate
from paneflow.aggregates.operator import Array
from paneflow.aggregates.values import kind_of, plain_type, sortable_type
from paneflow.engines.multicore.contract import Result, Rows
from paneflow.engines.multicore.intake.key_codes import KeyCodes
from paneflow.engines.multicore.threads.short_loops import (
    concatenated,
    order_across,
    taken,
    taken_across,
)
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.engines.multicore.tuning import tuning
from paneflow.engines.table.rows import as_result
from paneflow.slicing.columns import Column, as_arrow

if TYPE_CHECKING:
    from paneflow.query import Query

END, LABEL, SEQ, RANK, KEY, START = range(6)
"""The rows of `fields`; the first four decide the order of rows."""
FIELDS = 6
HELD = {np.dtype(np.int64): pa.int64(), np.dtype(np.float64): pa.float64()}


@dataclass(frozen=True, eq=False)
class OrderedRows:
    """Rows that leave; and when the events that made them final arrived, for how many rows each."""

    table: pa.Table
    arrivals: list[tuple[float, int]]


class RowOrder:
    """Keeps rows until nothing can come before them."""

    def __init__(self, query: Query, source: pa.Schema, keys: KeyCodes) -> None:
        self._query = query
        self._source = source
        self._schema = query.result_schema(source)
        self._types = [(field.name, field.type) for field in self._schema]
        self._moment = self._schema.field("end").type
        self._labels = pa.array(sorted(query.windows), pa.string())
        self._alike = pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), self._labels)
        """If there is one label: a column of it, of which tables take a slice."""
        self._keys = keys
        self._kept: list[tuple[int, int, Rows]] = []
        """A heap by the least `end` of rows that came together, so rows that stay cost nothing."""
        self._number = itertools.count()
        self.passed = BEFORE_ALL
        # Compile here rather than when the first rows arrive.
        nothing = np.empty((FIELDS, 0), np.int64)
        taken_across(nothing, nothing[KEY])
        order_across(nothing)

    @property
    def held(self) -> int:
        """Rows that wait for others that may come before them."""
        return sum(len(rows) for _, _, rows in self._kept)

    def add(self, rows: list[Rows]) -> None:
        """Take rows of a strategy."""
        for some in rows:
            self._keep(some)
            self.passed = max(self.passed, some.passed)

    def _keep(self, rows: Rows) -> None:
        if len(rows):
            heapq.heappush(self._kept, (int(rows.end.min()), next(self._number), rows))

    def replace(self, rows: list[Rows]) -> None:
        """Replace the rows that have not left; some of the new ones may have left before."""
        fresh = [some_rows(some, some.end >= self.passed) if len(some) else some for some in rows]
        self._kept = []
        self.add(fresh)

    def collect(self) -> OrderedRows | None:
        """The rows that no other can come before, in order; None if there are none."""
        leaving, staying = [], []
        while self._kept and self._kept[0][0] < self.passed:
            _, _, rows = heapq.heappop(self._kept)
            ready = rows.end < self.passed
            if ready.all():
                leaving.append(rows)
            else:
                leaving.append(some_rows(rows, ready))
                staying.append(some_rows(rows, ~ready))
        for rows in staying:
            self._keep(rows)
        if not leaving:
            return None
        return OrderedRows(self.table(leaving), [(rows.arrived, len(rows)) for rows in leaving])

    def table(self, rows: list[Rows]) -> pa.Table:
        """Rows as a table, in order."""
        fields = self._packed(rows)
        order = order_across(fields[: RANK + 1])
        if order is not None:
            fields = taken_across(fields, order)
        columns = {
            "window": self._labelled(fields[LABEL]),
            "seq": as_arrow(fields[SEQ].copy(), pa.int64()),
            "start": as_arrow(fields[START].copy(), self._moment),
            "end": as_arrow(fields[END].copy(), self._moment),
        }
        for name in self._query.key:
            columns[name] = self._keys.column(name, fields[KEY])
        for name, aggregate in self._query.aggregates.items():
            columns[name] = self._result(aggregate, [some.results[name] for some in rows], order)
        arrays = [
            columns[name] if columns[name].type == type_ else columns[name].cast(type_)
            for name, type_ in self._types
        ]
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def _packed(self, rows: list[Rows]) -> Array:
        """What identifies rows, as a table with a column for each row."""
        fields = np.empty((FIELDS, sum(map(len, rows))), np.int64)
        at = 0
        for some in rows:
            to = at + len(some)
            fields[END, at:to] = some.end
            fields[LABEL, at:to] = some.label
            fields[SEQ, at:to] = some.seq
            fields[KEY, at:to] = some.key
            fields[START, at:to] = some.start
            at = to
        fields[RANK] = self._keys.ranks(fields[KEY])
        return fields

    def _labelled(self, label: Array) -> pa.Array:
        if len(self._labels) > 1:
            return pa.DictionaryArray.from_arrays(pa.array(label, pa.int32()), self._labels)
        if len(label) > len(self._alike):
            same = pa.array(np.zeros(max(len(label), tuning.short_loop), np.int32))
            self._alike = pa.DictionaryArray.from_arrays(same, self._labels)
        return self._alike.slice(0, len(label))

    def _result(self, aggregate: Aggregate, parts: list[Result], order: Array | None) -> pa.Array:
        if any(isinstance(part.values, pa.Array) for part in parts):
            joined = pa.concat_arrays([self._decoded(aggregate, part) for part in parts])
            return joined if order is None else joined.take(pa.array(order))
        values = concatenated([part.values for part in parts])
        valid = None
        if not all(part.valid is None or part.valid.all() for part in parts):
            valid = concatenated(
                [np.ones(len(p.values), np.bool_) if p.valid is None else p.valid for p in parts]
            )
        if order is not None:
            values = taken(values, order)
            valid = None if valid is None else taken(valid, order)
        return self._decoded(aggregate, Result(values, valid))

    def _decoded(self, aggregate: Aggregate, part: Result) -> pa.Array:
        """Values in the type of the result."""
        if isinstance(part.values, pa.Array):
            return as_result(part.values, part.valid)
        if aggregate.result_column is None:
            held = HELD.get(part.values.dtype)
            if part.valid is None and held is not None:
                return as_arrow(part.values, held)  # Arrow itself takes longer for a few rows
            return as_result(part.values, part.valid)
        name = aggregate.columns[aggregate.result_column]
        type_ = self._source.field(name).type
        plain = sortable_type(plain_type(type_))
        return Column(name, plain, kind_of(type_, name), part.values, None).decode(
            part.values, part.valid
        )


def portions(rows: list[Rows]) -> Iterator[list[Rows]]:
    """What a strategy returned, in parts after which something is final, so that each part fits
    into the cache while it is put in order; at least one part, perhaps empty."""
    begin = n = 0
    for end, some in enumerate(rows, 1):
        n += len(some)
        if n >= tuning.ordered_together and some.passed > BEFORE_ALL and end < len(rows):
            yield rows[begin:end]
            begin, n = end, 0
    yield rows[begin:]


def some_rows(rows: Rows, chosen: Array) -> Rows:
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
