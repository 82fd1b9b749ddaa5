"""Designs for many inputs return the oracle's rows, however their sources push (definition 2)."""

from __future__ import annotations

import itertools
import os
import random
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.tuning import tuning
from tests.properties.compare import assert_same_rows
from tests.waiting import wait_until

DESIGNS = ("multi_queue", "multi_queue_lock_free", "tuple_gate")
MANY = int(os.environ.get("PANEFLOW_RANDOM_DESIGNS", "10000"))
LATENESS = 6
WINDOWS = (
    W.sliding(9, 4),
    W.tumbling(5),
    W.count(4, 3),
    W.session(2),
    W.slide_by_tuple(5, 3),
)
AGGREGATES = {
    "sum": A.sum("v"),
    "first": A.first("v"),
    "last": A.last("v"),
    "all": A.collect("v"),
}


class Inputs:
    """Random sources: how many, what they bring, and in which pieces."""

    def __init__(self, r: random.Random) -> None:
        self.sources = r.choice([1, 2, 3, 5, 20])
        span = r.choice([3, 40, 400])
        self.tables: list[pa.Table] = []
        for source in range(self.sources):
            n = r.choice([0, 1, 7, 40, 120])
            t = np.sort([r.randrange(span) for _ in range(n)]).astype(np.int64)
            if r.random() < 0.3 and n:  # in disorder, but never late
                t = t[np.argsort(t + np.array([r.uniform(0, LATENESS) for _ in t]), kind="stable")]
            v = 1000 * source + np.arange(n)
            self.tables.append(pa.table({"t": t, "k": v % 3, "v": v}))
        self.query = pf.Query(
            r.sample(WINDOWS, r.randint(1, 2)),
            dict(r.sample(sorted(AGGREGATES.items()), r.randint(1, 3))),
            key=r.choice([None, "k"]),
            time="t",
            lateness=LATENESS,
        )

    @property
    def rows(self) -> pa.Table:
        return self.query.over(pa.concat_tables(self.tables), engine="oracle")

    def pieces(self, r: random.Random, source: int) -> list[pa.Table]:
        table = self.tables[source]
        cuts = sorted({0, table.num_rows, *(r.randrange(table.num_rows + 1) for _ in range(4))})
        return [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]


def read(stream: pf.Stream, inputs: Inputs) -> pa.Table:
    """Finish, and read what is left."""
    stream.finish()
    rows = list(stream.results())
    assert stream.metrics().late == 0
    schema = inputs.query.result_schema(inputs.tables[0].schema)
    return pa.concat_tables([schema.empty_table(), *rows])


def check_in_turn(r: random.Random, design: str) -> None:
    """One thread pushes to all sources, which begin late, pause and end early."""
    inputs = Inputs(r)
    left = {source: inputs.pieces(r, source) for source in range(inputs.sources)}
    with inputs.query.open(strategy=design, sources=inputs.sources) as stream:
        while left:
            source = r.choice(list(left)[: r.choice([1, 2, 20])])
            if left[source]:
                stream.push(left[source].pop(0), source)
            else:
                del left[source]
                if r.random() < 0.5:
                    stream.end_source(source)
        rows = read(stream, inputs)
    assert_same_rows(inputs.query, rows, inputs.rows)


def check_at_once(r: random.Random, design: str) -> None:
    """Every source has a thread of its own."""
    inputs = Inputs(r)
    dice = [random.Random(r.random()) for _ in range(inputs.sources)]
    with inputs.query.open(strategy=design, sources=inputs.sources) as stream:

        def push(source: int) -> None:
            for piece in inputs.pieces(dice[source], source):
                if dice[source].random() < 0.2:
                    time.sleep(dice[source].choice([0.0, 0.0005]))
                stream.push(piece, source)
            if dice[source].random() < 0.5:
                stream.end_source(source)

        threads = [threading.Thread(target=push, args=(k,)) for k in range(inputs.sources)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rows = read(stream, inputs)
    assert_same_rows(inputs.query, rows, inputs.rows)


def check_any(seed: object, design: str) -> None:
    r = random.Random(f"{design} {seed}")
    with pytest.MonkeyPatch.context() as patch:
        if r.random() < 0.7:  # arenas that are often full, and runs of a few tuples
            patch.setattr(tuning, "merger_room", 1)
            patch.setattr(tuning, "least_source_room", r.choice([4, 32]))
            patch.setattr(tuning, "tuples_per_node", r.choice([2, 8]))
            patch.setattr(tuning, "longest_node", r.choice([2, 5]))
            patch.setattr(tuning, "taken_at_once", r.choice([3, 64]))
        try:
            r.choice([check_in_turn, check_at_once])(r, design)
        except Exception as error:
            raise AssertionError(f"seed {seed}, {design}") from error


@pytest.mark.parametrize("design", DESIGNS)
def test_rows_are_those_of_the_oracle(design: str) -> None:
    for seed in range(40):
        check_any(seed, design)


@pytest.mark.exhaustive
def test_ten_thousand_random_runs() -> None:
    for seed in range(MANY):
        check_any(f"many {seed}", DESIGNS[seed % len(DESIGNS)])


@pytest.mark.parametrize("design", DESIGNS)
def test_long_pushes_are_merged_in_pieces(design: str) -> None:
    n = 3 * tuning.pushed_piece + 7
    table = pa.table({"t": np.arange(n), "v": np.arange(n) % 1000})
    query = pf.Query(W.tumbling(500), {"sum": A.sum("v")}, time="t")
    with query.open(strategy=design, sources=2) as stream:
        stream.push(table, 0)
        stream.push(table, 1)
        stream.finish()
        rows = pa.concat_tables(stream.results())
    assert rows.equals(query.over(pa.concat_tables([table, table])))


@pytest.mark.parametrize("design", DESIGNS)
def test_the_plan_says_who_does_what(design: str) -> None:
    query = pf.Query(W.tumbling(5), {"sum": A.sum("v")}, time="t")
    with query.open(workers=4, strategy=design, sources=3) as stream:
        assert stream.plan.strategy == design
        assert stream.plan.workers == 1
        assert "the threads that push merge their sources" in str(stream.plan)


@pytest.mark.parametrize("design", DESIGNS)
def test_what_waits_in_a_merger_counts_as_held(design: str) -> None:
    query = pf.Query(W.tumbling(5), {"sum": A.sum("v")}, time="t")
    with query.open(strategy=design, sources=2) as stream:
        stream.push([{"t": 1, "v": 1}, {"t": 2, "v": 1}], 0)
        wait_until(lambda: stream.metrics().held == 2)
