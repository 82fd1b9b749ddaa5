"""Every strategy gives the oracle's rows: any query, batches, number of workers, and pauses."""

from __future__ import annotations

import os
import random
import re

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.choosing import BY_NAME
from tests.multicore.refusals import REASONS, served_aggregates, served_windows
from tests.multicore.support import (
    HIVES,
    ONE_WORKER,
    TOPOLOGIES,
    Fed,
    asked_of,
    expected,
    random_helping,
    random_pauses,
    run,
    soon,
)
from tests.properties.cases import Case, affine, draw_case
from tests.properties.compare import assert_same_rows
from tests.seeds import some_first

EXHAUSTIVE = int(os.environ.get("PANEFLOW_RANDOM_TOPOLOGIES", "2000"))

SERVED = {
    name: (
        served_windows(name),
        served_aggregates(name, ("sliding" if name in HIVES else "count",)),
    )
    for name in BY_NAME
}
"""The windows and aggregates that each strategy is asked for; not all of them go together."""


def draw_served(r: random.Random, name: str, aggregates: tuple[str, ...]) -> tuple[Case, Fed]:
    """A random query that the strategy serves; those that it refuses on the way have a reason."""
    windows = SERVED[name][0]
    while True:
        case = draw_case(r, windows=windows, aggregates=aggregates)
        fed = Fed(case.query, case.table)
        why = BY_NAME[name].refuses(fed.query, fed.kinds)
        if why is None:
            return case, fed
        assert name in (*TOPOLOGIES, *HIVES)
        assert any(reason in why for reason in REASONS), why
        with pytest.raises(pf.UnsupportedError, match=re.escape(why)):
            BY_NAME[name](fed.query, fed.kinds, 2)


def check(r: random.Random, name: str, aggregates: tuple[str, ...]) -> None:
    case, fed = draw_served(r, name, aggregates)
    cuts = [r.randint(0, len(fed)) for _ in range(r.choice([0, 2, 10, 40]))]
    pauses = random_pauses(r.randint(0, 10**6)) if r.random() < 0.4 else None
    workers = r.randint(1, 9)
    with random_helping(r):
        rows, _ = run(BY_NAME[name], fed, workers, cuts, pauses, watermarks=r.random() < 0.5)
    assert_same_rows(case.query, rows, expected(case.query, case.table))


@pytest.mark.parametrize("seeds", some_first(4, 25))
@pytest.mark.parametrize("name", BY_NAME)
def test_any_query_over_any_stream(name: str, seeds: range) -> None:
    for seed in seeds:
        check(random.Random(f"any {seed}"), name, SERVED[name][1])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", BY_NAME)
def test_many_random_streams(name: str) -> None:
    for seed in range(EXHAUSTIVE):
        try:
            check(random.Random(seed), name, SERVED[name][1])
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_float_sums_are_the_same_to_the_bit_for_any_number_of_units(name: str) -> None:
    random_ = np.random.default_rng(3)
    n = 3000
    table = pa.table(
        {
            "t": np.sort(random_.integers(0, 600, n)),
            "k": random_.integers(0, 5, n),
            "v": random_.normal(size=n) * 10.0 ** random_.integers(-8, 8, n),
        }
    )
    query = pf.Query(
        [W.sliding(60, 7), W.tumbling(50), W.count(40, 15)],
        {"sum": A.sum("v"), "var": A.var("v")},
        key="k",
        time="t",
    )
    fed = Fed(query, table)
    several = [
        run(TOPOLOGIES[name], fed, workers, list(range(0, n, step)))[0]
        for workers, step in ((1, 500), (2, 100), (5, 333), (8, 50))
    ]
    for rows in several[1:]:
        assert rows.to_pylist() == several[0].to_pylist()


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("seed", range(4))
def test_windows_of_many_panes(name: str, seed: int) -> None:
    random_ = np.random.default_rng(seed)
    n = 300
    table = pa.table(
        {
            "t": np.cumsum(random_.choice([0, 0, 1, 2, 30], n)),
            "k": random_.integers(0, 3, n),
            "x": random_.integers(-40, 40, n) / 4,
        }
    )
    windows = [W.sliding(64, 1), W.sliding(97, 2, offset=3), W.sliding(100, 7), W.count(50, 1)]
    aggregates = {"sum": A.sum("x"), "n": A.count()}
    if name in HIVES:
        windows[3] = W.sliding(50, 1)
    else:
        aggregates |= {"first": A.first("x"), "last": A.last("x")}
    if isinstance(windows[seed], W.Count):  # no event comes behind the watermark for it
        aggregates["affine"] = affine("x")
    query = pf.Query(windows[seed], aggregates, key="k", time="t")
    workers = int(random_.integers(1, 9))
    cuts = [int(c) for c in random_.integers(0, n, 8)]
    rows, _ = run(BY_NAME[name], Fed(query, table), workers, cuts, watermarks=seed % 2 == 0)
    assert_same_rows(query, rows, expected(query, table))


@pytest.mark.parametrize("name", BY_NAME)
def test_many_more_units_than_cores(name: str) -> None:
    n = 300
    table = pa.table({"t": np.arange(n) // 3, "k": np.arange(n) % 5, "v": np.arange(n)})
    windows = asked_of(name, [W.sliding(12, 2), W.count(7, 3)])
    query = pf.Query(windows, {"sum": A.sum("v")}, key="k", time="t")
    rows, running = run(BY_NAME[name], Fed(query, table), 40, list(range(1, n, 2)))
    assert_same_rows(query, rows, expected(query, table))
    assert len(running.metrics()) == (1 if name in ONE_WORKER else 40)


@pytest.mark.parametrize("name", BY_NAME)
def test_an_empty_stream_has_no_rows(name: str) -> None:
    table = pa.table({"t": pa.array([], pa.int64()), "v": pa.array([], pa.float64())})
    windows = asked_of(name, [W.sliding(6, 2), W.count(3)])
    query = pf.Query(windows, {"sum": A.sum("v")}, time="t")
    rows, _ = run(BY_NAME[name], Fed(query, table), 3, [])
    assert rows.num_rows == 0


@pytest.mark.parametrize("name", BY_NAME)
def test_batches_without_events_change_nothing(name: str) -> None:
    table = pa.table({"t": [0, 1, 5], "v": [1, 2, 4]})
    windows = asked_of(name, [W.tumbling(4), W.count(2)])
    query = pf.Query(windows, {"sum": A.sum("v")}, time="t")
    cuts = [0, 0, 1, 1, 1, 3, 3]
    rows, _ = run(BY_NAME[name], Fed(query, table), 3, cuts, watermarks=True)
    assert_same_rows(query, rows, expected(query, table))


@pytest.mark.parametrize("name", BY_NAME)
def test_times_may_jump_far(name: str) -> None:
    far = 10**15
    times = [0, 1, far, far + 1, far + 50, far + 51, 4 * far]
    table = pa.table({"t": times, "v": [1, 2, 4, 8, 16, 32, 64]})
    query = pf.Query(W.sliding(10, 3, offset=-1), {"sum": A.sum("v")}, time="t")
    rows, _ = run(BY_NAME[name], Fed(query, table), 4, [1, 2, 3, 5, 6], watermarks=True)
    assert_same_rows(query, rows, expected(query, table))


@pytest.mark.parametrize("name", BY_NAME)
def test_a_watermark_makes_rows_final_without_further_events(name: str) -> None:
    table = pa.table({"t": [0, 1, 5], "v": [1, 2, 4]})
    query = pf.Query(W.tumbling(4), {"sum": A.sum("v")}, time="t")
    fed = Fed(query, table)
    running = BY_NAME[name](query, fed.kinds, 3)
    try:
        for batch in fed.batches([1, 2]):
            running.feed(batch)
        running.advance(8)
        parts = soon(running, 2)
    finally:
        running.stop()
    assert fed.rows(parts)["sum"].to_pylist() == [3, 4]


@pytest.mark.parametrize("name", BY_NAME)
def test_what_a_batch_ends_comes_with_the_watermark_of_that_batch(name: str) -> None:
    table = pa.table({"t": [0, 1, 9], "v": [1, 2, 4]})
    windows = asked_of(name, [W.tumbling(4), W.count(3)])
    query = pf.Query(windows, {"sum": A.sum("v")}, time="t")
    fed = Fed(query, table)
    running = BY_NAME[name](query, fed.kinds, 5)
    try:
        for batch in fed.batches([]):
            running.feed(batch)
        running.advance(9)
        parts = soon(running, len(windows))
    finally:
        running.stop()
    assert fed.rows(parts)["sum"].to_pylist() == [3, 7][: len(windows)]


@pytest.mark.parametrize("name", BY_NAME)
def test_units_that_meet_a_new_function_at_the_same_time(name: str) -> None:
    doubled = A.define(
        lift=lambda x: (x, 2 * x),
        combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lower=lambda p: p[0] + p[1],
        identity=(0, 0),
        commutative=True,
    )
    n = 400
    table = pa.table({"t": np.arange(n) // 8, "k": np.arange(n) % 50, "v": np.arange(n)})
    query = pf.Query([W.tumbling(5), W.sliding(9, 3)], {"d": doubled("v")}, key="k", time="t")
    rows, _ = run(BY_NAME[name], Fed(query, table), 9, list(range(0, n, 20)))
    assert_same_rows(query, rows, expected(query, table))


refused = [
    (W.session(3), A.sum("v"), "forward-context aware"),
    (W.slide_by_tuple(3, 2), A.sum("v"), "forward-context aware"),
    (W.punctuation("m"), A.sum("v"), "forward-context free"),
    (W.tumbling(3), A.median("v"), "keeps every value"),
    (W.tumbling(3), A.collect("v"), "keeps every value"),
    (W.tumbling(3), A.apply(lambda values: len(values), "v"), "keeps every value"),
    (W.tumbling(3), A.max("s"), "reads text"),
    (W.tumbling(3), affine("v"), "does not commute"),
]


@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize(("window", "aggregate", "reason"), refused, ids=str)
def test_what_cannot_be_served_is_refused_with_the_reason(
    name: str, window: W.Window, aggregate: A.Aggregate, reason: str
) -> None:
    table = pa.table({"t": [1], "v": [1.0], "s": ["a"], "m": [True]})
    query = pf.Query(window, {"a": aggregate}, time="t")
    kinds = Fed(query, table).kinds
    why = TOPOLOGIES[name].refuses(query, kinds)
    assert why is not None
    assert reason in why
    with pytest.raises(pf.UnsupportedError, match=reason):
        TOPOLOGIES[name](query, kinds, 2)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_windows_that_overlap_millions_of_times_are_left_to_panes(name: str) -> None:
    table = pa.table({"t": [5, 10**7], "v": [1, 2]})
    query = pf.Query(W.sliding(10**7, 2, offset=-1), {"sum": A.sum("v")}, time="t")
    why = TOPOLOGIES[name].refuses(query, Fed(query, table).kinds)
    if name == "pane_line":
        assert why is None
    else:
        assert why is not None
        assert "overlaps 5,000,000 times" in why
