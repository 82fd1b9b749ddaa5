"""Spark's frames as paneflow sees them: their columns in Arrow's types, and the way back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.engines.spark.columns import Place, check_apart, find
from paneflow.errors import InputError

if TYPE_CHECKING:
    from paneflow.query import Query


def read(query: Query, frame: Any, further: bool = False) -> tuple[Any, pa.Schema]:
    """The columns of a frame that a query reads, and their types in Arrow; errors if none fit.

    The columns are called c0, c1, ... in the order of the types, which have the query's names:
    PySpark's own `mapInArrow` fails if a name contains a dot. With `further`, the frame's other
    columns follow.
    """
    places = find(frame, query.columns)
    if further:
        whole = {place.column for place in places.values() if not place.path}
        rest = ((name, at) for at, name in enumerate(frame.columns) if at not in whole)
        others = {name: Place(at) for name, at in rest}
        check_apart(frame, [*places, *others])
        places |= others
    columns = (_column(place).alias(f"c{k}") for k, place in enumerate(places.values()))
    chosen = frame.toDF(*(f"f{k}" for k in range(len(frame.columns)))).select(*columns)
    source = _arrow_types(list(places), chosen.schema)
    query.check(source)
    check_apart(frame, query.result_schema(source).names)
    return chosen, source


def _column(place: Place) -> Any:
    from pyspark.sql import functions as F

    column = F.col(f"f{place.column}")
    for part in place.path:
        column = column.getField(part)
    return column


def _arrow_types(names: list[str], schema: Any) -> pa.Schema:
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import to_arrow_type

    fields = []
    for name, field in zip(names, schema.fields, strict=True):
        try:
            fields.append((name, to_arrow_type(field.dataType, timezone="UTC")))
        except (PySparkTypeError, TypeError):
            raise InputError(
                f"column {name!r} has Spark type {field.dataType.simpleString()}, which paneflow "
                f"cannot read: cast it to a number, text or a time"
            ) from None
    return pa.schema(fields)


def place(source: pa.Schema, name: str) -> str:
    """What a column is called in a frame that was read."""
    return f"c{source.names.index(name)}"


def column(source: pa.Schema, name: str) -> Any:
    """A column of a frame that was read."""
    from pyspark.sql import functions as F

    return F.col(place(source, name))


def rows_schema(query: Query, source: pa.Schema) -> pa.Schema:
    """The columns of the result as Spark has them: labels are plain text."""
    given = query.result_schema(source)
    return pa.schema(
        [
            pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
            for f in given
        ]
    )


def spark_schema(schema: pa.Schema) -> Any:
    """An Arrow schema as Spark states it."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def batches_of(rows: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows as batches in the types that Spark expects."""
    yield from rows.cast(schema).to_batches(max_chunksize=1 << 18)


def table_of(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Batches that came from Spark, under the names and in the types that were declared.

    Spark marks timestamps with the session's time zone; the instants do not change.
    """
    return declared(pa.Table.from_batches(batches), schema)


def declared(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table whose columns have these names and types, in this order."""
    return table.rename_columns(schema.names).cast(schema)
