"""linear_regression: the line y = slope * x + intercept that fits a window best.

The partial keeps means and centred sums, merged as variances are, because raw sums of products
cancel badly when x is a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from paneflow.aggregates.aggregate import Constant, Kinds, Lowered, Merged, Types
from paneflow.aggregates.operator import Array, Component, Input, Operator
from paneflow.aggregates.values import Kind


def _point(y, x):  # type: ignore[no-untyped-def]
    return 1, y, x, 0.0, 0.0


def _merge_points(p, q):  # type: ignore[no-untyped-def]
    if p[0] == 0:
        return q
    if q[0] == 0:
        return p
    n = p[0] + q[0]
    share = q[0] / n
    dy = q[1] - p[1]
    dx = q[2] - p[2]
    weight = p[0] * share
    return (
        n,
        p[1] + dy * share,
        p[2] + dx * share,
        p[3] + q[3] + dx * dx * weight,
        p[4] + q[4] + dx * dy * weight,
    )


@dataclass(frozen=True)
class LinearRegression(Constant):
    name: ClassVar[str] = "linear_regression"
    scalar: ClassVar[bool] = False
    accepts: ClassVar[tuple[Kind, ...]] = (Kind.INTEGER, Kind.FLOAT)

    def result_type(self, types: Types) -> pa.DataType:
        return pa.struct([("slope", pa.float64()), ("intercept", pa.float64())])

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        y, x = self.columns
        names = ("mean_y", "mean_x", "squares_x", "products")
        return (
            Operator(
                self.name,
                (Input(y, "float"), Input(x, "float")),
                (Component("n", "int64"), *(Component(name, "float64") for name in names)),
                (0, 0.0, 0.0, 0.0, 0.0),
                _merge_points,
                _point,
                bare=False,
            ),
        )

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        _, mean_y, mean_x, squares_x, products = merged[0]
        valid = (n > 1) & (squares_x != 0.0)
        slope = products / np.where(valid, squares_x, 1.0)
        fields = [pa.array(slope), pa.array(mean_y - slope * mean_x)]
        line = pa.StructArray.from_arrays(
            fields, names=["slope", "intercept"], mask=pa.array(~valid)
        )
        return line, None


def linear_regression(y: str, x: str) -> LinearRegression:
    """Slope and intercept of the least-squares line of y over x.

    Null with fewer than two events, or if every x is the same.

    >>> print(linear_regression("load", "hour"))
    linear_regression(load, hour)
    """
    return LinearRegression((y, x))
