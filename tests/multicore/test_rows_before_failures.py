"""A user's function fails in the middle of a fast stream: every strategy gives the same rows.

Events are worked on in total order, each moves the watermark to its time, and windows close in the
order of their ends. Everything that comes before the first call that fails is given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.choosing import BY_NAME
from paneflow.engines.multicore.pump import last_steps
from paneflow.engines.multicore.tuning import tuning
from tests.multicore.support import asked_of
from tests.properties.compare import assert_same_rows

STRATEGIES = ["auto", *BY_NAME]
WHOLE = ["auto", "active", "agnostic"]
"""Strategies that take functions of whole windows."""
FAILS = 2345
TELLING = "processing unit|raised|the stream failed"


def lift_it(x: float) -> float:
    return 1 / (x - 3)


def combine_it(a: float, b: float) -> float:
    return 0.0 / (b - 3) + a + b


def lower_it(p: float) -> float:
    return 1 / (p - 3)


def python_it(x: float) -> float:
    if x == 3:
        raise LookupError(f"three is not welcome: {[x]}")
    return x


def apply_it(values: Any) -> float:
    if values.min() == 3:
        raise ArithmeticError("three is not welcome")
    return float(values.sum())


def plain(x: float) -> float:
    return x


def add(a: float, b: float) -> float:
    return a + b


def least(a: float, b: float) -> float:
    return min(a, b)


def defined(lift: Any, combine: Any, lower: Any, identity: float) -> Any:
    return A.define(lift, combine, lower, identity, commutative=True, samples=[1.0, 2.0])("v")


@pytest.fixture(scope="module")
def functions() -> dict[str, Any]:
    return {
        "lift": defined(lift_it, add, plain, 0.0),
        "combine": defined(plain, combine_it, plain, 0.0),
        "lower": defined(plain, least, lower_it, 100.0),
        "apply": A.apply(apply_it, "v"),
    }


WINDOWS = {
    "tumbling": W.tumbling(10),
    "sliding": W.sliding(20, 5),
    "count": W.count(6, 4),
}


def asked(strategy: str) -> list[str]:
    """The windows that a strategy is asked for."""
    windows = asked_of(strategy, list(WINDOWS.values()))
    return [name for name, window in WINDOWS.items() if window in windows]


def events(n: int = 3000) -> pa.Table:
    values = np.full(n, 50.0)
    values[FAILS] = 3.0
    return pa.table({"t": np.arange(n), "k": np.arange(n) % 3, "v": values})


def expected(query: pf.Query, table: pa.Table, at_close: bool) -> pa.Table:
    """The oracle's rows of all that comes before the failure; they are compared without values."""
    if not at_close:  # as if nothing had come from the failing event on
        rows = query.over(table.slice(0, FAILS), engine="oracle")
        return rows.filter(pc.less_equal(rows["end"], table["t"][FAILS - 1]))
    rows = query.over(table, engine="oracle")
    failed = rows.filter(pc.equal(rows["least"], 3.0))
    return rows.filter(pc.less(rows["end"], pc.min(failed["end"])))


def read(stream: Any) -> tuple[list[pa.Table], pf.PaneflowError]:
    """All rows, and what comes behind them."""
    rows: list[pa.Table] = []
    with pytest.raises(pf.PaneflowError, match=TELLING) as caught:
        for _ in range(30):
            rows += stream.results(1.0)
    return rows, caught.value


def check(
    strategy: str, workers: int, aggregate: Any, window: W.Window, at_close: bool, finish: bool
) -> None:
    table = events()
    query = pf.Query(window, {"a": aggregate, "least": A.min("v")}, key="k", time="t")
    sane = pf.Query(window, {"least": A.min("v")}, key="k", time="t")
    with query.open(workers=workers, strategy=strategy) as stream:
        stream.push(table)
        if finish:
            stream.finish()
        rows, _ = read(stream)
        with pytest.raises(pf.PaneflowError, match=TELLING):
            stream.push(table)
    wanted = expected(sane, table, at_close)
    assert wanted.num_rows > 100
    got = pa.concat_tables([t.drop_columns(["a"]) for t in rows])
    assert_same_rows(sane, got, wanted)


ROLES = ["lift", "combine", "lower"]
CASES = [
    (
        ROLES[(place + workers) % 3],
        strategy,
        workers,
        asked(strategy)[workers % len(asked(strategy))],
    )
    for place, strategy in enumerate(STRATEGIES)
    for workers in (1, 2, 3, 4)
]


@pytest.mark.parametrize(("role", "strategy", "workers", "window"), CASES)
def test_all_rows_before_a_failing_step_of_a_defined_function_are_given(
    role: str, strategy: str, workers: int, window: str, functions: dict[str, Any]
) -> None:
    finish = (workers + len(strategy)) % 2 == 0
    check(strategy, workers, functions[role], WINDOWS[window], role == "lower", finish)


@pytest.mark.exhaustive
@pytest.mark.parametrize("finish", [False, True])
@pytest.mark.parametrize(
    ("strategy", "window"), [(s, window) for s in STRATEGIES for window in asked(s)]
)
@pytest.mark.parametrize("workers", [1, 2, 3, 4])
@pytest.mark.parametrize("role", ROLES)
def test_all_rows_before_any_failing_step_are_given(
    role: str, strategy: str, workers: int, window: str, finish: bool, functions: dict[str, Any]
) -> None:
    check(strategy, workers, functions[role], WINDOWS[window], role == "lower", finish)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("strategy", WHOLE)
def test_all_rows_before_a_window_that_a_function_fails_on_are_given(
    strategy: str, workers: int, window: str, functions: dict[str, Any]
) -> None:
    check(strategy, workers, functions["apply"], WINDOWS[window], True, finish=False)


@pytest.mark.filterwarnings("ignore::paneflow.aggregates.defined.SlowAggregateWarning")
@pytest.mark.parametrize("strategy", ["auto", "hash_once", "pane_ring", "active", "agnostic"])
def test_all_rows_before_a_plain_python_function_fails_are_given(strategy: str) -> None:
    check(strategy, 2, defined(python_it, add, plain, 0.0), W.sliding(20, 5), False, finish=True)


def late_to_fail(values: Any) -> float:
    if values.max() >= 900:
        raise ArithmeticError("no windows from 900 on")
    return float(values.sum())


@pytest.mark.parametrize("strategy", WHOLE)
@pytest.mark.parametrize("workers", [1, 2])
def test_one_event_that_ends_many_windows_gives_those_before_the_one_that_fails(
    strategy: str, workers: int
) -> None:
    query = pf.Query(W.sliding(100, 10), {"a": A.apply(late_to_fail, "t")}, time="t")
    with query.open(workers=workers, strategy=strategy) as stream:
        # The last event ends everything that is open, among it windows with 900 or more.
        stream.push(pa.table({"t": [*range(950), 100_000]}))
        rows, _ = read(stream)
    # [800, 900) ends with 899; [810, 910) is the first with 900.
    ends = pa.concat_tables(rows)["end"].to_pylist()
    assert ends == list(range(10, 901, 10))


@pytest.mark.parametrize("strategy", ["pane_line", "round_robin", "active"])
def test_what_is_kept_for_a_failure_is_limited(
    strategy: str, functions: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "most_kept", 1000)
    kept: list[int] = []
    add_step = last_steps.LastSteps.add

    def noted(self: Any, *step: Any) -> None:
        add_step(self, *step)
        kept.append(self._kept)

    monkeypatch.setattr(last_steps.LastSteps, "add", noted)
    query = pf.Query(W.tumbling(10), {"a": functions["lift"]}, time="t")
    table = events(6000)
    rows: list[pa.Table] = []
    with query.open(workers=2, strategy=strategy) as stream:
        stream.push(table.slice(0, 2000))
        rows += [next(stream.results(30))]
        for start in range(2000, FAILS - 45, 50):  # windows are short: enough is kept
            stream.push(table.slice(start, 50))
            rows += stream.results(30 if not rows else 0.01)
        stream.push(table.slice(FAILS - 45, 200))
        more, _ = read(stream)
    assert max(kept) <= 1000
    assert pa.concat_tables(rows + more)["end"].to_pylist() == list(range(10, FAILS, 10))
