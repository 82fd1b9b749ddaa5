"""Queries that are added to a running tree give the oracle's rows from their begin to their end."""

from __future__ import annotations

import random

import pytest

from tests.edge.programme.trees import WORDED, ChangingTree, run
from tests.edge.trees import expected, rows_of
from tests.multicore.stream_cases import draw_stream
from tests.properties.compare import assert_same_rows
from tests.seeds import some_first


def check(seed: int) -> ChangingTree:
    r = random.Random(seed)
    case = draw_stream(r, aggregates=WORDED, most=120)
    tree = run(case, r)
    assert tree.late == 0
    assert_same_rows(case.query, rows_of(tree), expected(case, tree.question))
    tree.check(case)
    return tree


@pytest.mark.parametrize("seeds", some_first(16, 60))
def test_random_changes_of_queries_give_the_oracles_rows(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(0, 1_000, 100))
def test_a_thousand_random_changes_of_queries(first: int) -> None:
    shared = 0
    for seed in range(first, first + 100):
        followed = check(seed).followed.values()
        shared += sum(query.shares is not None for query in followed)
    assert shared > 10
