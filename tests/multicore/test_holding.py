"""Short loops that keep the interpreter lock do what NumPy does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.threads.short_loops import (
    Loop,
    close_up,
    close_up_across,
    concatenated,
    concatenated_across,
    marked,
    order_across,
    order_of,
    put,
    put_across,
    taken,
    taken_across,
)
from paneflow.engines.multicore.tuning import tuning
from paneflow.slicing.columns import as_arrow, numbers_of

LENGTHS = (0, 1, 7, 500, tuning.short_loop, tuning.short_loop + 1)
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
def test_columns_of_a_table_are_ordered_by_its_rows_in_turn(n: int) -> None:
    table = np.stack([values(n, 3), values(n + 1, 5)[:n]])
    expected = np.lexsort(table[::-1])  # by the last key first, and stable
    order = order_across(table)
    assert (np.arange(n) if order is None else order).tolist() == expected.tolist()
    if n <= tuning.short_loop:
        assert order_across(np.stack([np.arange(n), np.zeros(n, np.int64)])) is None


@pytest.mark.parametrize("n", LENGTHS)
def test_what_is_kept_closes_up(n: int) -> None:
    column, table = values(n, 100), values(3 * n, 100).reshape(3, n)
    kept = np.flatnonzero(values(n, 10) > 0)
    expected, wide = column[kept].tolist(), table[:, kept].tolist()
    close_up(column, kept)
    close_up_across(table, kept)
    assert column[: len(kept)].tolist() == expected
    assert table[:, : len(kept)].tolist() == wide


def test_numbers_pass_from_arrow_and_back() -> None:
    assert numbers_of(pa.array([1, 2, 3, 4]).slice(1, 2)).tolist() == [2, 3]
    assert numbers_of(pa.array([], pa.float64()), np.float64).tolist() == []
    every_second = np.arange(6)[::2]
    assert as_arrow(every_second, pa.timestamp("us")).cast(pa.int64()).to_pylist() == [0, 2, 4]


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


@pytest.mark.parametrize("n", LENGTHS)
def test_columns_and_tables_are_concatenated(n: int) -> None:
    column, table = values(n, 100), values(3 * n, 100).reshape(3, n)
    assert concatenated([column, column]).tolist() == [*column.tolist(), *column.tolist()]
    together = np.concatenate([table, table], axis=1)
    assert concatenated_across([table, table]).tolist() == together.tolist()


def test_a_long_loop_is_compiled_as_soon_as_a_short_one_was() -> None:
    def count(values):  # type: ignore[no-untyped-def]
        return len(values)

    loop = Loop(count)
    numbers = np.zeros((2, tuning.short_loop))
    assert loop(1, numbers[0]) == tuning.short_loop
    assert loop(2, numbers[:, :1]) == 2  # not side by side: another type
    assert loop._long.signatures == loop._short.signatures
    assert len(loop._long.signatures) == 2
