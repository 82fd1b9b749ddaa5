"""The exact sum equals `math.fsum` to the bit, however the values are split and ordered."""

from __future__ import annotations

import itertools
import math
import random
import struct
from fractions import Fraction
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from paneflow.aggregates._numerics import exact_sum as exact

LARGEST = float(np.finfo(np.float64).max)
SMALLEST = 5e-324

# Pasted together as an engine's kernels are: compiled, with `carry` compiled along.
compiled_absorb: Any = numba.njit(exact.absorb)
compiled_combine: Any = numba.njit(exact.combine)


def row_of(values: list[float]) -> exact.Row:
    row = np.zeros(exact.WIDTH, np.int64)
    for value in values:
        row = exact.absorb(row, value)
    return row


def lower(*rows: exact.Row) -> float:
    row = rows[0]
    for other in rows[1:]:
        row = exact.combine(row, other)
    return float(exact.lower_rows(row[None])[0])


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def reference(values: list[float]) -> float:
    """The true sum of finite values, rounded once."""
    true = sum(map(Fraction, values), Fraction(0))
    try:
        return float(true)
    except OverflowError:
        return math.inf if true > 0 else -math.inf


finite = st.floats(allow_nan=False, allow_infinity=False)
subnormal = st.integers(-(2**53), 2**53).map(lambda n: n * SMALLEST)
power = st.builds(
    lambda s, e: math.ldexp(s, e), st.sampled_from([-1.0, 1.0]), st.integers(-1074, 1023)
)
anything = st.one_of(finite, subnormal, power, st.floats(-1e6, 1e6))


@given(st.lists(anything, max_size=40))
def test_equals_the_true_sum_rounded_once(values: list[float]) -> None:
    assert bits(lower(row_of(values))) == bits(reference(values))


@given(st.lists(anything.map(lambda value: value / 64), max_size=40))
def test_equals_fsum_of_what_cannot_overflow(values: list[float]) -> None:
    assert bits(lower(row_of(values))) == bits(math.fsum(values))


@given(st.lists(anything, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_cancellation_leaves_the_small_rest(values: list[float], order: random.Random) -> None:
    rest = [1.5, 2.0**-1074, -(2.0**-60)]
    cancelling = values + [-v for v in values] + rest
    order.shuffle(cancelling)
    assert bits(lower(row_of(cancelling))) == bits(math.fsum(rest))


@given(st.lists(anything, max_size=30), st.data())
def test_splits_and_orders_do_not_matter(values: list[float], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(values))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=4)))
    edges = [0, *cuts, len(values)]
    parts = [row_of(shuffled[a:b]) for a, b in itertools.pairwise(edges)]
    assert bits(lower(*parts)) == bits(lower(row_of(values)))


@settings(deadline=None)
@given(st.lists(st.one_of(anything, st.floats()), max_size=20))
def test_compiled_and_plain_functions_agree(values: list[float]) -> None:
    plain, compiled = np.zeros(exact.WIDTH, np.int64), np.zeros(exact.WIDTH, np.int64)
    for value in values:
        exact.absorb(plain, value)
        compiled_absorb(compiled, value)
    np.testing.assert_array_equal(plain, compiled)
    np.testing.assert_array_equal(exact.combine(plain, plain), compiled_combine(compiled, compiled))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], 0.0),
        ([-0.0], 0.0),
        ([0.1] * 10, 1.0),
        ([1e16, 1.0, -1e16], 1.0),
        ([1.0, 2.0**-53], 1.0),  # a tie, to the even neighbour below
        ([1.0, 2.0**-52, 2.0**-53], 1.0 + 2.0**-51),  # a tie, to the even neighbour above
        ([1.0, 2.0**-53, SMALLEST], 1.0 + 2.0**-52),  # no tie, by the very last bit
        ([1.0, 2.0**-53, -SMALLEST], 1.0),
        ([SMALLEST, SMALLEST], 2 * SMALLEST),
        ([2.0**-1022, -SMALLEST], 2.0**-1022 - SMALLEST),  # from normal to subnormal
        ([LARGEST, LARGEST, -LARGEST], LARGEST),  # only parts of it are too large
        ([LARGEST, LARGEST], math.inf),
        ([-LARGEST, -LARGEST], -math.inf),
        ([LARGEST, 2.0**969], LARGEST),
        ([LARGEST, 2.0**970], math.inf),  # halfway to 2**1024: IEEE 754 rounds to infinity
        ([-LARGEST, -(2.0**970)], -math.inf),
        ([LARGEST, 2.0**970, -SMALLEST], LARGEST),
        ([1.0, math.inf], math.inf),
        ([-math.inf, LARGEST, LARGEST], -math.inf),
    ],
)
def test_by_hand(values: list[float], expected: float) -> None:
    assert bits(lower(row_of(values))) == bits(expected)


@pytest.mark.parametrize("values", [[math.nan], [math.inf, -math.inf], [1.0, -math.nan, math.inf]])
def test_nan(values: list[float]) -> None:
    assert math.isnan(lower(row_of(values)))
    assert math.isnan(lower(row_of(values[:1]), row_of(values[1:])))


def test_combine_leaves_its_arguments_alone() -> None:
    a, b = row_of([1.0, 2.0]), row_of([-3.0])
    kept = a.copy(), b.copy()
    exact.combine(a, b)
    np.testing.assert_array_equal(a, kept[0])
    np.testing.assert_array_equal(b, kept[1])


def test_lowering_leaves_rows_alone() -> None:
    rows = np.array([row_of([1.0, -2.0]), row_of([-LARGEST, -1.0])])
    kept = rows.copy()
    exact.lower_rows(rows)
    np.testing.assert_array_equal(rows, kept)


def repeated(value: float, doublings: int) -> exact.Row:
    """A row that holds a value 2**doublings times."""
    row = row_of([value])
    for _ in range(doublings):
        row = exact.combine(row, row)
        assert row[exact.PENDING] <= exact.MOST_PENDING
    return row


@pytest.mark.parametrize("value", [math.pi, -SMALLEST, 1e280, -(2.0**963)])
def test_limbs_are_carried_before_they_overflow(value: float) -> None:
    # Without carries 2**60 values would overflow any limb.
    many = repeated(value, 60)
    assert bits(lower(many)) == bits(reference([value * 2.0**60]))
    assert lower(many, repeated(-value, 60)) == 0.0
    assert lower(many, row_of([value]), repeated(-value, 60)) == value


def test_the_largest_sum_fits() -> None:
    many = repeated(LARGEST, 62)
    assert lower(many) == math.inf
    assert lower(many, row_of([1.5]), repeated(-LARGEST, 62)) == 1.5


def test_a_row_that_is_full_is_carried_by_the_next_value() -> None:
    row = row_of([1.75])
    row[: exact.LIMBS] *= exact.MOST_PENDING
    row[exact.PENDING] = exact.MOST_PENDING
    row = exact.absorb(row, 1.75)
    assert row[exact.PENDING] == 2
    assert lower(row) == 1.75 * (exact.MOST_PENDING + 1)


def test_a_million_values() -> None:
    values = np.random.default_rng(0).normal(0, 1, 1_000_000) * 10.0 ** np.arange(-8, 8).repeat(
        62_500
    )
    rows = np.zeros((1, exact.WIDTH), np.int64)
    fold(rows[0], values)
    assert bits(float(exact.lower_rows(rows)[0])) == bits(math.fsum(values))


@numba.njit
def fold(row: exact.Row, values: Any) -> None:
    for value in values:
        compiled_absorb(row, value)
