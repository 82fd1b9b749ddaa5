"""Every aggregate in every kind of window: no pair is left to the luck of random queries."""

from __future__ import annotations

import inspect
import types
from collections.abc import Sequence

import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from tests.compared import BY_WINDOW, kind_of_aggregate, kind_of_window
from tests.properties.cases import (
    AGGREGATES,
    SHARED,
    WINDOWS,
    check,
    full_case,
    seeded_aggregate,
)
from tests.properties.compare import assert_same_rows

SEEDS = range(6)
ENOUGH = 5
"""Cases that each pair has at least."""


def functions(room: types.ModuleType) -> set[str]:
    return {name for name in room.__all__ if inspect.isfunction(getattr(room, name))}


def test_every_aggregate_of_the_library_has_a_case() -> None:
    cases = {kind_of_aggregate(seeded_aggregate(name, 0)) for name in AGGREGATES}
    questions_about_results = {"bloom_contains"}
    variants = {"sum, exact", "define, ordered"}
    assert cases == functions(A) - questions_about_results | variants


def test_every_window_of_the_library_has_a_case() -> None:
    (cases,) = [full_case(0, tuple(WINDOWS), ["count"]).query.windows.values()]
    assert set(map(kind_of_window, cases)) == functions(W) - {"duration"} | {"custom"}


def compare(window: str, columns: Sequence[int]) -> None:
    """All aggregates in one kind of window, compared with the oracle often enough."""
    before = BY_WINDOW.copy()
    for seed in SEEDS:
        of_columns = columns[seed % len(columns)]
        check(full_case(seed, (window,), AGGREGATES, columns=of_columns))
    compared = BY_WINDOW - before
    assert len(compared) == len(AGGREGATES)
    assert min(compared.values()) >= ENOUGH, f"of {SEEDS}, too many tables had no row"


@pytest.mark.parametrize("window", WINDOWS)
def test_all_aggregates_at_once_in_every_kind_of_window(window: str) -> None:
    compare(window, SHARED)


@pytest.mark.long
@pytest.mark.parametrize("window", WINDOWS)
def test_all_aggregates_at_once_over_more_columns(window: str) -> None:
    compare(window, SEEDS)


@pytest.mark.parametrize("window", WINDOWS)
def test_an_aggregate_alone_gives_what_it_gives_among_others(window: str) -> None:
    case = full_case(0, (window,), AGGREGATES)
    together = case.query.over(case.table, engine="oracle")
    for name, aggregate in case.query.aggregates.items():
        alone = pf.Query(case.query.windows, {name: aggregate}, case.query.key, "t")
        expected = together.select(alone.result_schema(case.table.schema).names)
        assert_same_rows(alone, alone.over(case.table), expected)
