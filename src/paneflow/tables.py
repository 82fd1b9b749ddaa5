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
        return pa.Table.from_pandas(table, preserve_index=False), lambda result: result.to_pandas()
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(table, polars.LazyFrame):
        return table.collect().to_arrow(), lambda result: polars.from_arrow(result).lazy()
    if polars is not None and isinstance(table, polars.DataFrame):
        return table.to_arrow(), polars.from_arrow
    if isinstance(table, list) and all(isinstance(row, dict) for row in table):
        names = dict.fromkeys(name for row in table for name in row)
        columns = {name: [row.get(name) for row in table] for name in names}
        try:
            return pa.table(columns), lambda result: result.to_pylist()
        except pa.ArrowInvalid as error:
            raise InputError(
                f"a column of the given list of dicts has values of several types ({error}): "
                f"make each column one type"
            ) from None
    raise InputError(
        f"a {type(table).__module__}.{type(table).__qualname__} is no table paneflow can read; "
        f"expected pyarrow (Table, RecordBatch), pandas, polars, or a list of dicts"
    )
