"""Aggregates that pick one event: min, max, first, last, arg_min, arg_max.

Ties go to the earliest event in total order. The partials of first, last, arg_min and arg_max hold
the event's time, which makes them independent of the order in which parts of a slice are merged:
slices of interleaved tables combine to the same event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from paneflow.aggregates.aggregate import Constant, Kinds, Lowered, Merged, Types
from paneflow.aggregates.laws import Laws
from paneflow.aggregates.operator import TIME, Array, Component, Input, Operator
from paneflow.aggregates.values import Kind, plain_type

NEVER = np.iinfo(np.int64).max
ALWAYS = np.iinfo(np.int64).min


def _itself(x):  # type: ignore[no-untyped-def]
    return x


def _smaller(a, b):  # type: ignore[no-untyped-def]
    # NaN is greater than every number and equal to itself.
    return b if b < a or (a != a and b == b) else a


def _greater(a, b):  # type: ignore[no-untyped-def]
    return b if b > a or (b != b and a == a) else a


def _event(t, x):  # type: ignore[no-untyped-def]
    return t, x


def _earlier(p, q):  # type: ignore[no-untyped-def]
    return q if q[0] < p[0] else p


def _later(p, q):  # type: ignore[no-untyped-def]
    return q if q[0] >= p[0] else p


def _ranked(by, t, x):  # type: ignore[no-untyped-def]
    return by, t, x


def _least(p, q):  # type: ignore[no-untyped-def]
    if q[0] < p[0] or (p[0] != p[0] and q[0] == q[0]):
        return q
    if p[0] < q[0] or (q[0] != q[0] and p[0] == p[0]):
        return p
    return q if q[1] < p[1] else p


def _most(p, q):  # type: ignore[no-untyped-def]
    if q[0] > p[0] or (q[0] != q[0] and p[0] == p[0]):
        return q
    if p[0] > q[0] or (p[0] != p[0] and q[0] == q[0]):
        return p
    return q if q[1] < p[1] else p


def _held(name: str, column: str, kinds: Kinds) -> Component:
    """A component that holds values of a column."""
    floating = kinds[column] is Kind.FLOAT
    return Component(name, "float64" if floating else "int64", column=column)


def _bottom(kind: Kind) -> Any:
    """A value that is less than or equal to every other."""
    return -np.inf if kind is Kind.FLOAT else ALWAYS


def _top(kind: Kind) -> Any:
    """A value that is greater than or equal to every other."""
    return np.nan if kind is Kind.FLOAT else NEVER


@dataclass(frozen=True, repr=False)
class Pick(Constant):
    """One value of a column."""

    result_column: ClassVar[int | None] = 0

    def result_type(self, types: Types) -> pa.DataType:
        return plain_type(types[self.columns[0]])

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        return merged[0][-1], n > 0


@dataclass(frozen=True, repr=False)
class Extreme(Pick):
    """The smallest or the greatest value. Zeros are equal, so a zero comes out without a sign."""

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        values, counted = merged[0][-1], n > 0
        return (values + 0.0 if kinds[self.columns[0]] is Kind.FLOAT else values), counted


@dataclass(frozen=True, repr=False)
class Min(Extreme):
    name: ClassVar[str] = "min"
    laws: ClassVar[Laws] = Laws(idempotent=True)

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        (column,) = self.columns
        held, top = _held("value", column, kinds), _top(kinds[column])
        return (
            Operator("min", (Input(column),), (held,), (top,), _smaller, _itself, selective=True),
        )


@dataclass(frozen=True, repr=False)
class Max(Extreme):
    name: ClassVar[str] = "max"
    laws: ClassVar[Laws] = Laws(idempotent=True)

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        (column,) = self.columns
        held, bottom = _held("value", column, kinds), _bottom(kinds[column])
        return (
            Operator(
                "max", (Input(column),), (held,), (bottom,), _greater, _itself, selective=True
            ),
        )


@dataclass(frozen=True, repr=False)
class Edge(Pick):
    """The first or the last value in total order."""

    laws: ClassVar[Laws] = Laws(commutative=False, idempotent=True, order_sensitive=True)
    last: ClassVar[bool] = False

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        (column,) = self.columns
        return (
            Operator(
                self.name,
                (Input(TIME), Input(column)),
                (Component("time", "int64", column=TIME), _held("value", column, kinds)),
                (ALWAYS if self.last else NEVER, 0),
                _later if self.last else _earlier,
                _event,
                bare=False,
                selective=True,
            ),
        )


@dataclass(frozen=True, repr=False)
class First(Edge):
    name: ClassVar[str] = "first"


@dataclass(frozen=True, repr=False)
class Last(Edge):
    name: ClassVar[str] = "last"
    last: ClassVar[bool] = True


@dataclass(frozen=True, repr=False)
class Arg(Pick):
    """The value of one column where another is smallest or greatest."""

    laws: ClassVar[Laws] = Laws(commutative=False, idempotent=True, order_sensitive=True)
    greatest: ClassVar[bool] = False

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        column, by = self.columns
        return (
            Operator(
                self.name,
                (Input(by), Input(TIME), Input(column)),
                (
                    _held("by", by, kinds),
                    Component("time", "int64", column=TIME),
                    _held("value", column, kinds),
                ),
                (_bottom(kinds[by]) if self.greatest else _top(kinds[by]), NEVER, 0),
                _most if self.greatest else _least,
                _ranked,
                bare=False,
                selective=True,
            ),
        )


@dataclass(frozen=True, repr=False)
class ArgMin(Arg):
    name: ClassVar[str] = "arg_min"


@dataclass(frozen=True, repr=False)
class ArgMax(Arg):
    name: ClassVar[str] = "arg_max"
    greatest: ClassVar[bool] = True


def min(column: str) -> Min:
    """The smallest value.

    Args:
        column: The column to compare. NaN is greater than every number, so it is returned only if
            there is nothing else.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"low": A.min("load")}, time="t")
        >>> query.over(events)[0]["low"]
        3
    """
    return Min((column,))


def max(column: str) -> Max:
    """The greatest value.

    Args:
        column: The column to compare. NaN is greater than every number.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"peak": A.max("load")}, time="t")
        >>> query.over(events)[0]["peak"]
        7
    """
    return Max((column,))


def first(column: str) -> First:
    """The earliest value that is not null.

    Args:
        column: The column to read, in total order.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"opening": A.first("load")}, time="t")
        >>> query.over(events)[0]["opening"]
        5
    """
    return First((column,))


def last(column: str) -> Last:
    """The latest value that is not null.

    Args:
        column: The column to read, in total order.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"closing": A.last("load")}, time="t")
        >>> query.over(events)[0]["closing"]
        7
    """
    return Last((column,))


def arg_min(column: str, by: str) -> ArgMin:
    """The value of one column where another is smallest.

    Args:
        column: The column to read.
        by: The column to compare; of several events with its smallest value, the earliest counts.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5, "plug": "a"}, {"t": 2, "load": 3, "plug": "b"}]
        >>> query = Query(W.tumbling(10), {"quiet": A.arg_min("plug", by="load")}, time="t")
        >>> query.over(events)[0]["quiet"]
        'b'
    """
    return ArgMin((column, by))


def arg_max(column: str, by: str) -> ArgMax:
    """The value of one column where another is greatest.

    Args:
        column: The column to read.
        by: The column to compare; of several events with its greatest value, the earliest counts.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5, "plug": "a"}, {"t": 2, "load": 3, "plug": "b"}]
        >>> query = Query(W.tumbling(10), {"busy": A.arg_max("plug", by="load")}, time="t")
        >>> query.over(events)[0]["busy"]
        'a'
    """
    return ArgMax((column, by))
