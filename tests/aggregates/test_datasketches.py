"""Sketches of DataSketches as partials: what may depend on slices and order, and what may not."""

from __future__ import annotations

import itertools
import math
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates._numerics.datasketches import Hll, Kll
from paneflow.engines.oracle import sketches as oracle
from paneflow.errors import UnsupportedError

pytest.importorskip("datasketches")


def split_and_merge(sketches: Any, values: list[Any], data: st.DataObject) -> Any:
    """A sketch of the values: cut anywhere, merged in any order, partly by way of bytes."""
    edges = [0, *sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=5))), len(values)]
    parts = [sketches.lift(values[a:b]) for a, b in itertools.pairwise(edges)]
    while len(parts) > 1:
        i = data.draw(st.integers(0, len(parts) - 2))
        merged = sketches.combine(parts[i], parts[i + 1])
        if data.draw(st.booleans()):
            merged = sketches.load(sketches.dump(merged))
        parts[i : i + 2] = [merged]
    return parts[0]


# Sketches change their inner form at certain sizes: try those, and around them.
SIZES = [0, 1, 2, 7, 8, 9, 11, 12, 13, 23, 24, 25, 26, 47, 48, 49, 50, 95, 97, 383, 384, 385, 1500]


class TestHll:
    @settings(deadline=None)
    @given(st.sampled_from([7, 8, 10, 12]), st.sampled_from(SIZES), st.integers(), st.data())
    def test_a_set_of_values_has_one_estimate(
        self, lg_k: int, size: int, seed: int, data: st.DataObject
    ) -> None:
        random = np.random.default_rng(abs(seed))
        distinct = random.integers(-(2**62), 2**62, size)
        repeats = random.choice(distinct, size // 2) if size else distinct
        values = random.permutation(np.r_[distinct, repeats]).tolist()
        hll = Hll(lg_k)
        estimate = hll.lower(split_and_merge(hll, values, data))
        assert estimate == hll.lower(hll.lift(distinct))
        assert estimate == oracle.approx_distinct(distinct.tolist(), lg_k)

    @pytest.mark.parametrize("n", [10, 1_000, 100_000])
    def test_estimates_are_near(self, n: int) -> None:
        # 2**12 registers: a relative standard error of about 1.6 %.
        hll = Hll(12)
        assert hll.lower(hll.lift(np.arange(n))) == pytest.approx(n, rel=0.05)

    def test_every_kind_of_value_counts(self) -> None:
        hll = Hll()
        cases: list[tuple[list[Any], int]] = [
            ([1, 2, 2, -1, 2**63 - 1, -(2**63)], 5),
            ([0.0, -0.0, math.nan, -math.nan, math.inf, 1.5], 4),
            ([True, False, True], 2),
            (["", "a", "b", "a", "ä"], 4),
            ([b"", b"\x00", b"a"], 3),
            ([], 0),
        ]
        for values, distinct in cases:
            assert round(hll.lower(hll.lift(values))) == distinct

    def test_arrays_and_lists_count_alike(self) -> None:
        hll = Hll()
        for array in (
            np.array([1, 2, 3]),
            np.array([0.5, -0.0]),
            np.array([True, False]),
            np.array(["a", b"b", ""], object),
        ):
            assert hll.lower(hll.lift(array)) == hll.lower(hll.lift(array.tolist()))

    def test_combine_leaves_its_arguments_alone(self) -> None:
        hll = Hll()
        a, b = hll.lift([1, 2]), hll.lift(range(1000))
        kept = hll.dump(a), hll.dump(b)
        hll.combine(a, b)
        assert (hll.dump(a), hll.dump(b)) == kept

    def test_fold_takes_the_parameters(self) -> None:
        hll = Hll(10)
        assert hll.dump(hll.fold([1, 2], *hll.parameters)) == hll.dump(hll.lift([1, 2]))


class TestKll:
    @settings(deadline=None)
    @given(
        st.sampled_from([8, 20, 200]).flatmap(
            lambda k: st.tuples(
                st.just(k), st.lists(st.floats(allow_nan=False), min_size=1, max_size=k)
            )
        ),
        st.floats(0, 1),
        st.data(),
    )
    def test_up_to_k_values_are_exact(
        self, case: tuple[int, list[float]], q: float, data: st.DataObject
    ) -> None:
        k, values = case
        kll = Kll(k)
        estimate = kll.lower(split_and_merge(kll, values, data), q)
        table = pa.table({"t": [0] * len(values), "v": values})
        exact = pf.Query(W.tumbling(1), {"q": A.quantile("v", q)}, time="t")
        (expected,) = exact.over(table, engine="oracle")["q"].to_pylist()
        assert estimate == expected or (math.isnan(estimate) and math.isnan(expected))

    def test_few_values_are_interpolated_in_every_engine(self) -> None:
        table = pa.table({"t": [0, 1, 2, 3], "v": [4.0, 1.0, 3.0, 2.0]})
        query = pf.Query(
            W.tumbling(9), {"a": A.approx_quantile("v", 0.9), "q": A.quantile("v", 0.9)}, time="t"
        )
        halves = query.slice(table.slice(0, 2)).merge(query.slice(table.slice(2)))
        for rows in (query.over(table), query.over(table, engine="oracle"), query.finish(halves)):
            assert rows["a"].to_pylist() == rows["q"].to_pylist() == [pytest.approx(3.7)]

    def test_beyond_k_values_ranks_are_near(self) -> None:
        # 1.33 % at 99 % confidence, by the library's own measurements.
        kll = Kll(200)
        values = np.random.default_rng(0).permutation(100_000).astype(float)
        whole = kll.lift(values)
        merged = kll.lift([])
        for part in np.split(values, 50):
            merged = kll.combine(merged, kll.lift(part))
        for q in (0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0):
            for sketch in (whole, merged):
                assert kll.lower(sketch, q) / 100_000 == pytest.approx(q, abs=0.04)

    def test_the_extremes_are_exact(self) -> None:
        kll = Kll(8)
        sketch = kll.lift(np.arange(1000.0))
        assert kll.lower(sketch, 0.0) == 0.0
        assert kll.lower(sketch, 1.0) == 999.0

    def test_nan_is_passed_over(self) -> None:
        kll = Kll()
        assert kll.lower(kll.lift([math.nan, 3.0, math.nan, 1.0, 2.0]), 1.0) == 3.0
        assert math.isnan(kll.lower(kll.lift([math.nan]), 0.5))
        assert math.isnan(kll.lower(kll.lift([]), 0.5))

    def test_combine_leaves_its_arguments_alone(self) -> None:
        kll = Kll()
        a, b = kll.lift([1.0, 2.0]), kll.lift(np.arange(1000.0))
        kept = kll.dump(a), kll.dump(b)
        kll.combine(a, b)
        assert (kll.dump(a), kll.dump(b)) == kept

    def test_bytes_hold_the_sketch(self) -> None:
        kll = Kll()
        sketch = kll.lift(np.arange(5000.0))
        again = kll.load(kll.dump(sketch))
        assert all(kll.lower(again, q) == kll.lower(sketch, q) for q in (0.1, 0.5, 0.9))

    def test_fold_takes_the_parameters(self) -> None:
        kll = Kll(50)
        assert kll.lower(kll.fold([1.0, 2.0], *kll.parameters), 1.0) == 2.0


@pytest.mark.parametrize("sketches", [Hll(), Kll()])
def test_without_the_library_the_error_says_how_to_get_it(
    sketches: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'paneflow\[sketches\]'"):
        sketches.lift([])
