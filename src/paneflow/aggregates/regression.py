"""linear_regression: the line y = slope * x + intercept that fits a window best.

The partial keeps means and centred sums, which are merged as variances are
(`_numerics/deviation.py`), because raw sums of products cancel badly when x is a time. Each mean
has a rest with the bits that do not fit into it, and whole numbers beyond 2**53 are read in two
parts, so that neither is rounded before deviations are computed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from paneflow.aggregates.aggregate import Constant, Kinds, Lowered, Merged, Types
from paneflow.aggregates.operator import Array, Component, Input, Operator
from paneflow.aggregates.values import Kind

BLOCK = 1024
"""Events whose deviations are added one by one; blocks are merged."""
Partial = tuple[int, float, float, float, float, float, float]
IDENTITY = (0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def _real(value):  # type: ignore[no-untyped-def]
    """A value as two floats whose sum it is; NaN for what has no deviation."""
    return value + (value - value), 0.0


def _whole(value):  # type: ignore[no-untyped-def]
    return float(value >> 32) * 4294967296.0, float(value & 0xFFFFFFFF)


def _combine(p: Partial, q: Partial) -> Partial:
    if p[0] == 0:
        return q
    if q[0] == 0:
        return p
    n = p[0] + q[0]
    share = q[0] / n
    dy = (q[1] - p[1]) + (q[2] - p[2])
    dx = (q[3] - p[3]) + (q[4] - p[4])
    step_y, step_x = dy * share, dx * share
    mean_y, mean_x = p[1] + step_y, p[3] + step_x
    weighted = step_x * p[0]
    return (
        n,
        mean_y,
        p[2] + (step_y - (mean_y - p[1])),
        mean_x,
        p[4] + (step_x - (mean_x - p[3])),
        p[5] + q[5] + weighted * dx,
        p[6] + q[6] + weighted * dy,
    )


@functools.cache
def _functions(
    of_y: Callable[..., Any], of_x: Callable[..., Any]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Lift and gather, for columns whose values are split into two floats in the given ways."""

    def lift(y, x):  # type: ignore[no-untyped-def]
        (y0, y1), (x0, x1) = of_y(y), of_x(x)
        mean_y, mean_x = y0 + y1, x0 + x1
        none = mean_x - mean_x
        rest_y, rest_x = y1 - (mean_y - y0), x1 - (mean_x - x0)
        return 1, mean_y, rest_y, mean_x, rest_x, none, none + (mean_y - mean_y)

    def gather(first, end, ys, xs):  # type: ignore[no-untyped-def]
        p = IDENTITY
        for a in range(first, end, BLOCK):
            b = min(a + BLOCK, end)
            # Twice over a block: for its mean, as seen from its first event, then from the mean.
            (y0, y1), (x0, x1) = of_y(ys[a]), of_x(xs[a])
            sum_y, sum_x = 0.0, 0.0
            for i in range(a, b):
                (v0, v1), (u0, u1) = of_y(ys[i]), of_x(xs[i])
                sum_y += (v0 - y0) + (v1 - y1)
                sum_x += (u0 - x0) + (u1 - x1)
            off_y, off_x = sum_y / (b - a), sum_x / (b - a)
            left_y, left_x, squares, products = 0.0, 0.0, 0.0, 0.0
            for i in range(a, b):
                (v0, v1), (u0, u1) = of_y(ys[i]), of_x(xs[i])
                dy = (v0 - y0) + (v1 - y1) - off_y
                dx = (u0 - x0) + (u1 - x1) - off_x
                left_y += dy
                left_x += dx
                squares += dx * dx
                products += dx * dy
            squares -= left_x * left_x / (b - a)
            products -= left_x * left_y / (b - a)
            off_y += left_y / (b - a)
            off_x += left_x / (b - a)
            # The first event, then the mean, each as a float and a rest.
            start_y, start_x = y0 + y1, x0 + x1
            mean_y, mean_x = start_y + off_y, start_x + off_x
            rest_y = (off_y - (mean_y - start_y)) + (y1 - (start_y - y0))
            rest_x = (off_x - (mean_x - start_x)) + (x1 - (start_x - x0))
            p = _combine(p, (b - a, mean_y, rest_y, mean_x, rest_x, squares, products))
        return p

    return lift, gather


@dataclass(frozen=True, repr=False)
class LinearRegression(Constant):
    name: ClassVar[str] = "linear_regression"
    scalar: ClassVar[bool] = False
    form: ClassVar[int] = 2
    accepts: ClassVar[tuple[Kind, ...]] = (Kind.INTEGER, Kind.FLOAT)

    def result_type(self, types: Types) -> pa.DataType:
        return pa.struct([("slope", pa.float64()), ("intercept", pa.float64())])

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        names = ("mean_y", "rest_y", "mean_x", "rest_x", "squares_x", "products")
        of_y, of_x = (_whole if kinds[c] is Kind.INTEGER else _real for c in self.columns)
        lift, gather = _functions(of_y, of_x)
        return (
            Operator(
                self.name,
                tuple(Input(column) for column in self.columns),
                (Component("n", "int64"), *(Component(name, "float64") for name in names)),
                IDENTITY,
                _combine,
                lift,
                gather=gather,
                bare=False,
            ),
        )

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        _, mean_y, rest_y, mean_x, rest_x, squares, products = merged[0]
        valid = (n > 1) & (squares != 0.0)
        with np.errstate(all="ignore"):
            slope = products / np.where(valid, squares, 1.0)
            slope[np.isinf(squares) | np.isinf(products)] = np.nan
            intercept = mean_y - slope * mean_x + (rest_y - slope * rest_x)
        line = pa.StructArray.from_arrays(
            [pa.array(slope), pa.array(intercept)],
            names=["slope", "intercept"],
            mask=pa.array(~valid),
        )
        return line, None


def linear_regression(y: str, x: str) -> LinearRegression:
    """The least-squares line of one column over another.

    The result is a struct of `slope` and `intercept`. It is null with fewer than two events, or if
    all x are the same (or so close that the square of their difference is zero in float64). Both
    are NaN if a value is infinite or NaN, or if squares or products of deviations do not fit into
    float64.

    Args:
        y: The column to explain.
        x: The column that explains it.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "hour": 0, "load": 1}, {"t": 2, "hour": 3, "load": 7}]
        >>> query = Query(W.tumbling(10), {"line": A.linear_regression("load", "hour")}, time="t")
        >>> query.over(events)[0]["line"]
        {'slope': 2.0, 'intercept': 1.0}
    """
    return LinearRegression((y, x))
