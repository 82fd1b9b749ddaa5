"""The kinds of values that aggregates work on, and how a column of each kind is held in arrays.

Kernels see only `int64` and `float64` arrays. Integers, booleans and times are held as `int64`,
floats as `float64`, and text as the rank of each value among the column's distinct values, so that
comparing ranks is comparing texts.
"""

from __future__ import annotations

from enum import Enum

import pyarrow as pa

from paneflow.errors import InputError


class Kind(Enum):
    """What a column holds, as far as aggregates are concerned."""

    INTEGER = "integer"
    FLOAT = "float"
    BOOLEAN = "boolean"
    TEXT = "text"
    TEMPORAL = "temporal"

    @property
    def numeric(self) -> bool:
        return self in (Kind.INTEGER, Kind.FLOAT)


def kind_of(type_: pa.DataType, column: str) -> Kind:
    """The kind of an Arrow type.

    >>> import pyarrow as pa
    >>> kind_of(pa.int32(), "load")
    <Kind.INTEGER: 'integer'>
    """
    if pa.types.is_dictionary(type_):
        return kind_of(type_.value_type, column)
    if pa.types.is_integer(type_):
        return Kind.INTEGER
    # A column of nulls alone does not say what it would hold.
    if pa.types.is_floating(type_) or pa.types.is_null(type_):
        return Kind.FLOAT
    if pa.types.is_boolean(type_):
        return Kind.BOOLEAN
    if (
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_binary_view(type_)
    ):
        return Kind.TEXT
    if pa.types.is_temporal(type_) and not pa.types.is_interval(type_):
        return Kind.TEMPORAL
    raise InputError(
        f"column {column!r} has type {type_}, which aggregates cannot read; expected integers, "
        f"floats, booleans, text or times: cast the column first"
    )


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type in which values of a column are returned: dictionaries are decoded."""
    if pa.types.is_null(type_):
        return pa.float64()
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def sortable_type(type_: pa.DataType) -> pa.DataType:
    """A type for the same values that Arrow can sort."""
    if pa.types.is_string_view(type_):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(type_) else type_
