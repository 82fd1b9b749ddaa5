"""Cutting a table into slices that can be stored and merged (`Query.slice`).

Only windows whose slices do not depend on the rest of the data allow it: time windows, whose
edges are fixed times, and sessions, which join when slices of two parts touch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from paneflow.aggregates.aggregate import Kinds
from paneflow.aggregates.operator import TIME, Array, Operator, Partials
from paneflow.engines.table.from_events import EventStore
from paneflow.engines.table.sorted_runs import sorted_runs
from paneflow.engines.table.store import Held, Positions
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds import find_ranges
from paneflow.slicing.columns import Column, read_column
from paneflow.slicing.events import Part, read_events
from paneflow.slicing.layout import (
    check_cuttable,
    check_storable,
    counted_columns,
    identity_of,
    runs_columns,
    sequence_columns,
    stored_operators,
)
from paneflow.slicing.slices import LAST, ROWS, SLICING, START, Slices
from paneflow.slicing.slicings import edges, slicings
from paneflow.slicing.times import TimeType, time_type
from paneflow.windows import Session, Window

if TYPE_CHECKING:
    from paneflow.query import Query


def cut(query: Query, table: pa.Table) -> Slices:
    """The slices of a table."""
    check_cuttable(query)
    made = pieces(query, table)
    names = dict.fromkeys(c for a in query.aggregates.values() for c in a.columns)
    kept = [query.time, *query.key, *(n for n in names if n not in (query.time, *query.key))]
    source = pa.schema([table.schema.field(name) for name in kept])
    return Slices.made(made, identity_of(query), source)


def pieces(query: Query, table: pa.Table) -> pa.Table:
    """The rows of a table's slices, for callers that know what they belong to."""
    names = dict.fromkeys(c for a in query.aggregates.values() for c in a.columns)
    columns = {name: read_column(table, name) for name in names}
    kinds = {name: column.kind for name, column in columns.items()}
    moment = time_type(table.schema.field(query.time).type, query.time)
    events = read_events(table, query.key, query.time)
    arranged = Arranged(events, columns)
    blocks = []
    for slicing, windows in slicings(query).items():
        (part,) = events.parts(1)
        begins, starts = _begins(query, windows, part, arranged)
        store = EventStore(part, arranged)
        store.cut_at(begins)
        blocks.append(written(query, slicing, events.keys, store, begins, starts, kinds, moment))
    return pa.concat_tables(blocks)


def layout_of(query: Query, source: pa.Schema) -> pa.Schema:
    """The schema of the slices that a query cuts from a table with this schema."""
    return cut(query, source.empty_table()).table.schema


def _begins(
    query: Query, windows: Mapping[str, Window], part: Part, arranged: Arranged
) -> tuple[Array, Array]:
    """Where slices begin among the events, and the time that stands for each."""
    (first, *_) = windows.values()
    if isinstance(first, Session):
        begins = find_ranges([first], part, arranged).ranges.lo
        return begins, part.t[begins]
    t = part.t
    starts = _starts(t, *edges(query))
    fresh = np.ones(len(t), np.bool_)
    fresh[1:] = starts[1:] != starts[:-1]
    fresh[part.offsets[:-1][part.offsets[:-1] < len(t)]] = True
    begins = np.flatnonzero(fresh)
    return begins, starts[begins]


def _starts(t: Array, phases: Array, steps: Array) -> Array:
    """The last edge of any progression, for each time."""
    if len(t) == 0:
        return t
    low, high = int(t.min()), int(t.max())
    # The first edge of each progression is its last by `low`.
    first = low - (low - phases) % steps
    counts = (high - first) // steps + 1
    if int(np.minimum(counts, len(t) + 1).sum()) <= len(t):
        # Few edges: listing them all is quicker than asking each progression for each event.
        before = np.cumsum(counts) - counts
        number = np.arange(int(counts.sum())) - np.repeat(before, counts)
        listed = np.unique(np.repeat(first, counts) + number * np.repeat(steps, counts))
        at_low, at_high = np.searchsorted(listed, (low, high), side="right")
        if at_low == at_high:
            return np.full(len(t), listed[at_low - 1])
        found: Array = listed[np.searchsorted(listed, t, side="right") - 1]
        return found
    starts = np.full(len(t), np.iinfo(np.int64).min)
    for phase, step in zip(phases.tolist(), steps.tolist(), strict=True):
        np.maximum(starts, t - (t - phase) % step, out=starts)
    return starts


class Sliced(Protocol):
    """What is written as slices: rows of a store, of which each slice is a range."""

    part: Part

    def counts(self, columns: tuple[str, ...], lo: Array, hi: Array) -> Array:
        """How many events with a value in each of the columns are in each range."""
        ...

    def partials(self, operator: Operator) -> tuple[Partials, object]:
        """The partial of each slice."""
        ...

    def values(self, column: str) -> Held:
        """Values and how often each occurs, in ranges for the store's rows."""
        ...

    def sequences(self, columns: tuple[str, ...]) -> tuple[list[pa.Array], Positions]:
        """The events' values, in total order."""
        ...

    def times(self, columns: tuple[str, ...]) -> Array:
        """The times of these values."""
        ...

    def held(self, operator: Operator, component: int) -> Column:
        """The column whose values a component holds, for the way back to its type."""
        ...


def written(
    query: Query,
    slicing: str,
    keys: pa.Table,
    store: Sliced,
    begins: Array,
    starts: Array,
    kinds: Kinds,
    moment: TimeType,
) -> pa.Table:
    """The slices of one slicing, as a table; each begins at one of the store's rows."""
    n = len(store.part.t)
    ends = np.append(begins[1:], n)[: len(begins)]
    key = np.searchsorted(store.part.offsets, begins, side="right") - 1
    columns: dict[str, pa.Array] = {
        SLICING: pa.array([slicing], pa.string()).take(pa.array(np.zeros(len(begins), np.int64)))
    }
    for name in query.key:
        columns[f"key:{name}"] = keys.column(name).combine_chunks().take(pa.array(key))
    columns[START] = moment.restore(starts)
    lasts = _lasts(store.part, begins, ends)
    columns[LAST] = moment.restore(lasts)
    columns[ROWS] = pa.array(store.counts((), begins, ends))
    for counted, name in counted_columns(query).items():
        columns[name] = pa.array(store.counts(counted, begins, ends))
    for operator, prefix in stored_operators(query, kinds).items():
        check_storable(operator)
        columns |= dict(_partials(operator, prefix, store, begins, ends, moment))
    for column, name in runs_columns(query).items():
        columns[name] = _runs(store, column, begins)
    for sequence, name in sequence_columns(query).items():
        columns[name] = _sequences(store, sequence, begins, ends, moment)
    return pa.table(columns)


def _lasts(part: Part, begins: Array, ends: Array) -> Array:
    """The latest time in each slice."""
    if part.events.last is part.events.t or len(begins) == 0:
        latest: Array = part.t[ends - 1]  # events of a key are in order of time
    else:
        latest = np.maximum.reduceat(part.last, begins)
    return latest


def _partials(
    operator: Operator, prefix: str, store: Sliced, begins: Array, ends: Array, moment: TimeType
) -> Iterable[tuple[str, pa.Array]]:
    partials, _ = store.partials(operator)
    counted = store.counts(operator.columns, begins, ends) > 0
    for k, (component, values) in enumerate(zip(operator.components, partials, strict=True)):
        name = f"{prefix}.{component.name}"
        if component.column == TIME:
            yield name, moment.restore(np.where(counted, values, 0))
        elif component.column is not None:
            # A slice that counted nothing holds the identity, which a column cannot hold.
            yield name, store.held(operator, k).decode(values, counted)
        elif component.width is not None:
            flat = pa.array(np.ascontiguousarray(values).ravel())
            yield name, pa.FixedSizeListArray.from_arrays(flat, component.width)
        elif operator.dump is not None:
            yield name, pa.array([operator.dump(v) for v in values], pa.binary())
        else:
            yield name, pa.array(values)


def _runs(store: Sliced, column: str, begins: Array) -> pa.Array:
    """Each slice's values in order, with how often they occur."""
    held = store.values(column)
    runs = sorted_runs(held, held.at(np.append(begins, len(store.part.t))))
    values = held.column.decode(runs.values)
    pairs = pa.StructArray.from_arrays([values, pa.array(runs.counts)], names=["value", "count"])
    return pa.ListArray.from_arrays(pa.array(runs.offsets.astype(np.int32)), pairs)


def _sequences(
    store: Sliced, columns: tuple[str, ...], begins: Array, ends: Array, moment: TimeType
) -> pa.Array:
    """Each slice's values in total order, with their times."""
    arrays, at = store.sequences(columns)
    times = moment.restore(store.times(columns))
    names = ["time", *(f"value_{k}" for k in range(len(arrays)))]
    events = pa.StructArray.from_arrays([times, *arrays], names=names)
    offsets = at(np.append(begins, len(store.part.t))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), events)
