"""A tree gives the oracle's rows, however it is shaped and whenever its reports arrive."""

from __future__ import annotations

import functools
import random

import pytest

import paneflow as pf
from tests.edge.trees import expected, rows_of, run
from tests.multicore.stream_cases import draw_stream
from tests.properties.compare import assert_same_rows


def check(seed: int) -> None:
    r = random.Random(seed)
    case = draw_stream(r)
    tree = run(case, r)
    assert tree.late == 0
    assert_same_rows(case.query, rows_of(tree), expected(case, tree.question))


@pytest.mark.parametrize("seed", range(60))
def test_random_trees_give_the_oracles_rows(seed: int) -> None:
    check(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(0, 2_000, 100))
def test_two_thousand_random_trees_give_the_oracles_rows(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed)


def test_the_roots_slices_amount_to_the_same_rows() -> None:
    r = random.Random(5)
    case = draw_stream(r, ("tumbling", "session"), ("max", "first", "collect", "mode"), most=60)
    tree = run(case, r)
    slices = functools.reduce(pf.Slices.merge, map(pf.Slices, tree.slices))
    rows = case.query.finish(slices)
    assert_same_rows(case.query, rows, case.expected())
