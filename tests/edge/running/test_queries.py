"""Trees of real processes answer random questions, and what needs more than slices."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.edge.question import COMPLETE
from tests.edge.running.events import check, push, sensors
from tests.edge.running.killer import check_kills
from tests.edge.running.real_trees import RealTree
from tests.edge.trees import draw_shape, expected
from tests.multicore.stream_cases import StreamCase, draw_stream
from tests.properties.compare import assert_same_rows

pytestmark = [pytest.mark.processes, pytest.mark.long]

Grow = Callable[..., RealTree]

ASKING = {
    "quantiles": pf.Query(
        W.sliding(60, 20), {"median": A.median("v"), "p99": A.quantile("v", 0.99)}, time="t"
    ),
    "counts": pf.Query(W.count(50), {"n": A.count(), "peak": A.max("v")}, time="t"),
    "events": pf.Query(W.count(7, 3), {"all": A.collect("v")}, key="k", time="t"),
}
"""Questions for which the root asks child nodes, or needs more than slices of time."""


@pytest.mark.parametrize("name", ASKING)
def test_what_needs_more_than_slices(grow: Grow, name: str) -> None:
    tree = grow(query=ASKING[name])
    tree.start()
    sources = sensors(tree)
    push(sources, 0, 300, step=20)
    check(tree, sources, 300)


@pytest.mark.parametrize("name", ["quantiles", "counts"])
def test_killed_nodes_are_asked_again(grow: Grow, name: str) -> None:
    check_kills(grow(query=ASKING[name]), seed=1, kills=10)


def run(case: StreamCase, r: random.Random, grow: Grow) -> None:
    """A stream's pushes, each source to a child node of its own, in a random tree."""
    tree = grow(draw_shape(r, case.sources), case.query, case.schema)
    tree.start()
    sensors = [tree.sensor(f"c{k}", "s") for k in range(case.sources)]
    for source, events in case.pushes:
        sensors[source].push(events)
    for sensor in sensors:
        sensor.close()
    right = expected(case, tree.question)
    rows = tree.finish(right.num_rows)
    assert all(rows[COMPLETE].to_pylist())
    assert_same_rows(case.query, rows.drop_columns(COMPLETE), right)
    tree.close()


@pytest.mark.parametrize("seed", range(5))
def test_random_questions(grow: Grow, seed: int) -> None:
    r = random.Random(seed)
    run(draw_stream(r), r, grow)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(100, 150))
def test_fifty_random_questions(grow: Grow, seed: int) -> None:
    r = random.Random(seed)
    run(draw_stream(r), r, grow)
