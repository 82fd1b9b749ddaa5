"""The values of slices are sorted slice by slice, and counted."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from paneflow.aggregates.operator import Array
from paneflow.engines.table.sorted_runs import FEW, sorted_runs
from paneflow.engines.table.store import Held
from paneflow.slicing.columns import read_column

LENGTHS = [0, 1, 2, FEW, FEW + 1, 0, 500, 3]
OFFSETS = np.append(0, np.cumsum(LENGTHS))


def held(values: Array, counts: Array | None) -> Held:
    """Values of a column, each as often as its count says."""
    column = read_column(pa.table({"x": values}), "x")
    return Held(column.values, counts, column, lambda positions: positions)


def slices_of(found: Held) -> list[list[tuple[float, int]]]:
    """Distinct values and their counts, slice by slice."""
    values, counts, offsets = sorted_runs(found, OFFSETS)
    pairs = list(zip(values.tolist(), counts.tolist(), strict=True))
    return [pairs[a:b] for a, b in pairwise(offsets)]


def expected(values: Array, counts: Array) -> list[list[tuple[float, int]]]:
    """The same, value by value."""
    made = []
    for a, b in pairwise(OFFSETS):
        counter: Counter[float] = Counter()
        for value, count in zip(values[a:b].tolist(), counts[a:b].tolist(), strict=True):
            counter[value] += count
        made.append(sorted(counter.items()))
    return made


@pytest.mark.parametrize("most", [3, 10**6])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("often", [None, 1, 2, 40])
def test_values_are_in_order_and_counted(most: int, kind: type, often: int | None) -> None:
    random = np.random.default_rng(1)
    values = random.integers(-most, most, OFFSETS[-1]).astype(kind)
    counts = None if often is None else random.integers(1, often + 1, len(values))
    ones = np.ones(len(values), np.int64)
    assert slices_of(held(values, counts)) == expected(values, ones if counts is None else counts)


@pytest.mark.parametrize("counts", [None, np.full(OFFSETS[-1], 9)])
def test_nan_is_last_and_equal_to_itself_and_zeros_are_one(counts: Array | None) -> None:
    nasty = [math.nan, 0.0, -math.inf, -0.0, math.inf, 1.5, -math.nan]
    values = np.resize(np.array(nasty), OFFSETS[-1])
    for n, pairs in zip(LENGTHS, slices_of(held(values, counts)), strict=True):
        found = [value for value, _ in pairs]
        assert sum(count for _, count in pairs) == n * (1 if counts is None else 9)
        numbers = [value for value in found if not math.isnan(value)]
        assert numbers == sorted(set(numbers))
        assert found[: len(numbers)] == numbers
        assert len(found) - len(numbers) <= 1
        assert all(math.copysign(1, value) == 1 for value in numbers if value == 0)


def test_values_are_left_as_they_are() -> None:
    values = np.arange(OFFSETS[-1], 0, -1)
    sorted_runs(held(values, None), OFFSETS)
    assert values[0] == OFFSETS[-1]
