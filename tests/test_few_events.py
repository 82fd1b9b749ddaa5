"""A handful of events is ordered, sliced and put into windows without kernels, to the same end."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.slicing import ordering
from paneflow.slicing.ordering import (
    is_sorted,
    places_by_code,
    scatter,
    stable_order,
    stable_places,
)
from tests.properties.cases import draw_table

EVERYTHING = -1
"""Not even an empty table is small."""


def sizes(several: int) -> list[int]:
    return [0, 1, 2, 3, *np.random.default_rng(4).integers(4, ordering.FEW + 1, several).tolist()]


def both_ways(monkeypatch: pytest.MonkeyPatch, ask: Any) -> tuple[Any, Any]:
    few = ask()
    with monkeypatch.context() as patch:
        patch.setattr(ordering, "FEW", EVERYTHING)
        return few, ask()


def same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return bool(np.array_equal(a, b)) and a.dtype == b.dtype


@pytest.mark.parametrize("distinct", [1, 3, 2**40])
@pytest.mark.parametrize("fields", [1, 2, 3])
def test_few_rows_have_the_order_of_many(
    fields: int, distinct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = np.random.default_rng(fields)
    for n in sizes(10):
        columns = [r.integers(-distinct, distinct, n) for _ in range(fields)]
        order, by_kernels = both_ways(monkeypatch, lambda c=columns, n=n: stable_order(c, n))
        # Only one field is looked at before it is sorted.
        if fields == 1 or order is not None:
            assert same(order, by_kernels)
        places, by_kernels = both_ways(monkeypatch, lambda c=columns, n=n: stable_places(c, n))
        if fields == 1 or places is not None:
            assert same(places, by_kernels)
        assert len(set(both_ways(monkeypatch, lambda c=columns: is_sorted(c[0])))) == 1


def test_few_codes_have_the_places_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    r = np.random.default_rng(7)
    for n in sizes(10):
        codes = r.integers(0, 5, n)
        few, by_kernels = both_ways(monkeypatch, lambda c=codes: places_by_code(c, 6))
        assert same(few[0], by_kernels[0])
        assert few[1].tolist() == by_kernels[1].tolist()


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int32", "float32", "float64", "uint64", "object"]
)
def test_values_of_every_type_are_moved_as_they_are(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = np.random.default_rng(8)
    values = r.integers(0, 2, 200).astype(dtype)
    if dtype.startswith("float"):
        values[::3] = [np.nan, -0.0, np.inf, 5e-324] * 16 + [np.nan] * 3
    values.flags.writeable = False
    places = r.permutation(200).astype(np.int32)
    few, by_kernels = both_ways(monkeypatch, lambda: scatter(values, places))
    assert few.dtype == by_kernels.dtype == values.dtype
    assert few.tobytes() == by_kernels.tobytes()


@pytest.mark.parametrize("key", [None, "k"])
def test_few_events_are_in_the_windows_of_many(
    key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = random.Random(9)
    for n in (1, 2, 9, 40):
        table = draw_table(r, n, stamped=False)
        span = r.randrange(1, 30), r.randrange(1, 30)
        windows = {
            "sliding": W.sliding(*span),
            "shifted": W.sliding(*span, offset=r.randrange(-9, 9)),
            "fine": W.sliding(r.randrange(1, 5), 1),
            "visit": W.session(r.randrange(1, 9)),
        }
        for asked in (windows, {"sliding": windows["sliding"]}):
            query = pf.Query(asked, {"n": A.count(), "x": A.max("x")}, key=key, time="t")
            few, by_kernels = both_ways(monkeypatch, lambda q=query, t=table: q.over(t))
            assert few.equals(by_kernels)


def test_few_events_far_apart_are_left_to_kernels() -> None:
    table = pa.table({"t": [0, 2**60], "v": [1, 2]})
    rows = pf.Query(W.sliding(4, 2), {"v": A.sum("v")}, time="t").over(table)
    assert rows["v"].to_pylist() == [1, 1, 2, 2]
