"""Moments of columns that break careless arithmetic, against exact arithmetic, in all engines."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.choosing import BY_NAME
from paneflow.windows import Window
from tests.properties.nasty import FLOATS, INTEGERS, MOMENTS, assert_moments, nasty_table

TIME_WINDOWS: dict[str, Window] = {
    "whole": W.tumbling(10_000),
    "few": W.tumbling(5),
    "hop": W.sliding(40, 8),
    "rest": W.session(2),
}
SLIDING: dict[str, Window] = {"whole": W.tumbling(10_000), "hop": W.sliding(60, 15)}
MERGES = ("auto", "two_stacks", "flat_fat", "sba")
QUICK = ("auto", "single", "slices", "active", "pane_line", "window_hive")
"""Ways to answer a stream that keep moments in structures of their own."""
STRATEGIES = [
    pytest.param(name, workers, marks=() if name in QUICK else pytest.mark.long)
    for name, workers in [("auto", 1), *((name, 2) for name in BY_NAME)]
]


def asked(windows: dict[str, Window]) -> pf.Query:
    return pf.Query(windows, MOMENTS, key="k", time="t")


def tables(n: int, seed: str) -> list[tuple[str, pa.Table]]:
    """One for each kind of floats, with a kind of integers beside it."""
    pairs = zip(FLOATS, itertools.cycle(INTEGERS), strict=False)
    return [(f, nasty_table(random.Random(f"{seed} {f}"), f, i, n)) for f, i in pairs]


@pytest.mark.parametrize("floats", FLOATS)
def test_every_merge_over_a_table(floats: str) -> None:
    for merge, integers in zip(MERGES, itertools.cycle(INTEGERS), strict=False):
        table = nasty_table(random.Random(f"{floats} {merge}"), floats, integers, 100)
        rows = asked(TIME_WINDOWS).over(table, merge=merge)
        assert_moments(TIME_WINDOWS, table, rows)


def test_windows_without_slices_of_time() -> None:
    windows: dict[str, Window] = {"some": W.count(20, 7), "by": W.slide_by_tuple(30, 4)}
    for _, table in tables(100, "count"):
        assert_moments(windows, table, asked(windows).over(table))


def test_the_oracle() -> None:
    for _, table in tables(60, "oracle"):
        assert_moments(SLIDING, table, asked(SLIDING).over(table, engine="oracle"))


@pytest.mark.parametrize("floats", FLOATS)
def test_slices_cut_in_parts_and_merged_in_any_order(floats: str) -> None:
    r = random.Random(floats)
    for integers in r.sample(list(INTEGERS), 2):
        table = nasty_table(r, floats, integers, 120)
        part = np.array([r.randrange(7) for _ in range(table.num_rows)])
        query = asked(TIME_WINDOWS)
        slices = [query.slice(table.filter(pa.array(part == p))) for p in range(7)]
        r.shuffle(slices)
        while len(slices) > 1:
            merged = slices.pop().merge(slices.pop())
            slices.insert(r.randint(0, len(slices)), merged)
        assert_moments(TIME_WINDOWS, table, query.finish(slices[0]))


@pytest.mark.parametrize(("strategy", "workers"), STRATEGIES)
def test_every_strategy_of_a_stream(strategy: str, workers: int) -> None:
    for _, table in tables(90, strategy):
        with asked(SLIDING).open(workers=workers, strategy=strategy) as stream:
            for start in range(0, table.num_rows, 40):
                stream.push(table.slice(start, 40))
            stream.finish()
            rows = pa.concat_tables(stream.results())
        assert_moments(SLIDING, table, rows)


@pytest.mark.exhaustive
def test_a_thousand_random_columns() -> None:
    for seed in range(1000):
        r = random.Random(seed)
        floats, integers = r.choice(list(FLOATS)), r.choice(list(INTEGERS))
        table = nasty_table(r, floats, integers, r.choice([3, 50, 700, 3000]))
        query = asked(SLIDING)
        assert_moments(SLIDING, table, query.over(table, merge=r.choice(MERGES)))
        part = np.array([r.randrange(3) for _ in range(table.num_rows)])
        cut = [query.slice(table.filter(pa.array(part == p))) for p in r.sample(range(3), 3)]
        assert_moments(SLIDING, table, query.finish(cut[0].merge(cut[1]).merge(cut[2])))


def one(aggregate: A.Aggregate, **columns: object) -> object:
    """The result over all events as one window."""
    table = pa.table(columns)
    table = table.append_column("t", pa.array(range(len(table))))
    return pf.Query(W.tumbling(10**9), {"a": aggregate}, time="t").over(table)["a"][0].as_py()


def test_a_large_mean_leaves_the_spread() -> None:
    x = 1.7e15 + np.arange(100_000) % 1000
    assert one(A.std("x"), x=x) == pytest.approx(np.std(x - 1.7e15, ddof=1), rel=1e-14)
    assert one(A.std("x"), x=x.astype(np.int64)) == one(A.std("x"), x=np.arange(100_000) % 1000)
    line = one(A.linear_regression("y", "x"), x=x, y=3 * (x - 1.7e15))
    assert isinstance(line, dict)
    assert line["slope"] == pytest.approx(3, rel=1e-14)


def test_a_constant_has_no_spread() -> None:
    x = np.full(1_000_000, 1e9 + 0.1)
    assert one(A.std("x"), x=x) == 0.0
    assert one(A.linear_regression("y", "x"), x=x, y=np.arange(1_000_000.0)) is None
    table = pa.table({"t": np.arange(1_000_000), "x": x})
    for window in (W.tumbling(777), W.sliding(5000, 10)):
        rows = pf.Query(window, {"s": A.std("x"), "v": A.var_pop("x")}, time="t").over(table)
        assert set(rows["s"].drop_null().to_pylist()) == {0.0}
        assert set(rows["v"].to_pylist()) == {0.0}


def test_a_mean_that_53_bits_cannot_move() -> None:
    """Each step of the mean is half of its last bit."""
    x = 2.0**53 + 2 * np.arange(200_000)
    exact = (200_000**2 - 1) / 3
    assert one(A.var_pop("x"), x=x) == pytest.approx(exact, rel=1e-14)
    by_ones = pf.Query(W.count(200_000, 1), {"v": A.var_pop("x")}, time="t")
    table = pa.table({"t": np.arange(200_000), "x": x})
    assert by_ones.over(table)["v"].to_pylist() == [pytest.approx(exact, rel=1e-14)]


def test_deviations_whose_squares_are_no_floats() -> None:
    assert one(A.std_pop("x"), x=[-1e200, 1e200]) == 1e200
    assert one(A.var_pop("x"), x=[-1e200, 1e200]) == math.inf
    assert one(A.std_pop("x"), x=[1.7e308, -1.7e308] * 50) == pytest.approx(1.7e308, rel=1e-14)
    assert one(A.std_pop("x"), x=[0.0, 2e-323]) == 1e-323
    assert one(A.var_pop("x"), x=[0.0, 2e-323]) == 0.0


def test_a_sum_has_the_same_bits_with_and_without_a_variance_beside_it() -> None:
    r = np.random.default_rng(3)
    n = 20_000
    columns = {"t": np.arange(n), "f": r.normal(1e6, 1, n), "i": r.integers(-(2**62), 2**62, n)}
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    for window in (W.tumbling(100), W.sliding(640, 10), W.sliding(50, 1), W.count(300, 7)):
        for column, of in itertools.product("fi", (A.mean, A.sum)):
            if (of, column) == (A.sum, "i"):
                continue  # leaves int64
            alone = pf.Query(window, {"a": of(column)}, time="t").over(table)
            both = pf.Query(window, {"a": of(column), "v": A.var(column)}, time="t").over(table)
            assert both["a"].equals(alone["a"])


def test_partials_of_an_older_form_are_refused() -> None:
    query = pf.Query(W.tumbling(5), {"s": A.std("v"), "n": A.count()}, time="t")
    slices = query.slice(pa.table({"t": [1, 2], "v": [1.0, 2.0]}))
    metadata = slices.table.schema.metadata
    older = {k: v.replace(b', "forms": {"s": 2}', b"") for k, v in metadata.items()}
    assert older != metadata
    stored = pf.Slices(slices.table.replace_schema_metadata(older))
    with pytest.raises(pf.InputError, match="partials of 's' in a form"):
        query.finish(stored)
    with pytest.raises(pf.InputError, match="partials of 's' in a form"):
        slices.merge(stored)
