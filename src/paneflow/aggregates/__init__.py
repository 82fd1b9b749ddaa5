"""What is computed over a window.

Each function here makes an aggregate of one or more columns; docs/semantics.md defines exactly what
each computes. Nulls are skipped, and NaN is greater than every number.

>>> from paneflow import aggregates as A
>>> A.quantile("load", 0.99)
quantile('load', 0.99)
"""

from paneflow.aggregates._bloom import contains as bloom_contains
from paneflow.aggregates.aggregate import Aggregate
from paneflow.aggregates.counting import count
from paneflow.aggregates.defined import SlowAggregateWarning, define
from paneflow.aggregates.extremes import arg_max, arg_min, first, last, max, min
from paneflow.aggregates.holistic import distinct, median, mode, quantile, quantiles, top_k
from paneflow.aggregates.laws import Laws
from paneflow.aggregates.regression import linear_regression
from paneflow.aggregates.sequences import apply, collect, concat
from paneflow.aggregates.sketches import (
    approx_distinct,
    approx_quantile,
    bloom_filter,
    moment_sketch,
)
from paneflow.aggregates.spread import std, std_pop, var, var_pop
from paneflow.aggregates.sums import geometric_mean, mean, product, sum

__all__ = [
    "Aggregate",
    "Laws",
    "SlowAggregateWarning",
    "apply",
    "approx_distinct",
    "approx_quantile",
    "arg_max",
    "arg_min",
    "bloom_contains",
    "bloom_filter",
    "collect",
    "concat",
    "count",
    "define",
    "distinct",
    "first",
    "geometric_mean",
    "last",
    "linear_regression",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "moment_sketch",
    "product",
    "quantile",
    "quantiles",
    "std",
    "std_pop",
    "sum",
    "top_k",
    "var",
    "var_pop",
]


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
