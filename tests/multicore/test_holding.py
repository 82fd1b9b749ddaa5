"""Short loops that keep the interpreter lock do what NumPy does."""

from __future__ import annotations

import numpy as np
import pytest

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.holding import (
    FEW,
    concatenated,
    concatenated_across,
    marked,
    order_of,
    put,
    put_across,
    taken,
    taken_across,
)

LENGTHS = (0, 1, 7, 500, FEW, FEW + 1)
EXTREME = np.iinfo(np.int64)


def values(n: int, spread: int) -> Array:
    return np.random.default_rng(n).integers(-spread, spread, n)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("spread", [1, 100, 10**15])
def test_an_order_is_stable(n: int, spread: int) -> None:
    """Values that lie close together are counted, others compared."""
    given = values(n, spread)
    assert order_of(given).tolist() == np.argsort(given, kind="stable").tolist()


def test_an_order_of_the_farthest_values() -> None:
    """Their distance does not fit into a number."""
    assert order_of(np.array([EXTREME.max, 0, EXTREME.min])).tolist() == [2, 1, 0]


@pytest.mark.parametrize("n", LENGTHS)
def test_columns_and_tables_are_taken_and_put(n: int) -> None:
    column, table = values(n, 100), values(3 * n, 100).reshape(3, n)
    places = np.random.default_rng(1).permutation(n)[: n // 2 + 1]
    assert taken(column, places).tolist() == column[places].tolist()
    assert taken_across(table, places).tolist() == table[:, places].tolist()
    target, wide = np.zeros(n + 2, np.int64), np.zeros((3, n + 2), np.int64)
    put(column, target, 2)
    put_across(table, wide, 2)
    assert target.tolist() == [0, 0, *column.tolist()]
    assert wide.tolist() == np.pad(table, ((0, 0), (2, 0))).tolist()


@pytest.mark.parametrize("n", LENGTHS)
def test_marks_become_places(n: int) -> None:
    mask = values(n, 10) > 0
    assert marked(mask).tolist() == np.flatnonzero(mask).tolist()
    assert marked(mask, False).tolist() == np.flatnonzero(~mask).tolist()


@pytest.mark.parametrize("n", LENGTHS)
def test_columns_and_tables_are_concatenated(n: int) -> None:
    column, table = values(n, 100), values(3 * n, 100).reshape(3, n)
    assert concatenated([column, column]).tolist() == [*column.tolist(), *column.tolist()]
    together = np.concatenate([table, table], axis=1)
    assert concatenated_across([table, table]).tolist() == together.tolist()
