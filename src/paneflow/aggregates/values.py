"""The kinds of values that aggregates work on, and how a column of each kind is held in arrays.

Kernels see only `int64` and `float64` arrays. Integers, booleans and times are held as `int64`,
decimals as the integers that they are without the point (`_numerics/decimals.py`), floats as
`float64`, and text as the rank of each value among the column's distinct values, so that comparing
ranks is comparing texts.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from paneflow.errors import InputError


@dataclass(frozen=True)
class Kind:
    """What a column holds, as far as aggregates are concerned.

    There is one object for each kind, also in another process, so that `is` compares kinds.
    """

    value: str
    scale: int
    """Of decimals: the number of digits after the point."""

    INTEGER: ClassVar[Kind]
    FLOAT: ClassVar[Kind]
    BOOLEAN: ClassVar[Kind]
    TEXT: ClassVar[Kind]
    TEMPORAL: ClassVar[Kind]
    DECIMAL: ClassVar[Kind]
    """Decimals of any scale."""

    @property
    def family(self) -> Kind:
        """The kind without its scale."""
        return kind(self.value, 0)

    @property
    def numeric(self) -> bool:
        return self in (Kind.INTEGER, Kind.FLOAT)

    @property
    def whole(self) -> bool:
        """Whether values are held as integers that can be added up."""
        return self.family in (Kind.INTEGER, Kind.BOOLEAN, Kind.DECIMAL)

    def __reduce__(self) -> Any:
        return kind, (self.value, self.scale)


@functools.cache
def kind(value: str, scale: int) -> Kind:
    """The one object that stands for a kind."""
    return Kind(value, scale)


Kind.INTEGER = kind("integer", 0)
Kind.FLOAT = kind("float", 0)
Kind.BOOLEAN = kind("boolean", 0)
Kind.TEXT = kind("text", 0)
Kind.TEMPORAL = kind("temporal", 0)
Kind.DECIMAL = kind("decimal", 0)

SIMPLE = (Kind.INTEGER, Kind.FLOAT, Kind.BOOLEAN, Kind.TEXT, Kind.TEMPORAL)
EVERY = (*SIMPLE, Kind.DECIMAL)
NUMERIC = (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL)
ADDED = (*NUMERIC, Kind.BOOLEAN)
"""Kinds whose values can be added up."""


def kind_of(type_: pa.DataType, column: str) -> Kind:
    """The kind of an Arrow type.

    >>> import pyarrow as pa
    >>> kind_of(pa.int32(), "load")
    Kind(value='integer', scale=0)
    >>> kind_of(pa.decimal128(12, 2), "price")
    Kind(value='decimal', scale=2)
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
    if pa.types.is_decimal(type_):
        return kind("decimal", type_.scale)
    raise InputError(
        f"column {column!r} has type {type_}, which aggregates cannot read; expected integers, "
        f"floats, decimals, booleans, text or times: cast the column first"
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
