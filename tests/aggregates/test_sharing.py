"""Sharing: each event is folded once, whatever the number of aggregates and windows.

Aggregates that need the same partials share one operator, and all windows of a query share one
slicing, whose edges are where any of the windows begins or ends. Both are counted here by looking
over the shoulder of `fold`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates.operator import Array, Operator, Partials, share
from paneflow.aggregates.values import Kind
from paneflow.engines.table import from_events
from paneflow.slicing.fold import fold
from paneflow.windows import Window


@dataclass
class Folds:
    """What was folded: the operators, and the edges of their slices."""

    operators: list[str] = field(default_factory=list)
    edges: list[Array] = field(default_factory=list)


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> Folds:
    seen = Folds()

    def spy(operator: Operator, inputs: Sequence[Array], edges: Array) -> Partials:
        seen.operators.append(f"{operator.name.split(':')[0]}({', '.join(operator.columns)})")
        seen.edges.append(np.array(edges))
        return fold(operator, inputs, edges)

    monkeypatch.setattr(from_events, "fold", spy)
    return seen


def table(n: int = 60, keys: int = 1) -> pa.Table:
    r = random.Random(n)
    return pa.table(
        {
            "t": sorted(r.randint(0, 100) for _ in range(n)),
            "k": [r.randrange(keys) for _ in range(n)],
            "x": [r.randint(-40, 40) / 4 for _ in range(n)],
            "y": [r.randint(-40, 40) / 4 for _ in range(n)],
            "i": [r.randint(-9, 9) for _ in range(n)],
        }
    )


def ask(windows: Window | list[Window], aggregates: dict[str, A.Aggregate]) -> pa.Table:
    query = pf.Query(windows, aggregates, time="t")
    rows = query.over(table())
    assert rows.num_rows > 0
    return rows


# Operators.


@pytest.mark.parametrize(
    ("aggregates", "operators"),
    [
        # A float sum has the same bits with and without a variance beside it.
        ([A.mean("x"), A.sum("x"), A.var("x")], ["deviation(x)", "float_sum(x)"]),
        ([A.var("x"), A.std("x"), A.var_pop("x"), A.std_pop("x"), A.count("x")], ["deviation(x)"]),
        ([A.mean("x"), A.sum("x")], ["float_sum(x)"]),
        ([A.mean("i"), A.sum("i"), A.sum("i", exact=True)], ["integer_sum(i)"]),
        ([A.mean("i"), A.sum("i"), A.var("i")], ["whole_deviation(i)"]),
        ([A.max("x"), A.max("x"), A.max("y")], ["max(x)", "max(y)"]),
        ([A.min("x"), A.max("x")], ["max(x)", "min(x)"]),
        ([A.count(), A.count("x")], []),
        ([A.median("x"), A.quantile("x", 0.9), A.mode("x"), A.distinct("x")], []),
        ([A.moment_sketch("x", 0.1), A.moment_sketch("x", 0.9)], ["moments_10(x)"]),
        ([A.bloom_filter("i", 64, 2), A.bloom_filter("i", 64, 3)], ["bloom_filter_64(i)"] * 2),
    ],
    ids=lambda value: " ".join(map(str, value)) or "nothing",
)
def test_aggregates_share_operators(
    aggregates: list[A.Aggregate], operators: list[str], folds: Folds
) -> None:
    ask(W.sliding(10, 2), {f"a{k}": a for k, a in enumerate(aggregates)})
    assert sorted(folds.operators) == operators


def test_a_definition_is_shared_and_two_are_not(folds: Folds) -> None:
    def add(a: float, b: float) -> float:
        return a + b

    plain = A.define(lambda x: x, add, lambda p: p, 0.0, commutative=True)
    double = A.define(lambda x: 2 * x, add, lambda p: p, 0.0, commutative=True)
    rows = ask(
        W.sliding(10, 2),
        {"one": plain("x"), "same": plain("x"), "two": double("x"), "y": plain("y")},
    )
    assert sorted(folds.operators) == ["define(x)", "define(x)", "define(y)"]
    ones = np.array(rows["one"])
    assert rows["same"].to_pylist() == ones.tolist()
    assert rows["two"].to_pylist() == (2 * ones).tolist()


def test_sharing_changes_no_result() -> None:
    aggregates: dict[str, A.Aggregate] = {
        "sum": A.sum("i"),
        "mean": A.mean("i"),
        "var": A.var("x"),
        "std": A.std("x"),
        "max": A.max("x"),
    }
    together = ask([W.sliding(10, 2), W.session(3)], aggregates)
    for name, aggregate in aggregates.items():
        alone = ask([W.sliding(10, 2), W.session(3)], {name: aggregate})
        assert together.select(alone.column_names).equals(alone)


def test_the_fewest_operators_that_give_all() -> None:
    kinds = {"x": Kind.INTEGER, "y": Kind.INTEGER}
    of = {a: a.operators(kinds)[0] for a in (A.sum("x"), A.var("x"), A.mean("y"), A.std("x"))}
    shared = share(list(of.values()))
    sources = {source for source, _ in shared.values()}
    assert {(s.name, s.columns) for s in sources} == {
        ("whole_deviation", ("x",)),
        ("integer_sum", ("y",)),
    }
    source, which = shared[of[A.sum("x")]]
    assert [source.components[k].name for k in which] == ["high", "low"]


# Slices.


def bounds(windows: list[Window], given: pa.Table, key: str | None = None) -> set[int]:
    """Where any window begins or ends, among all events in order: found by the oracle."""
    numbered = given.sort_by([("k", "ascending"), ("t", "ascending")] if key else "t")
    numbered = numbered.append_column("at", pa.array(range(given.num_rows)))
    query = pf.Query(windows, {"at": A.collect("at")}, key=key, time="t")
    inside = query.over(numbered, engine="oracle").column("at").to_pylist()
    return {positions[0] for positions in inside} | {positions[-1] + 1 for positions in inside}


ONE: list[list[Window]] = [
    [W.sliding(10, 2)],
    [W.sliding(10, 3)],
    [W.tumbling(10)],
    [W.sliding(3, 10)],
    [W.count(7, 3)],
    [W.session(2)],
    [W.slide_by_tuple(10, 4)],
    [W.slide_by_time(5, 10)],
]
SEVERAL: list[list[Window]] = [
    [W.sliding(10, 2), W.sliding(20, 2)],
    [W.sliding(10, 2), W.sliding(12, 3), W.tumbling(7), W.session(2), W.count(5)],
    [W.sliding(length, 5) for length in range(5, 50)],
]


@pytest.mark.parametrize(
    "windows", ONE + SEVERAL, ids=lambda windows: f"{len(windows)} {windows[0]}"
)
def test_slices_are_cut_exactly_where_windows_begin_or_end(
    windows: list[Window], folds: Folds
) -> None:
    ask(windows, {"max": A.max("x")})
    (edges,) = folds.edges  # one slicing for all windows
    assert edges.tolist() == sorted(bounds(windows, table()))


def test_every_key_has_its_own_slices(folds: Folds) -> None:
    given = table(keys=3)
    windows: list[Window] = [W.sliding(10, 2), W.session(2)]
    pf.Query(windows, {"max": A.max("x")}, key="k", time="t").over(given)
    (edges,) = folds.edges
    assert edges.tolist() == sorted(bounds(windows, given, key="k"))


def test_operators_share_the_slices(folds: Folds) -> None:
    ask([W.sliding(10, 2), W.sliding(20, 5)], {"max": A.max("x"), "sum": A.sum("y")})
    one, other = folds.edges
    assert one.tolist() == other.tolist()


def test_no_event_is_folded_twice(folds: Folds) -> None:
    """The windows hold every event many times over; `fold` sees each once."""
    rows = ask([W.sliding(50, 1), W.sliding(100, 1)], {"n": A.count(), "max": A.max("x")})
    (edges,) = folds.edges
    assert sum(rows["n"].to_pylist()) > 100 * table().num_rows
    assert (np.diff(edges) > 0).all()
    assert edges[-1] - edges[0] == table().num_rows


def test_events_between_windows_are_folded_into_nothing() -> None:
    """A hopping window leaves gaps, and what lies there is in no row."""
    rows = ask(W.sliding(3, 10), {"n": A.count(), "sum": A.sum("i")})
    inside = [t % 10 < 3 for t in table()["t"].to_pylist()]
    assert sum(rows["n"].to_pylist()) == sum(inside)
    values = zip(table()["i"].to_pylist(), inside, strict=True)
    assert sum(rows["sum"].to_pylist()) == sum(v for v, kept in values if kept)
