"""Sources that are pushed by threads of their own give the oracle's rows."""

from __future__ import annotations

import os
import random
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from tests.multicore.support import HIVES
from tests.properties.compare import assert_same_rows

MANY = int(os.environ.get("PANEFLOW_RANDOM_DESIGNS", "3500"))
WINDOWS = (W.tumbling(7), W.sliding(12, 5), [W.sliding(20, 3), W.tumbling(4)])


def tables(r: random.Random, sources: int, disorder: int) -> list[pa.Table]:
    """Events of sources that pause, end early or start late, out of order by no more than that."""
    rng = np.random.default_rng(r.randint(0, 10**6))
    found = []
    for _ in range(sources):
        n = r.choice([0, 1, 50, 400])
        steps = rng.choice([0, 0, 1, r.choice([2, 30])], n)
        t = r.choice([0, 0, 25]) + np.cumsum(steps) + rng.integers(0, disorder + 1, n)
        v = rng.normal(size=n) * 10.0 ** rng.integers(-8, 8, n)
        found.append(pa.table({"t": t, "k": rng.integers(0, 9, n), "v": v}))
    return found


def pushed(
    query: pf.Query, strategy: str, sources: list[pa.Table], workers: int, seed: int
) -> pa.Table:
    """The rows of a stream whose sources are pushed at the same time, in batches of any length."""
    failed: list[BaseException] = []
    read: list[pa.Table] = []
    with query.open(workers=workers, strategy=strategy, sources=len(sources)) as stream:

        def push(source: int) -> None:
            r = random.Random(f"{seed} {source}")
            try:
                at = 0
                while at < len(sources[source]):
                    length = r.choice([1, 3, 40, 200])
                    stream.push(sources[source].slice(at, length), source)
                    at += length
                stream.end_source(source)
            except BaseException as error:
                failed.append(error)
                raise

        threads = [threading.Thread(target=push, args=(k,)) for k in range(len(sources))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stream.finish()
        read += stream.results()
        assert not failed
        assert stream.metrics().late == 0
    return pa.concat_tables(read) if read else None


def expected(query: pf.Query, sources: list[pa.Table]) -> pa.Table:
    return query.over(pa.concat_tables(sources), engine="oracle")


def check(strategy: str, seed: int) -> None:
    r = random.Random(f"{strategy} {seed}")
    disorder = r.choice([0, 0, 6])
    aggregates: dict[str, Any] = {"n": A.count(), "most": A.max("v"), "mean": A.mean("v")}
    query = pf.Query(WINDOWS[seed % 3], aggregates, key="k", time="t", lateness=disorder)
    sources = tables(r, r.choice([1, 2, 5, 20]), disorder)
    rows = pushed(query, strategy, sources, r.choice([1, 2, 8]), seed)
    wanted = expected(query, sources)
    assert_same_rows(query, wanted.slice(0, 0) if rows is None else rows, wanted)


@pytest.mark.parametrize("strategy", HIVES)
@pytest.mark.parametrize("seed", range(8))
def test_rows_are_the_oracles_for_any_sources(strategy: str, seed: int) -> None:
    check(strategy, seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("strategy", HIVES)
def test_rows_are_the_oracles_in_thousands_of_streams(strategy: str) -> None:
    for seed in range(MANY):
        try:
            check(strategy, 100 + seed)
        except Exception as error:
            raise AssertionError(f"seed {100 + seed}") from error


# Slices are merged into windows as by one worker, where it depends on what closes together how
# float sums are grouped.
@pytest.mark.parametrize("strategy", ["window_hive", "tuple_gate_parallel"])
def test_float_sums_are_the_same_to_the_bit_however_threads_are_scheduled(strategy: str) -> None:
    query = pf.Query(W.sliding(12, 5), {"sum": A.sum("v")}, key="k", time="t")
    r = random.Random(1)
    sources = [table for table in tables(r, 12, 0) if len(table)]
    runs = [pushed(query, strategy, sources, 1 + seed % 3, seed).to_pylist() for seed in range(5)]
    assert all(rows == runs[0] for rows in runs)
