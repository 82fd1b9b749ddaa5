"""A table as the oracle sees it: Python lists, one entry per event.

Times and other temporal values are held as integers in the unit of their type, because Python's
`datetime` has no nanoseconds and cannot be summed. Rows have Arrow's types again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from paneflow.errors import InputError

FARTHEST = 2**61


@dataclass(frozen=True)
class Events:
    """The events of a table: `times[i]`, `keys[i]` and `columns[name][i]` belong to row i."""

    table: pa.Table
    key: tuple[str, ...]
    times: list[int]
    keys: list[tuple[Any, ...]]
    columns: dict[str, list[Any]]

    def of_keys(self) -> list[list[int]]:
        """The rows of each key in total order. Null is a key like any other, and so is NaN."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        # The sort is stable: at equal times the position in the table decides.
        for row in sorted(range(len(self.times)), key=self.times.__getitem__):
            groups.setdefault(tuple(map(order, self.keys[row])), []).append(row)
        return list(groups.values())

    def where(self, row: int) -> str:
        """A row in words, for errors."""
        names = ", ".join(f"{n}={v!r}" for n, v in zip(self.key, self.keys[row], strict=True))
        return f"row {row}" + (f" (key {names})" if names else "")


def read(table: pa.Table, key: tuple[str, ...], time: str, columns: Iterable[str]) -> Events:
    """Read what a query needs from a table, and refuse bad times."""
    return Events(
        table=table,
        key=key,
        times=_times(table.column(time), time),
        keys=list(zip(*(plain(table.column(name)) for name in key), strict=True))
        if key
        else [()] * table.num_rows,
        columns={name: _values(table.column(name), name) for name in columns},
    )


def order(value: Any) -> tuple[int, Any]:
    """A sort key: null before everything, NaN after everything; equal values have equal keys."""
    if value is None:
        return (0, 0)
    return (2, 0) if value != value else (1, value)


def array(given: Sequence[Any], type_: pa.DataType) -> pa.Array[Any]:
    """Python values, temporal ones as integers, as an Arrow array."""
    return pa.array(given, _storage(type_)).cast(type_)


def _times(column: pa.ChunkedArray[Any], name: str) -> list[int]:
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        try:
            column = column.cast(pa.timestamp("us", getattr(column.type, "tz", None)))
        except pa.ArrowInvalid as error:
            raise InputError(
                f"The time column {name!r} of type {column.type} cannot be kept in microseconds "
                f"({error}): round the times first."
            ) from error
    elif pa.types.is_integer(column.type):
        column = _as_int64(column, name)
    else:
        raise InputError(
            f"The time column {name!r} has type {column.type}: give a column of timestamps, dates "
            f"or integers."
        )
    times: list[Any] = plain(column)
    if None in times:
        raise InputError(
            f"The time column {name!r} is null in row {times.index(None)}: every event needs a "
            f"time, so fill it in or drop the row."
        )
    for row, t in enumerate(times):
        if abs(t) > FARTHEST:
            raise InputError(
                f"The time column {name!r} is {t} in row {row}, too far from zero for bounds of "
                f"windows to fit into int64 (at most 2**61): correct it, or use a coarser unit."
            )
    return times


def _values(column: pa.ChunkedArray[Any], name: str) -> list[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type):
        return _decimals(column, name)
    return plain(_as_int64(column, name) if pa.types.is_uint64(column.type) else column)


def _decimals(column: pa.ChunkedArray[Any], name: str) -> list[Any]:
    values: list[Any] = column.to_pylist()
    for row, value in enumerate(values):
        digits = 0 if value is None else Fraction(value) * Fraction(10) ** column.type.scale
        if not -(2**63) <= digits < 2**63:
            raise InputError(
                f"The column {name!r} of type {column.type} is {value} in row {row}, whose digits "
                f"do not fit into int64: cast it to float64, or to a decimal with fewer digits "
                f"behind the point."
            )
    return values


def plain(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> list[Any]:
    """A column as Python values; temporal ones as integers in their own unit."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    stored = column.cast(_storage(column.type))
    values: list[Any] = stored.to_pylist()
    return values


def _as_int64(column: pa.ChunkedArray[Any], name: str) -> pa.ChunkedArray[Any]:
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise InputError(
            f"The column {name!r} holds integers beyond int64 ({error}): cast it to float64 or "
            f"to text."
        ) from error


def _storage(type_: pa.DataType) -> pa.DataType:
    """The type in which Python values stand for values of a type."""
    if pa.types.is_list(type_):
        return pa.list_(_storage(type_.value_type))
    if pa.types.is_temporal(type_):
        return pa.int32() if type_.bit_width == 32 else pa.int64()
    return type_
