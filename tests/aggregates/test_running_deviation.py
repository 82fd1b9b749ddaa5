"""Deviations of values that come one by one, against exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest

from paneflow.aggregates._numerics import deviation, running_deviation as running
from paneflow.aggregates.operator import Array

RNG = np.random.default_rng(3)
N = 1000
NOISE = RNG.random(N)
CASES: dict[str, Array] = {
    "around zero": NOISE - 0.5,
    "far from zero": 1e9 + NOISE,
    "first far from the others": np.append(1e12, NOISE),
    "a leap": np.append(NOISE, 1e12 + NOISE),
    "few, then many far away": np.append(np.zeros(16), 1e9 + 1e-3 * NOISE),
    "a walk": np.cumsum(NOISE - 0.5),
    "of all sizes": 10.0 ** RNG.integers(-20, 20, N),
    "beyond 53 bits": 2.0**53 + np.arange(N),
    "whose squares are too small": 1e-200 * NOISE,
    "whose squares are too large": 1e200 * NOISE,
    "all equal": np.full(N, 0.1),
    "nearly all equal": 1e5 + np.where(np.arange(N) % 7, 0.0, 2.0**-36),
}


def added(values: Iterable[float], p: deviation.Partial = deviation.IDENTITY) -> deviation.Partial:
    p = running.opened(p)
    for value in values:
        p = running.absorb(p, value)
    return running.settled(p)


def assert_exact(values: Array, p: deviation.Partial) -> None:
    n, mean, rest, squares, scale = p
    exact = [Fraction(value) for value in values.tolist()]
    middle = sum(exact) / len(exact)
    spread = sum((value - middle) ** 2 for value in exact)
    assert n == len(values)
    off = abs((Fraction(mean) + Fraction(rest)) / Fraction(scale) - middle)
    assert off <= Fraction(1, 10**14) * abs(middle)
    off = abs(Fraction(squares) / Fraction(scale) ** 2 - spread)
    assert off <= Fraction(1, 10**13) * spread


@pytest.mark.parametrize("name", CASES)
def test_they_are_accurate(name: str) -> None:
    values = CASES[name]
    for n in (1, 2, 3, 17, 64, len(values)):
        assert_exact(values[:n], added(values[:n].tolist()))


@pytest.mark.parametrize("name", CASES)
def test_values_may_follow_a_partial(name: str) -> None:
    values = CASES[name].tolist()
    half = len(values) // 2
    assert_exact(CASES[name], added(values[half:], added(values[:half])))


@pytest.mark.parametrize("name", CASES)
def test_partials_are_merged(name: str) -> None:
    first, second = np.split(CASES[name], [333])
    p, q = (running.opened(added(part.tolist())) for part in (first, second))
    assert_exact(CASES[name], running.settled(running.merge(p, q)))


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_has_no_deviation(odd: float) -> None:
    n, mean, _, squares, _ = added([1.0, odd, 2.0])
    assert n == 3
    assert math.isnan(mean)
    assert math.isnan(squares)


def test_nothing_stays_nothing() -> None:
    assert added([]) == deviation.IDENTITY
