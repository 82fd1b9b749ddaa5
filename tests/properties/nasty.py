"""Columns that break careless arithmetic, and the moments they have in exact arithmetic.

How far a result may be from the exact one, with u = 2**-53 the rounding of a float64:

- var, std and their relatives: 64 u of the exact value, however events were sliced and merged.
  Integers: 4 u. Exactly zero for equal values.
- sum, mean: n u of the sum of absolute values, as float sums have it; the exact sum: u.
- slope: (64 + 4 sqrt(n)) u of the largest slope that columns of these spreads can have; intercept:
  as much of what is subtracted there.
- geometric mean: n u of the mean absolute logarithm, and 4 u.

And half of the smallest float, 2**-1074, which nothing can be closer to than that.
"""

from __future__ import annotations

import functools
import math
import operator
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A
from paneflow.windows import Window

U = Fraction(1, 2**53)
LEAST = Fraction(1, 2**1074)
MOST = 2**1024 - 2**970

SPREADS: dict[str, tuple[int, bool]] = {
    "var": (1, False),
    "std": (1, True),
    "var_pop": (0, False),
    "std_pop": (0, True),
}
MOMENTS: dict[str, A.Aggregate] = {
    "var": A.var("x"),
    "std": A.std("x"),
    "var_pop": A.var_pop("x"),
    "std_pop": A.std_pop("x"),
    "mean": A.mean("x"),
    "exact": A.mean("i"),
    "whole_var": A.var("i"),
    "whole_std": A.std("i"),
    "line": A.linear_regression("y", "x"),
    "whole_line": A.linear_regression("y", "i"),
}

Column = Callable[[random.Random, int], list[Any]]

FLOATS: dict[str, Column] = {
    "near a large mean": lambda r, n: [1.7e15 + r.randint(0, 999) for _ in range(n)],
    "one last bit apart": lambda r, n: [1e9 + 0.1 + r.choice([0, 2**-23]) for _ in range(n)],
    "constant": lambda r, n: [r.choice([1e9 + 0.1, 0.1, -1e300, 5e-324, 0.0])] * n,
    "consecutive from 2**53": lambda r, n: [2.0**53 + 2 * i for i in range(n)],
    "zeros of both signs": lambda r, n: [r.choice([0.0, -0.0]) for _ in range(n)],
    "denormals": lambda r, n: [r.randint(-9, 9) * 5e-324 for _ in range(n)],
    "squares too small": lambda r, n: [r.uniform(-1, 1) * 1e-170 for _ in range(n)],
    "squares too large": lambda r, n: [r.uniform(-1, 1) * 1e200 for _ in range(n)],
    "the largest": lambda r, n: [r.choice([1.7e308, -1.7e308]) for _ in range(n)],
    "near the largest": lambda r, n: [1.7e308 + r.randint(0, 9) * 2.0**971 for _ in range(n)],
    "all sizes": lambda r, n: [
        r.choice([-1, 1]) * math.ldexp(r.random(), r.randint(-1074, 1023)) for _ in range(n)
    ],
    "outliers": lambda r, n: [
        r.choice([1e12, -1e15]) if r.random() < 0.05 else 1e6 + r.gauss(0, 1e-3) for _ in range(n)
    ],
    "a far first": lambda r, n: [1e8] + [0.1 + r.randint(0, 3) * 1e-9 for _ in range(n - 1)],
    "a slope": lambda r, n: [1e10 * i + r.random() for i in range(n)],
    "ordinary": lambda r, n: [r.gauss(100, 5) for _ in range(n)],
    "infinities": lambda r, n: [
        r.choice([math.inf, -math.inf, math.nan]) if r.random() < 0.05 else r.random()
        for _ in range(n)
    ],
}
INTEGERS: dict[str, Column] = {
    "near 2**60": lambda r, n: [2**60 + r.randint(0, 9) for _ in range(n)],
    "near the least": lambda r, n: [-(2**63) + r.randint(0, 1) for _ in range(n)],
    "all": lambda r, n: [r.randint(-(2**63), 2**63 - 1) for _ in range(n)],
    "both ends": lambda r, n: [r.choice([-(2**63), 2**63 - 1]) for _ in range(n)],
    "constant": lambda r, n: [r.choice([2**63 - 1, -1, 0, 2**53 + 1])] * n,
    "around zero": lambda r, n: [r.randint(-3, 3) for _ in range(n)],
    "around 2**32": lambda r, n: [2**32 + r.randint(-2, 2) for _ in range(n)],
}


def nasty_table(r: random.Random, floats: str, integers: str, n: int, keys: int = 2) -> pa.Table:
    """Events in order of time; y follows x where it can, with some noise."""
    x = FLOATS[floats](r, n)
    y = [2.5 * v + r.random() if math.isfinite(2.5 * v) else r.random() for v in x]
    return pa.table(
        {
            "t": sorted(r.randint(0, n) for _ in range(n)),
            "k": [r.randrange(keys) for _ in range(n)],
            "x": pa.array(x, pa.float64()),
            "y": pa.array(y if r.random() < 0.5 else r.sample(y, n), pa.float64()),
            "i": pa.array(INTEGERS[integers](r, n), pa.int64()),
        }
    )


def assert_moments(windows: dict[str, Window], table: pa.Table, rows: pa.Table) -> None:
    """Rows of a query for MOMENTS, by key k, against exact arithmetic over their events."""
    inside = pf.Query(
        windows, {name: A.collect(name) for name in ("x", "y", "i")}, key="k", time="t"
    ).over(table, engine="oracle")
    assert rows.num_rows == inside.num_rows > 0
    for row, events in zip(rows.to_pylist(), inside.to_pylist(), strict=True):
        assert (row["window"], row["k"], row["seq"]) == tuple(
            events[name] for name in ("window", "k", "seq")
        )
        for name, aggregate in MOMENTS.items():
            columns = [events[column] for column in aggregate.columns]
            wrong = complaint(aggregate, row[name], columns)
            assert wrong is None, f"{name} = {row[name]!r}: {wrong}\n{columns}"


def complaint(aggregate: A.Aggregate, got: Any, columns: list[list[Any]]) -> str | None:
    """Why a result cannot be that of an aggregate over these values; None if it can."""
    if aggregate.name == "linear_regression":
        return _line_complaint(got, *columns)
    (values,) = columns
    n = len(values)
    if aggregate.name == "mean":
        if not all(map(math.isfinite, values)):
            return None if not math.isfinite(got) else "not all values are finite"
        mean, _ = exact_moments(tuple(values), tuple(values))
        size = n * exact_moments(tuple(map(abs, values)), tuple(values))[0]
        if size > MOST and isinstance(values[0], float):
            return None  # a float sum may be infinite on the way
        rounding = n * U * size / n if isinstance(values[0], float) else 2 * U * size / n
        return _far(got, mean, rounding)
    taken, root = SPREADS[aggregate.name]
    if n <= taken:
        return None if got is None else "too few values"
    if not all(map(math.isfinite, values)):
        return None if math.isnan(got) else "not all values are finite"
    variance = exact_moments(tuple(values), tuple(values))[1] / (n - taken)
    if variance == 0:
        return None if got == 0.0 else "all values are equal"
    share = (64 if isinstance(values[0], float) else 4) * U
    if not root:
        return _far(got, variance, variance * share)
    if math.isinf(got):
        return None if variance > Fraction(MOST) ** 2 else "the deviation is finite"
    # The root lies between two numbers if its square lies between their squares.
    low = max(Fraction(got) / (1 + share) - LEAST, Fraction(0))
    high = Fraction(got) / (1 - share) + LEAST
    return None if low**2 <= variance <= high**2 else f"its square is {float_of(variance)}"


def _line_complaint(got: Any, ys: list[float], xs: list[Any]) -> str | None:
    if len(xs) < 2:
        return None if got is None else "too few values"
    if not all(map(math.isfinite, xs)):
        return None if math.isnan(got["slope"]) else "not all values are finite"
    y, x = tuple(ys), tuple(xs)
    mean_x, squares = exact_moments(x, x)
    if squares == 0:
        return None if got is None else "all x are equal"
    mean_y, of_y = exact_moments(y, y)
    if not Fraction(1, 2**900) < squares < 2**900 or not of_y < 2**900:
        return None  # said in the docs: null or NaN, or a line
    if of_y and of_y < Fraction(1, 2**900):
        return None
    _, products = exact_moments(x, y)
    slope = products / squares
    most = _root(of_y) / _root(squares)
    most = max(most, abs(slope)) + LEAST
    # Each event is rounded once as it joins: that adds up as the steps of a random walk do.
    share = (64 + 4 * math.isqrt(len(xs))) * U
    wrong = _far(got["slope"], slope, share * most)
    if wrong is not None:
        return f"slope: {wrong}"
    size = abs(mean_y) + most * abs(mean_x)
    wrong = _far(got["intercept"], mean_y - slope * mean_x, share * size)
    return None if wrong is None else f"intercept: {wrong}"


@functools.lru_cache(maxsize=100)
def exact_moments(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Fraction, Fraction]:
    """The mean of a, and the sum of products of deviations of a and b."""
    (x, of_x), (y, of_y) = _whole(a), _whole(b)
    products = len(x) * sum(map(operator.mul, x, y)) - sum(x) * sum(y)
    return Fraction(sum(x), len(x) * of_x), Fraction(products, len(x) * of_x * of_y)


def _whole(values: tuple[Any, ...]) -> tuple[list[int], int]:
    """Values as whole numbers of some unit, and how many of these are one."""
    ratios = [value.as_integer_ratio() for value in values]
    unit = max(down for _, down in ratios)
    return [up * (unit // down) for up, down in ratios], unit


def _root(square: Fraction) -> Fraction:
    """A root of a number beyond 2**-900, to more digits than floats have."""
    return Fraction(math.isqrt(square.numerator * 2**1200 // square.denominator), 2**600)


def _far(got: float, exact: Fraction, most: Fraction) -> str | None:
    if math.isinf(got):
        return None if abs(exact) + most > MOST else f"expected {float_of(exact)}"
    near = not math.isnan(got) and abs(Fraction(got) - exact) <= most + LEAST
    return None if near else f"expected {float_of(exact)}"


def float_of(exact: Fraction) -> float:
    """The nearest float, or an infinity."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf
