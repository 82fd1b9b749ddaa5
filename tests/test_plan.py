"""The plan: what `explain` says, and that a choice that was forced changes no row."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates import SlowAggregateWarning
from paneflow.merging import MERGERS
from paneflow.planning.merge_choice import AVAILABLE
from paneflow.windows import Window
from tests.properties.cases import AGGREGATES, WINDOWS, Case, check, draw_case

TABLE = pa.table({"t": [1, 2, 3], "v": [1, 2, 3], "x": [0.5, 1.5, 2.5], "m": [True, False, True]})


def explained(
    aggregates: Mapping[str, A.Aggregate], *windows: Window, table: Any = TABLE, **options: Any
) -> pf.Plan:
    query = pf.Query(windows or (W.sliding(60, 1),), aggregates, time="t")
    return query.explain(table, **options)


def test_a_plan_says_who_does_what_and_why() -> None:
    plan = explained({"peak": A.max("x"), "n": A.count(), "mid": A.median("x")})
    assert plan.engine == "table"
    assert plan.merge == "auto"
    assert plan.operators == {"runs(x)": ("mid",), "max(x)": ("peak",), "count": ("n",)}
    text = str(plan)
    assert text.startswith("engine: table\nmerge: auto\nrows: ")
    assert "\noperators:\n" in text
    assert "  max(x)  for peak\n" in text
    assert "  runs(x)  for mid\n" in text
    assert "\nbecause:\n  - " in text


def test_shared_operators_are_named() -> None:
    aggregates = {"mean": A.mean("v"), "sum": A.sum("v"), "var": A.var("v")}
    plan = explained(aggregates)
    assert plan.operators == {"whole_deviation(v)": ("mean", "sum", "var")}
    assert "shared: whole_deviation(v) serves mean, sum, var" in plan.reasons


def test_operators_follow_the_types_of_the_table() -> None:
    aggregates: dict[str, A.Aggregate] = {"sum": A.sum("v")}
    assert list(explained(aggregates).operators) == ["integer_sum(v)"]
    assert list(explained(aggregates, table=None).operators) == ["float_sum(v)"]


def test_different_operators_are_not_called_shared() -> None:
    def add(a: float, b: float) -> float:
        return a + b

    plain = A.define(lambda x: x, add, lambda p: p, 0.0, commutative=True, name="plain")
    double = A.define(lambda x: 2 * x, add, lambda p: p, 0.0, commutative=True, name="double")
    sketches = {f"about_{k}": A.approx_distinct("x", lg_k=k) for k in (10, 12)}
    plan = explained({"one": plain("x"), "two": double("x"), **sketches})
    assert not any("shared" in reason for reason in plan.reasons)
    assert sorted(plan.operators.values()) == [("about_10",), ("about_12",), ("one",), ("two",)]
    assert {"plain(x)", "double(x)"} <= set(plan.operators)


def test_what_grows_is_said() -> None:
    plan = explained({"mid": A.median("x"), "all": A.collect("x"), "peak": A.max("x")})
    growing = [reason for reason in plan.reasons if "holistic" in reason]
    assert [reason.partition(" is ")[0] for reason in growing] == ["median(x)", "collect(x)"]


def test_the_class_of_windows_is_said() -> None:
    free = explained({"n": A.count()}, W.sliding(60, 1), W.tumbling(5))
    assert any("context free" in reason for reason in free.reasons)
    mixed = explained({"n": A.count()}, W.sliding(60, 1), W.session(5), W.punctuation("m"))
    assert not any(reason.startswith("all windows") for reason in mixed.reasons)
    assert any("session(5) is FCA" in reason for reason in mixed.reasons)
    assert any("punctuation(m) is FCF" in reason for reason in mixed.reasons)


def test_what_runs_as_python_is_said() -> None:
    lengths = A.define(
        lambda v: {v}, lambda a, b: a | b, len, frozenset(), commutative=True, samples=[1, 2]
    )
    with pytest.warns(SlowAggregateWarning):
        plan = explained({"kinds": lengths("v"), "peak": A.max("x")})
    (reason,) = (reason for reason in plan.reasons if "not compiled" in reason)
    assert "kinds" in reason and "peak" not in reason


def test_a_forced_choice_is_said() -> None:
    for merge in AVAILABLE:
        plan = explained({"peak": A.max("x")}, merge=merge)
        assert plan.merge == merge
        assert f"merge={merge} was requested" in plan.reasons
    assert explained({"peak": A.max("x")}, engine="oracle").engine == "oracle"


def test_a_plan_is_a_value() -> None:
    assert explained({"peak": A.max("x")}) == explained({"peak": A.max("x")})
    assert explained({"peak": A.max("x")}) != explained({"peak": A.min("x")})


@pytest.mark.parametrize("name", sorted(AGGREGATES))
def test_every_aggregate_can_be_explained(name: str) -> None:
    """With a table and without one, which the types of the columns are then not known from."""
    case = draw_case(random.Random(name), aggregates=(name,))
    for table in (None, case.table):
        users = {user for users in case.query.explain(table).operators.values() for user in users}
        assert users == set(case.query.aggregates)


@pytest.mark.parametrize("name", sorted(WINDOWS))
def test_every_window_can_be_explained(name: str) -> None:
    case = draw_case(random.Random(name), windows=(name,), aggregates=("count",))
    assert case.query.explain(case.table).reasons


# Forced choices give the same rows.


# Max and last are selective, an integer sum can be taken back, a mean of floats is neither.
LAWFUL = {"max": A.max("x"), "sum": A.sum("i"), "last": A.last("x"), "mean": A.mean("x")}
BROKEN = {"subtract": ("max", "last", "mean"), "slick_deque": ("mean",)}
"""What an algorithm refuses, for want of the law it rests on."""


@pytest.mark.parametrize(
    "merge",
    # Its kernels take seconds to compile, one for each of the aggregates.
    [pytest.param(m, marks=pytest.mark.long) if m == "fiba" else m for m in AVAILABLE],
)
@pytest.mark.parametrize("window", sorted(WINDOWS))
def test_a_forced_merge_gives_the_same_rows(window: str, merge: str) -> None:
    """Or is refused, if the aggregate breaks a law it rests on."""
    case = draw_case(random.Random(window), windows=(window,), aggregates=("count",))
    for name, aggregate in LAWFUL.items():
        query = pf.Query(case.query.windows, {name: aggregate}, key=case.query.key, time="t")
        if name in BROKEN.get(merge, ()):
            with pytest.raises(pf.UnsupportedError, match=f"{merge!r}.*choose"):
                query.over(case.table, merge=merge)
        else:
            check(Case(query, case.table), merge)


@pytest.fixture
def mergers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the algorithms that were set to work."""
    used: list[str] = []

    def spied(name: str, merger: type[Any]) -> type[Any]:
        class Spied(merger):  # type: ignore[misc]
            def __init__(self, *arguments: Any) -> None:
                used.append(name)
                super().__init__(*arguments)

        return Spied

    for name, merger in list(MERGERS.items()):
        monkeypatch.setitem(MERGERS, name, spied(name, merger))
    return used


@pytest.mark.parametrize("merge", AVAILABLE)
def test_a_forced_merge_is_really_used(merge: str, mergers: list[str]) -> None:
    selective = merge == "slick_deque"
    aggregate = A.max("x") if selective else A.sum("v")
    query = pf.Query([W.sliding(2, 1), W.tumbling(2)], {"r": aggregate}, time="t")
    query.over(TABLE, merge=merge)
    assert set(mergers) == {merge}


def test_every_merge_that_can_be_asked_for_exists() -> None:
    assert set(AVAILABLE) == set(MERGERS)


def test_the_cheaper_merge_is_chosen_for_each_window(mergers: list[str]) -> None:
    """A window that slides finely and one with few rows share their slices, not their merge."""
    table = pa.table({"t": range(400), "x": [float(t * t % 97) for t in range(400)]})
    fine, long = W.sliding(20, 1), W.tumbling(200)
    query = pf.Query({"fine": fine, "long": long}, {"peak": A.max("x")}, time="t")
    rows = query.over(table)
    assert sorted(mergers) == ["flat_fat", "sba"]
    assert rows.equals(query.over(table, engine="oracle"))
    mergers.clear()
    pf.Query(fine, {"peak": A.max("x")}, time="t").over(table)
    assert mergers == ["sba"]
