"""Sums of integers: refused beyond int64, and only where a window adds up to that."""

from __future__ import annotations

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from tests.bad_input.refusing import over, refused


@pytest.mark.parametrize(
    ("values", "total"),
    [([2**62, 2**62], 2**63), ([-(2**63), -1], -(2**63) - 1), ([2**63 - 1] * 4, 2**65 - 4)],
)
def test_a_sum_beyond_int64(values: list[int], total: int, engine: str) -> None:
    table = pa.table({"t": range(len(values)), "v": values})
    for exact in (False, True):
        ask = over(table, engine=engine, aggregate=A.sum("v", exact=exact))
        refused(pf.InputError, ask, str(A.sum("v", exact=exact)), str(total), "int64", "cast")


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([2**63 - 1, 2**63 - 1, -(2**63), -(2**63)], -2),
        ([-(2**63), -(2**63), 2**63 - 1, 2**63 - 1], -2),
        ([2**63 - 1, 1, -1], 2**63 - 1),
        ([-(2**63), 0, 0], -(2**63)),
    ],
)
@pytest.mark.parametrize("merge", ["auto", "sba", "flat_fat"])
def test_a_sum_that_comes_back_into_int64(
    values: list[int], total: int, merge: str, engine: str
) -> None:
    """On its way the sum leaves int64; only what a window adds up to counts."""
    table = pa.table({"t": range(len(values)), "v": values})
    # The windows of one event cut every event into a slice, so that merging must add them up.
    windows = {"all": W.tumbling(10), "each": W.count(1)}
    query = pf.Query(windows, {"sum": A.sum("v"), "mean": A.mean("v")}, time="t")
    rows = query.over(table, engine=engine, merge=merge).to_pylist()
    (whole,) = (row for row in rows if row["window"] == "all")
    assert (whole["sum"], whole["mean"]) == (total, float(total) / len(values))
    assert [row["sum"] for row in rows if row["window"] == "each"] == values


def test_only_the_windows_that_are_asked_for_can_overflow(engine: str) -> None:
    table = pa.table({"t": [0, 1, 5, 6], "v": [2**62, 2**62 - 1, 2**62, 2**62 - 1]})
    rows = over(table, engine=engine, aggregate=A.sum("v"))()
    assert rows.column("n").to_pylist() == [2**63 - 1] * 2
    ask = over(table, engine=engine, window=W.session(4), aggregate=A.sum("v"))
    refused(pf.InputError, ask, str(2**64 - 2), "int64")


@pytest.mark.parametrize("values", [[2**63 - 1, 1], [-(2**63), -1]])
def test_a_sum_one_beyond_int64_is_refused(values: list[int], engine: str) -> None:
    ask = over(pa.table({"t": [0, 1], "v": values}), engine=engine, aggregate=A.sum("v"))
    refused(pf.InputError, ask, str(sum(values)), "int64")


def test_a_mean_of_integers_cannot_overflow(engine: str) -> None:
    table = pa.table({"t": [0, 1], "v": [2**63 - 1, 2**63 - 1]})
    rows = over(table, engine=engine, aggregate=A.mean("v"))()
    assert rows.column("n").to_pylist() == [float(2**64 - 2) / 2]
