"""Tables of every kind in, tables of the same kind out.

Inside there is only pyarrow. pandas and polars are looked at only if the caller has them
imported already: a table of theirs cannot exist otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from paneflow.errors import InputError

Back = Callable[[pa.Table], Any]


def to_arrow(table: Any) -> tuple[pa.Table, Back]:
    """The table as pyarrow, and the function that turns a result into the caller's kind.

    In pandas a NaN means a missing value, so it becomes a null.

    >>> arrow, back = to_arrow([{"t": 1, "v": 2.5}])
    >>> arrow.column_names, back(arrow)
    (['t', 'v'], [{'t': 1, 'v': 2.5}])
    """
    if isinstance(table, pa.Table):
        return table, lambda result: result
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table]), lambda result: result
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(table, pandas.DataFrame):
        return _from_pandas(table), _to_pandas
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(table, polars.LazyFrame):
        return table.collect().to_arrow(), lambda result: polars.from_arrow(result).lazy()
    if polars is not None and isinstance(table, polars.DataFrame):
        return table.to_arrow(), polars.from_arrow
    if isinstance(table, list) and all(isinstance(row, dict) for row in table):
        names = dict.fromkeys(name for row in table for name in row)
        columns = {name: _column([row.get(name) for row in table], name) for name in names}
        return pa.table(columns), lambda result: result.to_pylist()
    raise InputError(
        f"a {type(table).__module__}.{type(table).__qualname__} is no table paneflow can read; "
        f"expected pyarrow (Table, RecordBatch), pandas, polars, or a list of dicts"
    )


def is_spark(table: Any) -> bool:
    """Whether a table is a DataFrame of Spark, classic or over Connect."""
    pyspark = sys.modules.get("pyspark.sql")
    return pyspark is not None and isinstance(table, pyspark.DataFrame)


def _column(values: Any, name: object) -> pa.Array:
    """One column of Python values, or a word about which one does not fit."""
    if not isinstance(name, str):
        raise InputError(f"a column is named {name!r}: rename it, names must be text")
    try:
        return pa.array(values, from_pandas=not isinstance(values, list))
    except OverflowError:
        raise InputError(
            f"column {name!r} holds integers that do not fit into int64: make them floats or text"
        ) from None
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(
            f"column {name!r} has values of several types ({error}): make it one type"
        ) from None


def _from_pandas(frame: Any) -> pa.Table:
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise InputError(f"column {twice[0]!r} occurs more than once: rename all but one")
    columns = {name: _column(frame[name], name) for name in frame.columns}
    return pa.table(columns)


def _to_pandas(result: pa.Table) -> Any:
    """A frame in which integers with nulls stay integers."""
    import pandas as pd

    frame = result.to_pandas()
    for field in result.schema:
        column = result.column(field.name)
        if pa.types.is_integer(field.type) and column.null_count:
            whole = {pa.int64(): pd.Int64Dtype()}
            frame[field.name] = column.cast(pa.int64()).to_pandas(types_mapper=whole.get)
    return frame
