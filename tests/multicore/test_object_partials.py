"""Aggregates whose partials are Python objects: every strategy serves them, or says why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.choosing import BY_NAME
from tests.multicore.refusals import served_windows
from tests.properties.compare import assert_same_rows

TABLE = pa.table(
    {
        "t": list(range(40)),
        "k": [k % 3 for k in range(40)],
        "v": [k * k % 7 for k in range(40)],
        "s": [chr(97 + k % 5) for k in range(40)],
    }
)
Parts = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any], Any]
OBJECTS: dict[str, Parts] = {
    "dict": (lambda v: {v: 1}, lambda a, b: {**a, **b}, len, {}),
    "list": (lambda v: [v], lambda a, b: sorted(a + b), lambda p: p[0], []),
    "set": (lambda v: frozenset([v]), lambda a, b: a | b, len, frozenset()),
    "text": (lambda v: str(v), lambda a, b: max(a, b), lambda p: p, ""),
    "objects in a tuple": (
        lambda v: ([v], 1),
        lambda a, b: (sorted(a[0] + b[0]), a[1] + b[1]),
        lambda p: p[0][0] + p[1],
        ([], 0),
    ),
}
WINDOWS = {"sliding": W.sliding(8, 2), "count": W.count(4, 2), "session": W.session(2)}


@pytest.mark.filterwarnings("ignore::paneflow.aggregates.SlowAggregateWarning")
@pytest.mark.parametrize(
    ("strategy", "window"),
    [
        (strategy, window)
        for strategy in ("auto", *BY_NAME)
        for window in WINDOWS
        if window in served_windows(strategy)
    ],
)
def test_python_objects_travel_between_workers(strategy: str, window: str) -> None:
    aggregates = {
        name: A.define(*parts, commutative=True, samples=[1, 2, 3])("v")
        for name, parts in OBJECTS.items()
    }
    query = pf.Query(WINDOWS[window], aggregates, key="k", time="t")
    with query.open(workers=3, strategy=strategy) as stream:
        for start in range(0, 40, 8):
            stream.push(TABLE.slice(start, 8))
        stream.finish()
        rows = pa.concat_tables(stream.results())
    assert_same_rows(query, rows, query.over(TABLE, engine="oracle"))


@pytest.mark.filterwarnings("ignore::paneflow.aggregates.SlowAggregateWarning")
def test_auto_finds_a_strategy_for_text() -> None:
    longest = A.define(
        lambda s: s, lambda a, b: max(a, b), lambda p: p, "", commutative=True, samples=["a", "b"]
    )
    query = pf.Query(W.sliding(8, 2), {"longest": longest("s")}, time="t")
    with query.open(workers=3) as stream:
        stream.push(TABLE)
        stream.finish()
        rows = pa.concat_tables(stream.results())
    assert_same_rows(query, rows, query.over(TABLE, engine="oracle"))
