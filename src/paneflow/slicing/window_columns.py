"""Checks the types of the columns that windows read to find where they begin and end."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pyarrow as pa

from paneflow.aggregates.values import Kind, kind_of
from paneflow.errors import InputError
from paneflow.windows import Custom, Delta, Duration, Punctuation, Window


def check_window_columns(windows: Mapping[str, Window], schema: pa.Schema) -> None:
    """Refuse columns whose types a window cannot use.

    A column of nothing but nulls has no type that could be wrong.
    """
    for window in windows.values():
        for column in window.columns:
            type_ = schema.field(column).type
            if pa.types.is_null(type_):
                continue
            kind = kind_of(type_, column)
            if isinstance(window, Punctuation) and kind is not Kind.BOOLEAN:
                raise InputError(
                    f"{window} needs a boolean column, but {column!r} has type {type_}: "
                    f"compute a boolean, for example from a comparison"
                )
            if isinstance(window, Delta):
                _check_delta(window, type_, kind)
            if isinstance(window, Custom) and kind is Kind.TEMPORAL:
                raise InputError(
                    f"{window} reads {column!r}, a time: a custom window's step gets the event's "
                    f"time as its second argument; cast other times to integers first"
                )
            if isinstance(window, Custom) and kind.family is Kind.DECIMAL:
                raise InputError(
                    f"{window} reads {column!r}, which has type {type_}, and a custom window's "
                    f"step reads no decimals: cast it to float64"
                )


def _check_delta(window: Delta, type_: pa.DataType, kind: Kind) -> None:
    if kind not in (Kind.INTEGER, Kind.FLOAT, Kind.TEMPORAL):
        raise InputError(
            f"{window} needs a column of numbers or times, but {window.column!r} has type "
            f"{type_}: cast it"
        )
    if isinstance(window.range, Duration) and kind is not Kind.TEMPORAL:
        raise InputError(
            f"{window} measures {window.column!r} by a duration, but its type is {type_}: "
            f"give range and slide as plain numbers"
        )
    for amount in (window.range, window.slide):
        if kind is Kind.FLOAT and not _is_float(amount):
            raise InputError(
                f"{window} measures {window.column!r}, a column of floats, by {amount}, which "
                f"float64 cannot hold exactly: give it as a float"
            )


def _is_float(amount: Any) -> bool:
    try:
        return bool(Fraction(float(amount)) == amount)
    except OverflowError:
        return False
