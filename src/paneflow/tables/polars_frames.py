"""Frames of polars, eager and lazy. Categoricals and enums come back as such.

polars is imported only when there is a frame of it, which means that it is already loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

import pyarrow as pa

from paneflow.errors import InputError
from paneflow.names import is_name
from paneflow.tables.origin import Origin


def collected(frame: Any, read: Container[str]) -> Any:
    """A lazy frame's columns that are read; others are not even computed."""
    import polars

    try:
        names = frame.collect_schema().names()
        nothing = (polars.lit(None).alias(name) for name in names if name not in read)
        return frame.with_columns(*nothing).collect()
    except polars.exceptions.PolarsError as error:
        raise InputError(
            f"the lazy frame could not be collected: {error}; correct it so that "
            f"frame.collect() works"
        ) from error


def read(frame: Any, wanted: Container[str]) -> pa.Table:
    """The columns that are wanted; others as nulls."""
    for name, type_ in frame.schema.items():
        if name in wanted and str(type_) in ("Int128", "UInt128", "Object"):
            raise InputError(
                f"column {name!r} has polars' type {type_}, which Arrow cannot hold: cast it, for "
                f"example to Int64 or String"
            )
    table = frame.select(name for name in frame.columns if name in wanted).to_arrow()
    for name in frame.columns:
        if name not in wanted and is_name(name):
            table = table.append_column(name, pa.nulls(frame.height))
    return table


def back_to(schema: Callable[[], Mapping[str, Any]]) -> Callable[..., Any]:
    """Makes frames of results; what holds values of a column gets the column's own type."""

    def back(result: pa.Table, origins: Mapping[str, Origin]) -> Any:
        import polars as pl

        frame = pl.from_arrow(result)
        assert isinstance(frame, pl.DataFrame)
        given = schema()
        types = {name: given[o.column] for name, o in origins.items() if o.held}
        return frame.with_columns(
            pl.col(name).cast(pl.List(type_) if frame.schema[name] == pl.List else type_)
            for name, type_ in types.items()
            if isinstance(type_, pl.Categorical | pl.Enum)
        )

    return back
