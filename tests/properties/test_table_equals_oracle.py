"""The table engine gives the oracle's rows, whatever the question."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given, settings, strategies as st

from tests.properties.cases import AGGREGATES, WINDOWS, Case, draw_case
from tests.properties.compare import assert_same_rows

EXHAUSTIVE = int(os.environ.get("PANEFLOW_RANDOM_QUERIES", "20000"))


def check(case: Case, merge: str) -> None:
    expected = case.query.over(case.table, engine="oracle")
    assert_same_rows(case.query, case.query.over(case.table, merge=merge), expected)


@settings(max_examples=150)
@given(st.randoms(use_true_random=False), st.sampled_from(["auto", "sba", "flat_fat"]))
def test_any_query_over_any_table(r: random.Random, merge: str) -> None:
    check(draw_case(r), merge)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("window", WINDOWS)
def test_every_aggregate_in_every_window(window: str, aggregate: str) -> None:
    for seed in range(2):
        case = draw_case(
            random.Random(f"{window} {aggregate} {seed}"),
            windows=(window,),
            aggregates=(aggregate,),
        )
        check(case, "auto")


@pytest.mark.exhaustive
def test_twenty_thousand_random_queries() -> None:
    for seed in range(EXHAUSTIVE):
        r = random.Random(seed)
        case = draw_case(r)
        try:
            check(case, r.choice(["auto", "sba", "flat_fat"]))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {case!r}") from error
    print(f"{EXHAUSTIVE} random queries compared with the oracle")
