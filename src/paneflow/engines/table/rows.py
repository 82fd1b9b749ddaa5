"""Windows become rows: ordered by (end, window, seq, key), in the types of the result."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.aggregates.texts import in_type, joined, taken
from paneflow.engines.table.windows import Block, Result, follows_from_number
from paneflow.slicing.columns import Column
from paneflow.slicing.ordering import inverse, scatter, stable_places
from paneflow.slicing.times import TimeType
from paneflow.windows import Sliding, Window


def assemble(
    blocks: list[Block],
    windows: Mapping[str, Window],
    labels: Mapping[str, int],
    keys: pa.Table,
    schema: pa.Schema,
    pool: Executor,
) -> pa.Table:
    """One table from the blocks of all stores, which come in the order of their keys.

    Blocks are emptied column by column, so that no column is held twice for long.
    """
    seq, start, end, label, places = _ordered(blocks, windows, labels)
    key = _joined(blocks, "key", places)
    texts = sorted(windows, key=lambda name: labels[name])
    columns = window_columns(label, texts, seq, (start, end), schema) | key_columns(key, keys)
    names = list(blocks[0].results)
    made = pool.map(lambda name: _result([b.results.pop(name) for b in blocks], places), names)
    columns.update(zip(names, made, strict=True))
    return in_schema(columns, schema)


def window_columns(
    label: Array, texts: list[str], seq: Array, extent: tuple[Array, Array], schema: pa.Schema
) -> dict[str, Any]:
    """The columns that say which window a row is of; `label` is a place in `texts`."""
    moment = TimeType(schema.field("end").type)
    start, end = extent
    return {
        "window": pa.DictionaryArray.from_arrays(pa.array(label), pa.array(texts, pa.string())),
        "seq": pa.array(seq),
        "start": moment.restore(start),
        "end": moment.restore(end),
    }


def key_columns(key: Array, keys: pa.Table) -> dict[str, Any]:
    """The columns of the key, of rows whose keys are these rows of a table."""
    codes = pa.array(key)
    return {name: taken(keys.column(name).combine_chunks(), codes) for name in keys.column_names}


def in_schema(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Columns as a table of exactly these types."""
    arrays = [in_type(columns[field.name], field.type) for field in schema]
    return pa.table(arrays, schema=schema)


def _ordered(
    blocks: list[Block], windows: Mapping[str, Window], labels: Mapping[str, int]
) -> tuple[Array, Array, Array, Array, Array | None]:
    """seq, start, end and label of all rows in order, and their places."""
    seq = _joined(blocks, "seq", None)
    if follows_from_number(windows):
        (window,) = windows.values()
        places = stable_places([seq], len(seq))
        seq = seq if places is None else scatter(seq, places)
        start, end = window.extent(seq, seq, seq)
        return seq, start, end, np.zeros(len(seq), np.int32), places
    label, start, end = (_joined(blocks, name, None) for name in ("label", "start", "end"))
    fields = [end, label] if len(windows) > 1 else [end]
    if not all(isinstance(w, Sliding) for w in windows.values()):
        fields.append(seq)
    places = stable_places(fields, len(seq))
    if places is not None:
        seq, start, end, label = (scatter(c, places) for c in (seq, start, end, label))
    return seq, start, end, label, places


def _joined(blocks: list[Block], column: str, places: Array | None) -> Array:
    values = np.concatenate([b.columns.pop(column) for b in blocks])
    return values if places is None else scatter(values, places)


def _result(parts: list[Result], places: Array | None) -> pa.Array:
    """One aggregate's column, in order and in its own type."""
    held = parts[0].column
    # Stores of different slicings may hold texts by different ranks.
    if isinstance(parts[0].values, pa.Array) or any(p.column is not held for p in parts):
        whole = joined([as_result(p.values, p.valid, p.column) for p in parts])
        return whole if places is None else whole.take(pa.array(inverse(places)))
    values = np.concatenate([p.values for p in parts])
    masks = [p.valid for p in parts]
    valid = None
    if any(m is not None and not m.all() for m in masks):
        valid = np.concatenate(
            [np.ones(len(p.values), np.bool_) if p.valid is None else p.valid for p in parts]
        )
    if places is not None:
        values = scatter(values, places)
        valid = None if valid is None else scatter(valid, places)
    return as_result(values, valid, held)


def as_result(
    values: Array | pa.Array, valid: Array | None, column: Column | None = None
) -> pa.Array:
    """Results as an Arrow array, null where they are not valid.

    `column` is the one whose values they are, if they are those of a column.
    """
    if column is not None:
        return column.decode(values, valid)
    if not isinstance(values, pa.Array):
        return pa.array(values, mask=None if valid is None else ~valid)
    if valid is None or valid.all():
        return values
    return values.take(pa.array(np.arange(len(valid)), mask=~valid))
