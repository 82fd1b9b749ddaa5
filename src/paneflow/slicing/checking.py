"""Checks a table of slices: it may have been stored, sent, filtered or damaged since it was cut.

Slices that a query has just cut are right by construction. Slices that come from elsewhere are
checked before they are finished, since damaged ones would silently give wrong rows: columns and
their types, labels, nulls, and counts that contradict each other. Values themselves cannot be
checked, since any value is possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.lowering import column_set
from paneflow.aggregates.operator import TIME, Array
from paneflow.aggregates.values import kind_of
from paneflow.errors import InputError
from paneflow.slicing.layout import (
    counted_columns,
    runs_columns,
    sequence_columns,
    stored_operators,
)
from paneflow.slicing.slices import LAST, ROWS, SLICING, START, Slices
from paneflow.slicing.slicings import slicings

if TYPE_CHECKING:
    from paneflow.query import Query


def whole(query: Query, slices: Slices, layout: pa.Schema) -> Slices:
    """The slices, with columns in the types that the query cuts them in; an error if damaged.

    `layout` is the schema of slices that the query cuts from this source.
    """
    table = _typed(slices.table, layout)
    _check_labels(query, table)
    _check_times(table)
    rows = _numbers(table, ROWS)
    _require(bool((rows > 0).all()), f"column {ROWS!r} counts slices without an event")
    counted = {columns: _numbers(table, name) for columns, name in counted_columns(query).items()}
    for columns, counts in counted.items():
        within = bool(((counts >= 0) & (counts <= rows)).all())
        _require(within, f"the counts of {', '.join(columns)} are not between 0 and {ROWS!r}")
    _check_partials(query, slices.source, table, counted)
    for column, name in runs_columns(query).items():
        _check_runs(table, name, counted[(column,)])
    for columns, name in sequence_columns(query).items():
        _check_sequences(table, name, counted[column_set(columns)])
    return slices.with_table(table)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise InputError(
            f"these slices are damaged: {what}; store the table of slices as it is, with its "
            f"metadata, or cut them again with query.slice"
        )


def _typed(table: pa.Table, layout: pa.Schema) -> pa.Table:
    for field in layout:
        found = len(table.schema.get_all_field_indices(field.name))
        _require(found == 1, f"column {field.name!r} occurs {found} times instead of once")
    kept = table.select(layout.names)
    for at, field in enumerate(layout):
        if kept.schema.field(at).type == field.type:
            continue
        try:
            column = kept.column(at).cast(field.type)
        except pa.ArrowException as error:
            given = kept.schema.field(at).type
            _require(False, f"column {field.name!r} has type {given}, not {field.type} ({error})")
        kept = kept.set_column(at, field.name, column)
    return kept.replace_schema_metadata(table.schema.metadata)


def _check_labels(query: Query, table: pa.Table) -> None:
    known = pa.array(list(slicings(query)))
    unknown = pc.unique(table.column(SLICING).filter(pc.invert(pc.is_in(table[SLICING], known))))
    _require(len(unknown) == 0, f"{unknown.to_pylist()!r} in {SLICING!r} name no slices of a query")


def _check_times(table: pa.Table) -> None:
    start, last = (_numbers(table, name) for name in (START, LAST))
    _require(bool((start <= last).all()), f"{START!r} is later than {LAST!r} in a slice")


def _numbers(table: pa.Table, name: str) -> Array:
    column = table.column(name)
    _require(column.null_count == 0, f"column {name!r} holds nulls")
    numbers: Array = column.cast(pa.int64()).to_numpy()
    return numbers


def _check_partials(
    query: Query, source: pa.Schema, table: pa.Table, counted: dict[tuple[str, ...], Array]
) -> None:
    kinds = {name: kind_of(type_, name) for name, type_ in query.types(source).items()}
    for operator, prefix in stored_operators(query, kinds).items():
        some = counted[column_set(operator.columns)] > 0
        for component in operator.components:
            name = f"{prefix}.{component.name}"
            column = table.column(name)
            missing = column.is_null().to_numpy()
            if component.column not in (None, TIME):
                # A slice that counted nothing has no value to show.
                missing = missing & some
            _require(not missing.any(), f"column {name!r} holds nulls where events were counted")
            if component.width is not None:
                flat = pc.list_flatten(column)
                complete = len(flat) == component.width * table.num_rows and not flat.null_count
                _require(complete, f"column {name!r} holds nulls")
            if operator.load is not None:
                for stored in column.to_pylist():
                    try:
                        operator.load(stored)
                    except Exception as error:  # whatever the library of a sketch says of it
                        _require(False, f"a sketch in column {name!r} cannot be read ({error})")


def _lengths(table: pa.Table, name: str) -> Array:
    column = table.column(name)
    _require(column.null_count == 0, f"column {name!r} holds nulls")
    lengths: Array = pc.list_value_length(column).to_numpy()
    return lengths


def _check_runs(table: pa.Table, name: str, counted: Array) -> None:
    lengths = _lengths(table, name)
    pairs = pc.list_flatten(table.column(name)).combine_chunks()
    nulls = pairs.null_count + pairs.field("value").null_count + pairs.field("count").null_count
    _require(nulls == 0, f"column {name!r} holds nulls")
    counts = pairs.field("count").to_numpy(zero_copy_only=False)
    totals = np.bincount(np.repeat(np.arange(len(lengths)), lengths), counts, len(lengths))
    agree = bool((counts > 0).all()) and bool((totals == counted).all())
    _require(agree, f"the counts in column {name!r} are not those of its slices")


def _check_sequences(table: pa.Table, name: str, counted: Array) -> None:
    lengths = _lengths(table, name)
    events = pc.list_flatten(table.column(name)).combine_chunks()
    missing = events.null_count + sum(f.null_count for f in events.flatten())
    _require(missing == 0, f"column {name!r} holds nulls")
    _require(bool((lengths == counted).all()), f"column {name!r} does not hold all its events")
