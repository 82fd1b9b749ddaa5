"""Sliding in lanes gives what SBA gives, whatever the lanes, the size and the rest at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paneflow import aggregates as A
from paneflow.aggregates.operator import Component, Input, Operator, Partials
from paneflow.aggregates.values import Kind
from paneflow.merging.machine import lanes as in_lanes
from paneflow.merging.sba import Sba


def _greater(a, b):  # type: ignore[no-untyped-def]
    return max(a, b)


def _then(p, q):  # type: ignore[no-untyped-def]
    # First x -> a x + b of p, then that of q: the order matters.
    return p[0] * q[0] % 1009, (p[1] * q[0] + q[1]) % 1009


PEAK = Operator("peak", (Input("v"),), (Component("v", "int32"),), (-(2**31),), _greater)
AFFINE = Operator(
    "affine",
    (Input("v"),),
    (Component("a", "int64"), Component("b", "int64")),
    (1, 0),
    _then,
    bare=False,
)


def _partials(operator: Operator, n: int) -> Partials:
    random = np.random.default_rng(n)
    return tuple(random.integers(0, 1009, n).astype(c.dtype) for c in operator.components)


@pytest.mark.parametrize("operator", [PEAK, AFFINE], ids=lambda operator: operator.name)
@pytest.mark.parametrize(
    "lanes",
    [n if n == 60 else pytest.param(n, marks=pytest.mark.long) for n in in_lanes.RADICES],
)
@pytest.mark.parametrize("rows", [1, 2, 5, 40])
def test_windows_in_lanes_equal_those_of_sba(operator: Operator, lanes: int, rows: int) -> None:
    size = lanes * rows
    beyond = [0, 1, lanes - 2, lanes - 1, lanes, size - 1, size, size + 1, 4 * size - 3]
    for n in (size + more for more in beyond):
        partials = _partials(operator, n)
        merged = operator.empty(n - size + 1)
        in_lanes.slide_in_lanes(operator, lanes, size, partials, merged)
        expected = Sba(operator, partials).slide(size)
        for mine, theirs in zip(merged, expected, strict=True):
            assert np.array_equal(mine, theirs), (lanes, size, n)


def test_lanes_are_tried_only_where_windows_are_whole_lanes_of_many_numbers() -> None:
    calls: list[int] = []

    def otherwise(size: int, *columns: object) -> None:
        calls.append(size)

    assert in_lanes.lanes_of(PEAK, 1023, 1_000_000, otherwise) is None
    assert in_lanes.lanes_of(PEAK, 64, 1_000_000, otherwise) is None
    assert in_lanes.lanes_of(PEAK, 1024, 1000, otherwise) is None
    assert calls == []
    # Doing nothing at all is faster than lanes, so they are not taken.
    assert in_lanes.lanes_of(PEAK, 1024, 1_000_000, otherwise) is None
    assert set(calls) == {1024}


def test_where_grouping_shows_the_combine_decides_and_not_a_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_lanes, "_seconds", lambda *_: pytest.fail("a trial was made"))
    kinds = {"v": Kind.FLOAT}
    (total,), (spread,) = A.sum("v").operators(kinds), A.var("v").operators(kinds)
    (product,) = A.product("v").operators(kinds)
    for operator, expected in ((total, 64), (product, 64), (spread, None)):
        assert in_lanes.lanes_of(operator, 1024, 1_000_000, lambda *_: None) == expected


def test_a_long_column_slides_the_same_with_and_without_lanes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    partials = _partials(PEAK, 5000)
    expected = Sba(PEAK, partials).slide(640)
    used: list[int] = []
    slide = in_lanes.slide_in_lanes

    def noted(operator: Operator, lanes: int, *given: Any) -> None:
        used.append(lanes)
        slide(operator, lanes, *given)

    monkeypatch.setattr("paneflow.merging.sba.lanes_of", lambda *_: 64)
    monkeypatch.setattr("paneflow.merging.sba.slide_in_lanes", noted)
    assert np.array_equal(Sba(PEAK, partials).slide(640)[0], expected[0])
    assert used == [64]
