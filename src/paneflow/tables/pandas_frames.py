"""Frames of pandas. Columns come back with the kind of dtype they had.

pandas has three kinds: NumPy's, its own with a mask for missing values (`Int64`), and Arrow's
(`int64[pyarrow]`). A result column has the kind of the column it is made of, and its very dtype
where it holds that column's values: categories stay categories.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.errors import InputError
from paneflow.names import is_name
from paneflow.tables.columns import column_of
from paneflow.tables.origin import Origin


def read(frame: Any, wanted: Container[str]) -> pa.Table:
    """The columns that are wanted; others as nulls."""
    for name in frame.columns[frame.columns.duplicated()]:
        if isinstance(name, str) and name in wanted:
            raise InputError(f"column {name!r} occurs more than once: rename all but one")
    columns = {
        name: _read_one(frame[name], name) if name in wanted else pa.nulls(len(frame))
        for name in frame.columns
        if is_name(name)
    }
    return pa.table(columns)


def _read_one(series: Any, name: str) -> pa.Array:
    # pyarrow takes categories of nothing for floats.
    nothing = len(getattr(series.dtype, "categories", [None])) == 0
    return pa.nulls(len(series)) if nothing else column_of(series, name)


def back_to(given: Any) -> Callable[[pa.Table, Mapping[str, Origin]], Any]:
    """Makes frames of results, with dtypes as the given frame has them."""

    def back(result: pa.Table, origins: Mapping[str, Origin]) -> Any:
        frame = result.to_pandas()
        for field in result.schema:
            column, origin = result.column(field.name), origins.get(field.name)
            dtype = None if origin is None else given[origin.column].dtype
            held = origin is not None and origin.held
            frame[field.name] = _with_dtype(column, frame[field.name], dtype, held)
        return frame

    return back


def _with_dtype(column: pa.ChunkedArray, made: Any, dtype: Any, held: bool) -> Any:
    """A column of a result, made of a column with this dtype."""
    import pandas as pd

    if isinstance(dtype, pd.ArrowDtype):
        return pd.Series(pd.arrays.ArrowExtensionArray(column))
    if held and not pa.types.is_nested(column.type):
        if isinstance(dtype, pd.CategoricalDtype):
            return pd.Series(_categorical(column, dtype))
        if isinstance(dtype, pd.StringDtype):
            return made.astype(dtype)
        known = column.null_count < len(column)
        if dtype.kind == "O" and (isinstance(made.dtype, pd.StringDtype) or not known):
            return pd.Series(column.to_numpy(), dtype=object)
    masked = getattr(dtype, "na_value", None) is pd.NA
    if masked or (pa.types.is_integer(column.type) and column.null_count):
        # NumPy has no place for a missing integer, and a float could not hold it.
        roomy = _masked_dtype(column.type)
        return made if roomy is None else column.to_pandas(types_mapper=lambda _: roomy)
    return made


def _categorical(column: pa.ChunkedArray, dtype: Any) -> Any:
    """Values as categories, by their places among them."""
    import pandas as pd

    if column.null_count == len(column):
        return pd.Categorical.from_codes(np.full(len(column), -1), dtype=dtype)
    categories = pa.array(dtype.categories, from_pandas=True)
    places = pc.index_in(column, value_set=categories.cast(column.type))
    return pd.Categorical.from_codes(places.fill_null(-1).to_numpy(), dtype=dtype)


def _masked_dtype(type_: pa.DataType) -> Any:
    """The dtype of pandas' own that holds a type beside missing values, if there is one."""
    import pandas as pd

    if pa.types.is_boolean(type_):
        return pd.BooleanDtype()
    if pa.types.is_integer(type_):
        sign = "Int" if pa.types.is_signed_integer(type_) else "UInt"
        return getattr(pd, f"{sign}{type_.bit_width}Dtype")()
    if type_ in (pa.float32(), pa.float64()):
        return getattr(pd, f"Float{type_.bit_width}Dtype")()
    return None
