"""Streams whose slices are merged by an algorithm that was asked for: same rows, or a refusal."""

from __future__ import annotations

import random
from functools import partial

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.choosing import BY_NAME
from paneflow.engines.multicore.stream import Stream
from paneflow.planning.merge_choice import AVAILABLE
from tests.bad_input.refusing import refused
from tests.multicore.straggler_model import Case, Model, draw, pushes, sessions, time_windows
from tests.multicore.support import ONE_WORKER
from tests.properties.compare import assert_same_rows

EXACT: dict[str, A.Aggregate] = {"n": A.count(), "sum": A.sum("v")}
ORDERED = {"last": A.last("v")}
FEW = dict.fromkeys(AVAILABLE, EXACT | ORDERED) | {"subtract": EXACT, "slick_deque": EXACT}
SELECTING = {"most": A.max("x"), "least": A.min("v")}
COUNTED = EXACT | {"exact": A.count("x")}
ANY = COUNTED | SELECTING | {"first": A.first("v"), "mean": A.mean("x")}
MORE = dict.fromkeys(AVAILABLE, ANY) | {"subtract": COUNTED, "slick_deque": COUNTED | SELECTING}
QUICK = ("subtract", "two_stacks", "daba", "slick_deque")
"""One of each kind, of which the kernels do not take long to compile."""
QUERY = pf.Query(W.sliding(10, 2), {"sum": A.sum("v"), "peak": A.max("v")}, time="t")


def drawn(r: random.Random, aggregates: dict[str, A.Aggregate], strategy: str) -> Case:
    """A stream with slices to merge, of which some come late."""
    windows = time_windows(r) + (sessions(r) if strategy == "single" else [W.count(3, 2)])
    windows.append(W.sliding(r.randint(9, 30), r.randint(1, 2)))
    case = draw(r, windows, aggregates)
    while not any(isinstance(w, W.Sliding) for w in case.query.windows.values()):
        case = draw(r, windows, aggregates)
    return case


def check(seed: int, merge: str, strategy: str, aggregates: dict[str, A.Aggregate]) -> None:
    r = random.Random(f"{merge} {strategy} {seed}")
    case = drawn(r, aggregates, strategy)
    model = Model(case.query, case.sources)
    model.replay(case.arrivals)
    expected, got = model.rows(), []
    with Stream(case.query, r.randint(1, 3), strategy, case.sources, merge=merge) as stream:
        for _, source, events in pushes(r, case):
            if events is None:
                stream.end_source(source)
            else:
                stream.push(events, source)
            if r.random() < 0.3:
                got += stream.results(r.choice([0, 0.001]))
        stream.finish()
        got += stream.results()
        assert f"{merge} for" in str(stream.plan)
    made = pa.concat_tables([expected.slice(0, 0), *got])
    assert_same_rows(case.query, made, expected)


@pytest.mark.parametrize("strategy", ["single", "slices", "active"])
@pytest.mark.parametrize(
    "merge", [m if m in QUICK else pytest.param(m, marks=pytest.mark.long) for m in AVAILABLE]
)
def test_every_algorithm_gives_the_same_rows(merge: str, strategy: str) -> None:
    for seed in range(5):
        check(seed, merge, strategy, FEW[merge])


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["single", "active"])
@pytest.mark.parametrize("merge", AVAILABLE)
def test_every_algorithm_merges_all_it_may(merge: str, strategy: str) -> None:
    for seed in range(5):
        check(seed, merge, strategy, MORE[merge])


@pytest.mark.parametrize("merge", ["subtract", "daba", "fiba"])
def test_early_rows_are_merged_so_too(merge: str) -> None:
    query = pf.Query(W.sliding(10, 1), {"sum": A.sum("v")}, time="t")
    events = [{"t": t, "v": t} for t in range(40)]
    got = []
    with query.open(merge=merge, emit="updates") as stream:
        for event in events:
            stream.push([event])
            got += list(stream.results())
        stream.finish()
        got += list(stream.results())
    rows = pa.concat_tables(got)
    rows = rows.filter(rows["final"]).drop_columns(["final"])
    assert rows.to_pylist() == query.over(events)


@pytest.mark.parametrize("strategy", sorted(set(BY_NAME) - {*ONE_WORKER, "slices", "active"}))
def test_strategies_that_merge_no_slices_refuse(strategy: str) -> None:
    ask = partial(QUERY.open, 2, strategy, merge="daba")
    refused(pf.UnsupportedError, ask, strategy, "merge='daba'", "'single'")


def test_several_workers_merge_so_too() -> None:
    aggregates = {"sum": A.sum("v"), "peak": A.max("v")}
    keyed = pf.Query(W.sliding(10, 2), aggregates, key="k", time="t")
    with keyed.open(workers=3, merge="daba") as stream:
        assert stream.plan.strategy == "slices"
        assert "merge='daba' was asked for" in str(stream.plan)


def test_windows_without_slices_do_not_keep_others_from_being_merged_so() -> None:
    mixed = pf.Query([W.sliding(10, 2), W.session(3)], {"sum": A.sum("v")}, time="t")
    with mixed.open(workers=3, merge="daba") as stream:
        assert stream.plan.strategy == "single"
        assert "merge='daba' was asked for" in str(stream.plan)


def test_an_algorithm_whose_law_is_broken_is_refused_with_the_law() -> None:
    refused(pf.UnsupportedError, partial(QUERY.open, merge="subtract"), "subtract", "invertible")


def test_whether_a_law_holds_may_depend_on_the_types() -> None:
    sums = pf.Query(W.sliding(10, 2), {"sum": A.sum("v")}, time="t")
    with sums.open(merge="subtract") as stream:
        stream.push([{"t": 1, "v": 1}])
    with sums.open(merge="subtract") as stream:
        push = partial(stream.push, [{"t": 1, "v": 1.5}])
        refused(pf.UnsupportedError, push, "subtract", "invertible")


@pytest.mark.parametrize(
    "query",
    [
        pf.Query(W.session(3), {"sum": A.sum("v")}, time="t"),
        pf.Query(W.sliding(10, 2), {"all": A.collect("v")}, time="t"),
        pf.Query(W.count(3), {"sum": A.sum("v")}, time="t"),
    ],
    ids=str,
)
def test_where_nothing_is_merged_no_algorithm_can_be_chosen(query: pf.Query) -> None:
    refused(pf.UnsupportedError, partial(query.open, merge="daba"), "merge='daba'", "no effect")


def test_an_unknown_algorithm() -> None:
    refused(pf.QueryError, partial(QUERY.open, merge="magic"), "'magic'", "'daba'")
