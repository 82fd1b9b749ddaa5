"""Spark's frames as paneflow sees them: their columns in Arrow's types, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.errors import InputError

if TYPE_CHECKING:
    from paneflow.query import Query


def source_schema(query: Query, frame: Any, further: bool = False) -> pa.Schema:
    """The columns that a query reads of a frame, as Arrow has them; an error if they do not fit.

    With `further`, the frame's other columns follow.
    """
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import to_arrow_type

    missing = [name for name in query.columns if name not in frame.columns]
    if missing:
        raise InputError(
            f"the DataFrame has no column {', '.join(map(repr, missing))}; it has "
            f"{', '.join(map(repr, frame.columns))}: rename a column, or correct the query"
        )
    types = {field.name: field.dataType for field in frame.schema.fields}
    fields = []
    for name in dict.fromkeys([*query.columns, *(frame.columns if further else ())]):
        try:
            fields.append((name, to_arrow_type(types[name], timezone="UTC")))
        except (PySparkTypeError, TypeError):
            raise InputError(
                f"column {name!r} has Spark type {types[name].simpleString()}, which paneflow "
                f"cannot read: cast it to a number, text or a time"
            ) from None
    schema = pa.schema(fields)
    query.check(schema)
    return schema


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


def chosen(frame: Any, names: Iterable[str]) -> Any:
    """Some columns of a frame, whatever characters their names contain."""
    return frame.select(*(f"`{name.replace('`', '``')}`" for name in names))


def batches_of(rows: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows as batches in the types that Spark expects."""
    yield from rows.cast(schema).to_batches(max_chunksize=1 << 18)


def table_of(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Batches that came from Spark, in the types that were declared.

    Spark marks timestamps with the session's time zone; the instants do not change.
    """
    return pa.Table.from_batches(batches).cast(schema)
