"""Aggregates built on sums: sum, mean, product, variance and its relatives, geometric mean.

Integer sums are exact: a partial holds two 64-bit limbs, so no intermediate sum can overflow,
and only a window whose true sum leaves int64 is an error. Variance keeps the sum of squared
deviations, merged by Chan's formula, since sums of squares lose everything when the mean is
large. It carries the sum and the count with it, so sum and mean of the same column come free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from paneflow.aggregates import _exact_sum
from paneflow.aggregates.aggregate import Constant, Kinds, Lowered, Merged, Types
from paneflow.aggregates.laws import Laws
from paneflow.aggregates.operator import Array, Component, Input, Operator
from paneflow.aggregates.values import Kind, plain_type
from paneflow.errors import InputError, QueryError

NUMERIC = (Kind.INTEGER, Kind.FLOAT)


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


def _lift_deviation(x):  # type: ignore[no-untyped-def]
    # x - x is zero, but NaN for what has no deviation: infinities and NaN.
    return 1, x, x - x


def _absorb_deviation(p, x):  # type: ignore[no-untyped-def]
    n, total, squares = p
    if n == 0:
        return 1, x, x - x
    # Chan's formula for one more value, from sums rather than means: n+1 values in all.
    gap = n * x - total
    return n + 1, total + x, squares + gap * gap / (n * (n + 1.0)) + (x - x)


def _combine_deviation(p, q):  # type: ignore[no-untyped-def]
    if p[0] == 0:
        return q
    if q[0] == 0:
        return p
    gap = q[1] / q[0] - p[1] / p[0]
    n = p[0] + q[0]
    return n, p[1] + q[1], p[2] + q[2] + gap * gap * (p[0] * (q[0] / n))


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
        (Component("limbs", "int64", _exact_sum.WIDTH),),
        (0,),
        _exact_sum.combine,
        absorb=_exact_sum.absorb,
    )


def deviation(column: str) -> Operator:
    """Count, sum and sum of squared deviations from the mean."""
    return Operator(
        "deviation",
        (Input(column, "float"),),
        (Component("n", "int64"), Component("sum", "float64"), Component("squares", "float64")),
        (0, 0.0, 0.0),
        _combine_deviation,
        _lift_deviation,
        _absorb_deviation,
        bare=False,
        provides=(("float_sum", (1,)),),
    )


def whole_sums(high: Array, low: Array) -> tuple[Array, Array]:
    """Limbs as int64 sums, and which of them fit."""
    carried = high + (low >> 32)
    fits = (carried >= -(1 << 31)) & (carried < (1 << 31))
    return (carried << 32) | (low & 0xFFFFFFFF), fits


def big_sum(high: int, low: int) -> int:
    """Limbs as one Python integer, for sums that leave int64."""
    return (int(high) << 32) + int(low)


@dataclass(frozen=True)
class Sum(Constant):
    exact: bool = False

    name: ClassVar[str] = "sum"
    laws: ClassVar[Laws] = Laws(invertible=True)
    accepts: ClassVar[tuple[Kind, ...]] = NUMERIC

    def result_type(self, types: Types) -> pa.DataType:
        given = plain_type(types[self.columns[0]])
        return pa.int64() if pa.types.is_integer(given) else pa.float64()

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        (column,) = self.columns
        if kinds[column] is Kind.INTEGER:
            return (integer_sum(column),)
        return (exact_float_sum(column) if self.exact else float_sum(column),)

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        (parts,) = merged
        if kinds[self.columns[0]] is Kind.INTEGER:
            sums, fits = whole_sums(*parts)
            if not fits.all():
                at = int(np.argmin(fits))
                raise InputError(
                    f"{self}: a window's sum is {big_sum(parts[0][at], parts[1][at])}, which does "
                    f"not fit into int64: cast {self.columns[0]!r} to float64, or divide it first"
                )
            return sums, n > 0
        return (_exact_sum.lower_rows(parts[0]) if self.exact else parts[0]), n > 0


@dataclass(frozen=True)
class Mean(Constant):
    name: ClassVar[str] = "mean"
    laws: ClassVar[Laws] = Laws(invertible=True)
    accepts: ClassVar[tuple[Kind, ...]] = NUMERIC

    def result_type(self, types: Types) -> pa.DataType:
        return pa.float64()

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        (column,) = self.columns
        return (integer_sum(column) if kinds[column] is Kind.INTEGER else float_sum(column),)

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        (parts,) = merged
        counted = n > 0
        if kinds[self.columns[0]] is Kind.INTEGER:
            sums, fits = whole_sums(*parts)
            totals = sums.astype(np.float64)
            for at in np.flatnonzero(~fits):
                totals[at] = float(big_sum(parts[0][at], parts[1][at]))
        else:
            totals = parts[0]
        return totals / np.maximum(n, 1), counted


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Spread(Constant):
    """Variance and standard deviation, of a sample or of a population."""

    accepts: ClassVar[tuple[Kind, ...]] = NUMERIC
    taken: ClassVar[int] = 1
    root: ClassVar[bool] = False

    def result_type(self, types: Types) -> pa.DataType:
        return pa.float64()

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        return (deviation(self.columns[0]),)

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        squares = merged[0][2]
        spread = squares / np.maximum(n - self.taken, 1)
        return (np.sqrt(spread) if self.root else spread), n > self.taken


@dataclass(frozen=True)
class Var(Spread):
    name: ClassVar[str] = "var"


@dataclass(frozen=True)
class Std(Spread):
    name: ClassVar[str] = "std"
    root: ClassVar[bool] = True


@dataclass(frozen=True)
class VarPop(Spread):
    name: ClassVar[str] = "var_pop"
    taken: ClassVar[int] = 0


@dataclass(frozen=True)
class StdPop(Spread):
    name: ClassVar[str] = "std_pop"
    taken: ClassVar[int] = 0
    root: ClassVar[bool] = True


def sum(column: str, exact: bool = False) -> Sum:
    """The sum: exact int64 for integers, float64 for floats.

    `exact=True` rounds a float sum once, correctly, so it is the same on every engine.

    >>> print(sum("load"))
    sum(load)
    """
    if not isinstance(exact, bool):
        raise QueryError(f"sum: exact must be True or False, not {exact!r}")
    return Sum((column,), exact=exact)


def mean(column: str) -> Mean:
    """The arithmetic mean, in float64.

    >>> print(mean("load"))
    mean(load)
    """
    return Mean((column,))


def product(column: str) -> Product:
    """The product, in float64."""
    return Product((column,))


def geometric_mean(column: str) -> GeometricMean:
    """The n-th root of the product of n values; NaN if a value is negative."""
    return GeometricMean((column,))


def var(column: str) -> Var:
    """The sample variance; null for fewer than two values."""
    return Var((column,))


def std(column: str) -> Std:
    """The sample standard deviation; null for fewer than two values."""
    return Std((column,))


def var_pop(column: str) -> VarPop:
    """The variance of the window as a whole population."""
    return VarPop((column,))


def std_pop(column: str) -> StdPop:
    """The standard deviation of the window as a whole population."""
    return StdPop((column,))
