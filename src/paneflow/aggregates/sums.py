"""Aggregates built on sums: sum, mean, product, geometric mean.

Integer sums are exact: a partial holds two 64-bit limbs, so no intermediate sum can overflow,
and only a window whose true sum leaves int64 is an error. Booleans are added as 0 and 1, and
decimals as the integers that their digits form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from paneflow.aggregates._numerics import decimals, exact_sum
from paneflow.aggregates.aggregate import Constant, Kinds, Lowered, Merged, Types
from paneflow.aggregates.laws import Laws
from paneflow.aggregates.operator import Array, Component, Input, Operator
from paneflow.aggregates.values import ADDED, NUMERIC, Kind, kind_of, plain_type
from paneflow.errors import InputError, QueryError


def _itself(x):  # type: ignore[no-untyped-def]
    return x


def _add(a, b):  # type: ignore[no-untyped-def]
    return a + b


def _split(x):  # type: ignore[no-untyped-def]
    return x >> 32, x & 0xFFFFFFFF


def _add_limbs(a, b):  # type: ignore[no-untyped-def]
    return a[0] + b[0], a[1] + b[1]


def _subtract_limbs(whole, part):  # type: ignore[no-untyped-def]
    return whole[0] - part[0], whole[1] - part[1]


def _multiply(a, b):  # type: ignore[no-untyped-def]
    return a * b


def _logarithm(x):  # type: ignore[no-untyped-def]
    if x > 0.0:
        return math.log(x)
    return -math.inf if x == 0.0 else math.nan


def integer_sum(column: str) -> Operator:
    """The exact sum of an integer column, as high and low limbs."""
    return Operator(
        "integer_sum",
        (Input(column),),
        (Component("high", "int64"), Component("low", "int64")),
        (0, 0),
        _add_limbs,
        _split,
        invert=_subtract_limbs,
        bare=False,
    )


def float_sum(column: str) -> Operator:
    """The sum of a column in float64."""
    return Operator(
        "float_sum",
        (Input(column, "float"),),
        (Component("sum", "float64"),),
        (0.0,),
        _add,
        _itself,
    )


def exact_float_sum(column: str) -> Operator:
    """The sum of a float column without any rounding."""
    return Operator(
        "exact_float_sum",
        (Input(column, "float"),),
        (Component("limbs", "int64", exact_sum.WIDTH),),
        (0,),
        exact_sum.combine,
        absorb=exact_sum.absorb,
    )


def whole_sums(high: Array, low: Array) -> tuple[Array, Array]:
    """Limbs as int64 sums, and whether each of them fits."""
    carried = high + (low >> 32)
    fits = (carried >= -(1 << 31)) & (carried < (1 << 31))
    return (carried << 32) | (low & 0xFFFFFFFF), fits


def big_sum(high: int, low: int) -> int:
    """Limbs as one Python integer, for sums that do not fit into int64."""
    return (int(high) << 32) + int(low)


@dataclass(frozen=True, repr=False)
class Sum(Constant):
    exact: bool = False

    name: ClassVar[str] = "sum"
    laws: ClassVar[Laws] = Laws(invertible=True)
    accepts: ClassVar[tuple[Kind, ...]] = ADDED

    def result_type(self, types: Types) -> pa.DataType:
        (column,) = self.columns
        given = plain_type(types[column])
        if pa.types.is_decimal(given):
            return decimals.sum_type(given.scale)
        return pa.int64() if kind_of(given, column).whole else pa.float64()

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        (column,) = self.columns
        if kinds[column].whole:
            return (integer_sum(column),)
        return (exact_float_sum(column) if self.exact else float_sum(column),)

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        (parts,) = merged
        kind = kinds[self.columns[0]]
        if kind.family is Kind.DECIMAL:
            return decimals.from_limbs(parts, decimals.sum_type(kind.scale), n > 0), None
        if kind.whole:
            sums, fits = whole_sums(*parts)
            if not fits.all():
                at = int(np.argmin(fits))
                raise InputError(
                    f"{self}: a window's sum is {big_sum(parts[0][at], parts[1][at])}, which does "
                    f"not fit into int64: cast {self.columns[0]!r} to float64, or divide it first"
                )
            return sums, n > 0
        return (exact_sum.lower_rows(parts[0]) if self.exact else parts[0]), n > 0


@dataclass(frozen=True, repr=False)
class Mean(Constant):
    name: ClassVar[str] = "mean"
    laws: ClassVar[Laws] = Laws(invertible=True)
    accepts: ClassVar[tuple[Kind, ...]] = ADDED

    def result_type(self, types: Types) -> pa.DataType:
        return pa.float64()

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        (column,) = self.columns
        return (integer_sum(column) if kinds[column].whole else float_sum(column),)

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        (parts,) = merged
        counted = n > 0
        kind = kinds[self.columns[0]]
        if kind.whole:
            sums, fits = whole_sums(*parts)
            totals = sums.astype(np.float64)
            for at in np.flatnonzero(~fits):
                totals[at] = float(big_sum(parts[0][at], parts[1][at]))
        else:
            totals = parts[0]
        if kind.scale:
            return totals / (np.maximum(n, 1) * decimals.power_of_ten(kind.scale)), counted
        return totals / np.maximum(n, 1), counted


@dataclass(frozen=True, repr=False)
class Product(Constant):
    name: ClassVar[str] = "product"
    accepts: ClassVar[tuple[Kind, ...]] = NUMERIC

    def result_type(self, types: Types) -> pa.DataType:
        return pa.float64()

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        component = Component("product", "float64")
        inputs = (Input(self.columns[0], "float"),)
        return (Operator("product", inputs, (component,), (1.0,), _multiply, _itself),)

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        return merged[0][0], n > 0


@dataclass(frozen=True, repr=False)
class GeometricMean(Constant):
    name: ClassVar[str] = "geometric_mean"
    accepts: ClassVar[tuple[Kind, ...]] = NUMERIC

    def result_type(self, types: Types) -> pa.DataType:
        return pa.float64()

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        component = Component("logs", "float64")
        inputs = (Input(self.columns[0], "float"),)
        return (Operator("log_sum", inputs, (component,), (0.0,), _add, _logarithm),)

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        return np.exp(merged[0][0] / np.maximum(n, 1)), n > 0


def sum(column: str, exact: bool = False) -> Sum:
    """The sum: exact for integers, booleans and decimals, in float64 for floats.

    Args:
        column: A column of numbers, or of booleans, which count as 0 and 1. An integer sum that
            does not fit into int64 is an error; a decimal sum has 38 digits.
        exact: Round a float sum only once, correctly, so that it is the same to the last bit on
            every engine.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"total": A.sum("load")}, time="t")
        >>> query.over(events)[0]["total"]
        15
    """
    if not isinstance(exact, bool):
        raise QueryError(f"sum: exact must be True or False, not {exact!r}")
    return Sum((column,), exact=exact)


def mean(column: str) -> Mean:
    """The arithmetic mean, in float64.

    Args:
        column: A column of numbers, or of booleans, whose mean is the share that is true.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"mean": A.mean("load")}, time="t")
        >>> query.over(events)[0]["mean"]
        5.0
    """
    return Mean((column,))


def product(column: str) -> Product:
    """The product, in float64.

    Args:
        column: A column of numbers.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"product": A.product("load")}, time="t")
        >>> query.over(events)[0]["product"]
        105.0
    """
    return Product((column,))


def geometric_mean(column: str) -> GeometricMean:
    """The geometric mean: the n-th root of the product of n values.

    Args:
        column: A column of numbers; if one of them is negative, the mean is NaN.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "growth": 1.0}, {"t": 2, "growth": 4.0}]
        >>> query = Query(W.tumbling(10), {"mean": A.geometric_mean("growth")}, time="t")
        >>> round(query.over(events)[0]["mean"], 9)
        2.0
    """
    return GeometricMean((column,))
