"""Mean, variance and regression in exact arithmetic, rounded once.

Every finite float is an integer over a power of two, and every decimal one over a power of ten, so
whole numbers over one denominator hold all values of a window, and sums of their products are whole
numbers again.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any


def mean(values: list[Any]) -> float:
    """The mean; IEEE's answer where infinities or NaN take part.

    >>> mean([1e308, 1e308, -2.0])
    6.666666666666666e+307
    """
    if not _finite(values):
        return float(sum(v for v in values if not math.isfinite(v)))
    numbers, unit = _over_one_denominator(values)
    return rounded(Fraction(sum(numbers), len(numbers) * unit))


def variance(values: list[Any], taken: int) -> float | None:
    """The mean squared deviation, over so many values less; NaN where one is not finite.

    >>> variance([2**60 + 1, 2**60 + 3], 1)
    2.0
    """
    exact = _variance(values, taken)
    return exact if exact is None or isinstance(exact, float) else rounded(exact)


def deviation(values: list[Any], taken: int) -> float | None:
    """The root of the variance.

    >>> deviation([-1e200, 1e200], 0)
    1e+200
    """
    exact = _variance(values, taken)
    return exact if exact is None or isinstance(exact, float) else root(exact)


def _variance(values: list[Any], taken: int) -> Fraction | float | None:
    if len(values) <= taken:
        return None
    if not _finite(values):
        return math.nan
    numbers, unit = _over_one_denominator(values)
    n = len(numbers)
    return Fraction(_centred(numbers, numbers), n * (n - taken) * unit * unit)


def line(ys: list[Any], xs: list[Any]) -> tuple[float, float] | None:
    """Slope and intercept of the least-squares line; None if there are not two different x.

    NaN if squares or products of deviations leave float64, as of infinities.

    >>> line([2**60 + 1, 2**60 + 3], [7, 8])
    (2.0, 1.152921504606847e+18)
    """
    if len(xs) < 2:
        return None
    if not _finite(xs):
        return math.nan, math.nan
    x, unit_x = _over_one_denominator(xs)
    squares = Fraction(_centred(x, x), len(x) * unit_x * unit_x)
    if rounded(squares) == 0.0:
        return None
    if not _finite(ys):
        return math.nan, math.nan
    y, unit_y = _over_one_denominator(ys)
    products = Fraction(_centred(x, y), len(x) * unit_x * unit_y)
    if math.isinf(rounded(squares)) or math.isinf(rounded(products)):
        return math.nan, math.nan
    slope = products / squares
    mean_x, mean_y = Fraction(sum(x), len(x) * unit_x), Fraction(sum(y), len(y) * unit_y)
    return rounded(slope), rounded(mean_y - slope * mean_x)


def rounded(exact: Fraction) -> float:
    """The nearest float; infinite if there is none."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def root(square: Fraction) -> float:
    """The float nearest to a square root.

    >>> root(Fraction(2))
    1.4142135623730951
    """
    up, down = square.numerator, square.denominator
    # As many bits as a float has and some more; the last says whether any follow.
    shift = 64 + (down.bit_length() - up.bit_length()) // 2
    up, down = (up << 2 * shift, down) if shift >= 0 else (up, down << -2 * shift)
    digits = math.isqrt(up // down)
    more = digits * digits * down != up
    return rounded(Fraction(2 * digits + more) / Fraction(2) ** (shift + 1))


def _finite(values: list[Any]) -> bool:
    return all(map(math.isfinite, values))


def _over_one_denominator(values: list[Any]) -> tuple[list[int], int]:
    ratios = [value.as_integer_ratio() for value in values]
    unit = math.lcm(*{down for _, down in ratios})
    return [up * (unit // down) for up, down in ratios], unit


def _centred(a: list[int], b: list[int]) -> int:
    """n times the sum of products of deviations from the means."""
    return len(a) * sum(x * y for x, y in zip(a, b, strict=True)) - sum(a) * sum(b)
