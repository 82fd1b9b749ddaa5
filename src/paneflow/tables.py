"""Tables of every kind in, tables of the same kind out.

Inside there is only pyarrow. pandas and polars are looked at only if the caller has them
imported already: a table of theirs cannot exist otherwise. Columns that a query does not read may
hold anything: they are never converted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from typing import Any

import pyarrow as pa

from paneflow.errors import InputError
from paneflow.names import is_name

Back = Callable[[pa.Table], Any]


def to_arrow(table: Any, read: Collection[str]) -> tuple[pa.Table, Back]:
    """The table as pyarrow, and the function that turns a result into the caller's kind.

    Only the columns that are read are converted; others stand there as columns of nulls, so that
    an error can name them. In pandas a NaN means a missing value, so it becomes a null.

    >>> arrow, back = to_arrow([{"t": 1, "v": 2.5}], ["t", "v"])
    >>> arrow.column_names, back(arrow)
    (['t', 'v'], [{'t': 1, 'v': 2.5}])
    """
    if isinstance(table, pa.Table):
        return table, lambda result: result
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table]), lambda result: result
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(table, pandas.DataFrame):
        return _from_pandas(table, read), _to_pandas
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(table, polars.LazyFrame):
        frame = _collected(table, read, polars)
        return _from_polars(frame, read), lambda result: polars.from_arrow(result).lazy()
    if polars is not None and isinstance(table, polars.DataFrame):
        return _from_polars(table, read), polars.from_arrow
    if isinstance(table, list) and all(isinstance(row, dict) for row in table):
        names = dict.fromkeys(name for row in table for name in row if is_name(name))
        columns = {
            name: _column([row.get(name) for row in table], name)
            if name in read
            else pa.nulls(len(table))
            for name in names
        }
        return pa.table(columns), lambda result: result.to_pylist()
    raise InputError(
        f"a {type(table).__module__}.{type(table).__qualname__} is no table paneflow can read; "
        f"expected pyarrow (Table, RecordBatch), pandas, polars, or a list of dicts"
    )


def is_spark(table: Any) -> bool:
    """Whether a table is a DataFrame of Spark, classic or over Connect."""
    pyspark = sys.modules.get("pyspark.sql")
    return pyspark is not None and isinstance(table, pyspark.DataFrame)


def _column(values: Any, name: str) -> pa.Array:
    """One column of Python values, or a word about which one does not fit."""
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
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"column {name!r} has values that Arrow cannot hold ({error}): make them numbers, "
            f"times or text"
        ) from None


def _from_pandas(frame: Any, read: Collection[str]) -> pa.Table:
    twice = frame.columns[frame.columns.duplicated()]
    for name in twice:
        if isinstance(name, str) and name in read:
            raise InputError(f"column {name!r} occurs more than once: rename all but one")
    columns = {
        name: _column(frame[name], name) if name in read else pa.nulls(len(frame))
        for name in frame.columns
        if is_name(name)
    }
    return pa.table(columns)


def _collected(frame: Any, read: Collection[str], polars: Any) -> Any:
    """A lazy frame's columns that are read; others are not even computed."""
    try:
        names = frame.collect_schema().names()
        nothing = (polars.lit(None).alias(name) for name in names if name not in read)
        return frame.with_columns(*nothing).collect()
    except polars.exceptions.PolarsError as error:
        raise InputError(
            f"the lazy frame could not be collected: {error}; correct it so that "
            f"frame.collect() works"
        ) from error


def _from_polars(frame: Any, read: Collection[str]) -> pa.Table:
    for name, type_ in frame.schema.items():
        if name in read and str(type_) in ("Int128", "UInt128", "Object"):
            raise InputError(
                f"column {name!r} has polars' type {type_}, which Arrow cannot hold: cast it, for "
                f"example to Int64 or String"
            )
    table = frame.select(name for name in frame.columns if name in read).to_arrow()
    for name in frame.columns:
        if name not in read and is_name(name):
            table = table.append_column(name, pa.nulls(frame.height))
    return table


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
