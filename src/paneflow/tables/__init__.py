"""Tables of many kinds in, tables of the same kind out.

Inside there is only pyarrow. pandas and polars are considered only if the caller has already
imported them: otherwise none of their tables can exist. The tables of other libraries are read
through the Arrow C stream interface. Columns that a query does not read may hold anything: they are
never converted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Mapping
from typing import Any

import pyarrow as pa

from paneflow.errors import InputError
from paneflow.tables import dicts, pandas_frames, polars_frames, streams
from paneflow.tables.origin import Origin

Back = Callable[[pa.Table, Mapping[str, Origin]], Any]
"""Turns a result into the caller's kind of table, given where its columns come from."""


class _EveryColumn:
    def __contains__(self, name: object) -> bool:
        return True


EVERY_COLUMN = _EveryColumn()
"""To read all columns of a table, whatever their names."""


def to_arrow(table: Any, read: Container[str]) -> tuple[pa.Table, Back]:
    """The table as pyarrow, and the function that turns a result into the caller's kind.

    Only the columns that are read are converted; the others become columns of nulls, so that
    errors can name them. In pandas, NaN means a missing value, so it becomes null.

    >>> arrow, back = to_arrow([{"t": 1, "v": 2.5}], ["t", "v"])
    >>> arrow.column_names, back(arrow, {})
    (['t', 'v'], [{'t': 1, 'v': 2.5}])
    """
    if isinstance(table, pa.Table):
        return table, _as_it_is
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table]), _as_it_is
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(table, pandas.DataFrame):
        return pandas_frames.read(table, read), pandas_frames.back_to(table)
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(table, polars.LazyFrame):
        back = polars_frames.back_to(table.collect_schema)
        return polars_frames.read(polars_frames.collected(table, read), read), (
            lambda result, origins: back(result, origins).lazy()
        )
    if polars is not None and isinstance(table, polars.DataFrame):
        return polars_frames.read(table, read), polars_frames.back_to(lambda: table.schema)
    if isinstance(table, list) and all(isinstance(row, dict) for row in table):
        return dicts.read(table, read), lambda result, _: result.to_pylist()
    if is_spark(table):
        raise InputError(
            "only query.over and query.write_stream take a Spark DataFrame: collect it first, with "
            "df.toArrow()"
        )
    if streams.speaks(table):
        return streams.read(table, read), _as_it_is
    raise InputError(
        f"{streams.named(table)} is not a table that paneflow can read; {streams.EXPECTED}"
    )


def is_spark(table: Any) -> bool:
    """Whether a table is a Spark DataFrame, classic or Connect."""
    pyspark = sys.modules.get("pyspark.sql")
    return pyspark is not None and isinstance(table, pyspark.DataFrame)


def _as_it_is(result: pa.Table, origins: Mapping[str, Origin]) -> pa.Table:
    return result
