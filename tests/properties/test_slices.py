"""Slices of parts, merged and finished, are the answer over the whole table."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from tests.properties.cases import AGGREGATES, MERGEABLE, affine, draw_case
from tests.properties.compare import assert_same_rows

SPLITTABLE = tuple(name for name in AGGREGATES if name != "define_ordered")


def check_split(r: random.Random, aggregates: tuple[str, ...] = SPLITTABLE) -> None:
    case = draw_case(r, windows=MERGEABLE, aggregates=aggregates)
    query, table = case.query, case.table
    first = [r.random() < 0.5 for _ in range(table.num_rows)]
    # Any rows may go to either part; the total order of a + b is that of the joined table.
    a = table.filter(pa.array(first, pa.bool_()))
    b = table.filter(pa.array([not f for f in first], pa.bool_()))
    merged = query.slice(a).merge(query.slice(b))
    expected = query.over(pa.concat_tables([a, b]), engine="oracle")
    assert_same_rows(query, query.finish(merged), expected)


def test_any_split_of_any_table() -> None:
    for seed in range(100):
        check_split(random.Random(f"any {seed}"))


@pytest.mark.parametrize("aggregate", SPLITTABLE)
def test_every_aggregate_can_be_split(aggregate: str) -> None:
    for seed in range(8):
        check_split(random.Random(f"{aggregate} {seed}"), (aggregate,))


@pytest.mark.exhaustive
def test_five_thousand_random_splits() -> None:
    for seed in range(5000):
        try:
            check_split(random.Random(seed))
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


def test_slices_survive_a_file(tmp_path: object) -> None:
    query = pf.Query(W.sliding(4, 2), {"peak": A.max("v"), "all": A.collect("s")}, "k", time="t")
    table = pa.table({"k": ["a", "b", "a"], "t": [1, 2, 3], "v": [1.0, 2.0, 3.0], "s": list("xyz")})
    path = f"{tmp_path}/slices.parquet"
    pq.write_table(query.slice(table).table, path)
    again = pf.Slices(pq.read_table(path))
    assert query.finish(again).equals(query.over(table))


@pytest.mark.parametrize(
    "window",
    [
        W.count(3),
        W.slide_by_tuple(3, 2),
        W.slide_by_time(3, 2),
        W.delta("v", 1, 1),
        W.punctuation("m"),
    ],
    ids=str,
)
def test_windows_that_need_the_whole_order_refuse_to_be_sliced(window: W.Window) -> None:
    table = pa.table({"t": [1], "v": [1.0], "m": [True]})
    query = pf.Query(window, {"n": A.count()}, time="t")
    with pytest.raises(pf.UnsupportedError, match="order of all events"):
        query.slice(table)


def test_a_combine_that_is_not_commutative_refuses_to_be_sliced() -> None:
    query = pf.Query(W.tumbling(5), {"a": affine("v")}, time="t")
    with pytest.raises(pf.UnsupportedError, match="not commutative"):
        query.slice(pa.table({"t": [1], "v": [1.0]}))


def test_slices_of_another_query_are_refused() -> None:
    table = pa.table({"t": [1], "v": [1.0]})
    peak = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
    low = pf.Query(W.tumbling(5), {"low": A.min("v")}, time="t")
    with pytest.raises(pf.InputError, match="different query"):
        peak.slice(table).merge(low.slice(table))
    with pytest.raises(pf.InputError, match="another query"):
        low.finish(peak.slice(table))


def test_a_newer_format_is_refused() -> None:
    table = pa.table({"t": [1], "v": [1.0]})
    slices = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t").slice(table).table
    metadata = {
        k: v.replace(b'"version": 1', b'"version": 2') for k, v in slices.schema.metadata.items()
    }
    with pytest.raises(pf.InputError, match="format version 2"):
        pf.Slices(slices.replace_schema_metadata(metadata))
    with pytest.raises(pf.InputError, match="does not hold slices"):
        pf.Slices(table)
