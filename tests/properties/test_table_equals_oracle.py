"""The table engine gives the oracle's rows, whatever the question."""

from __future__ import annotations

import os
import random

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.planning.merge_choice import AVAILABLE
from tests.properties.cases import Case, check, draw_case

EXHAUSTIVE = int(os.environ.get("PANEFLOW_RANDOM_QUERIES", "20000"))


COLUMNAR = ["auto", "sba", "flat_fat"]


@pytest.mark.parametrize("merge", COLUMNAR)
def test_any_query_over_any_table(merge: str) -> None:
    for seed in range(50):
        check(draw_case(random.Random(f"{merge} {seed}")), merge)


@pytest.mark.parametrize("merge", AVAILABLE)
def test_every_merge_algorithm_gives_the_same_rows(merge: str) -> None:
    aggregates = {"low": A.min("i"), "total": A.sum("i")}
    if merge == "subtract":
        del aggregates["low"]
    for seed in range(10):
        case = draw_case(random.Random(seed))
        query = pf.Query(case.query.windows, aggregates, case.query.key, "t")
        check(Case(query, case.table), merge)


@pytest.mark.parametrize(
    ("merge", "aggregate", "law"),
    [
        ("subtract", A.max("i"), "invertible"),
        ("subtract", A.sum("f"), "invertible"),
        ("slick_deque", A.mean("f"), "selective"),
    ],
    ids=str,
)
def test_a_broken_law_is_named(merge: str, aggregate: A.Aggregate, law: str) -> None:
    case = draw_case(random.Random(0))
    query = pf.Query(W.sliding(4, 2), {"a": aggregate}, time="grows_int")
    table = case.table.append_column("grows_int", pa.array(range(case.table.num_rows)))
    with pytest.raises(pf.UnsupportedError, match=law):
        query.over(table, merge=merge)


@pytest.mark.parametrize("several", [2, 15, 16, 40])
def test_many_sliding_windows_over_any_table(several: int) -> None:
    """Windows that only slide are found together, from 16 on by an index of the times."""
    for seed in range(30):
        r = random.Random(seed)
        case = draw_case(r)
        unit = " us" if pa.types.is_timestamp(case.table.schema.field("t").type) else None
        sizes = [(r.randint(1, 60), r.randint(1, 40), r.randint(0, 9)) for _ in range(99)]
        drawn = [W.sliding(*(n if unit is None else f"{n}{unit}" for n in size)) for size in sizes]
        windows = dict(list({str(window): window for window in drawn}.items())[:several])
        query = pf.Query(windows, {"n": A.count(), "low": A.min("i")}, case.query.key, "t")
        check(Case(query, case.table), "auto")


@pytest.mark.exhaustive
def test_twenty_thousand_random_queries() -> None:
    for seed in range(EXHAUSTIVE):
        r = random.Random(seed)
        case = draw_case(r)
        try:
            check(case, r.choice(COLUMNAR))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {case!r}") from error
    print(f"{EXHAUSTIVE} random queries compared with the oracle")
