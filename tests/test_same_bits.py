"""One query over one table has one answer, to the bit: whatever the clock says, or the cores are.

Float sums depend on how they are grouped, so nothing that is measured may decide the grouping.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.merging import pba
from paneflow.merging.machine import lanes
from paneflow.merging.machine.lanes import WORTH_LANES

ROOT = Path(__file__).resolve().parent.parent
SUMS: dict[str, A.Aggregate] = {
    "sum": A.sum("v"),
    "mean": A.mean("v"),
    "var": A.var("v"),
    "product": A.product("near_one"),
    "regression": A.linear_regression("v", "near_one"),
    "low": A.min("v"),
    "middle": A.median("v"),
}


def events(n: int, keys: int) -> pa.Table:
    """Numbers of very different sizes, so that every grouping of them has a sum of its own."""
    random = np.random.default_rng(n + keys)
    sizes = 10.0 ** random.integers(-12, 12, n)
    return pa.table(
        {
            "t": np.sort(random.integers(0, n, n)),
            "k": random.integers(0, keys, n) ** 2 // keys,
            "v": pa.array(random.standard_normal(n) * sizes, mask=random.random(n) < 0.1),
            "near_one": 1.0 + random.standard_normal(n) / 100,
        }
    )


def digest(rows: pa.Table) -> str:
    """What the bytes of a table are, as it would be sent."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return hashlib.sha256(sink.getvalue()).hexdigest()


def answers() -> list[str]:
    """Many keys with windows of all kinds, few long windows, and one key that slides finely."""
    many = events(150_000, 60)
    windows = [W.sliding(9_000, 100), W.session(20), W.count(50, 25), W.slide_by_tuple(700, 5)]
    few = [W.sliding(40_000, 10_000), W.sliding(90_001, 7)]
    one = events(WORTH_LANES + 20_000, 1)
    return [
        digest(pf.Query(windows, SUMS, key="k", time="t").over(many)),
        digest(pf.Query(W.sliding(9_000, 40), SUMS, key="k", time="t").over(many)),
        digest(pf.Query(few, SUMS, key="k", time="t").over(many)),
        digest(pf.Query(W.count(1024, 1), SUMS, time="t").over(one)),
        digest(pf.Query(W.count(6000, 1), {"s": A.sum("v")}, time="t").over(many, merge="pba")),
    ]


def answers_elsewhere(threads: int) -> list[str]:
    """The same in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", "from tests.test_same_bits import answers; print(*answers())"],
        cwd=ROOT,
        env={**os.environ, "PANEFLOW_THREADS": str(threads)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.processes
def test_fresh_processes_give_the_same_bytes() -> None:
    given = [answers_elsewhere(threads) for threads in (1, 2, 3)]
    assert given[0] == given[1] == given[2] and len(given[0]) == 5


@pytest.mark.exhaustive
def test_twenty_fresh_processes_give_the_same_bytes() -> None:
    given = [answers_elsewhere(1 + k % 4) for k in range(20)]
    assert all(each == given[0] for each in given)


@pytest.mark.long
def test_one_to_four_threads_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    for threads in (1, 2, 3, 4):
        monkeypatch.setenv("PANEFLOW_THREADS", str(threads))
        given.append(answers())
    assert given[0] == given[1] == given[2] == given[3]


@pytest.mark.parametrize("threads", ["0", "-1", "two", ""])
def test_a_number_of_threads_that_is_none_is_refused(
    threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PANEFLOW_THREADS", threads)
    query = pf.Query(W.tumbling(10), {"n": A.count()}, time="t")
    with pytest.raises(pf.QueryError, match="PANEFLOW_THREADS"):
        query.over(pa.table({"t": np.arange(200_000)}))


def test_no_stopwatch_decides_how_floats_are_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither lanes nor a second thread are chosen by time where that would show in a sum."""
    table = events(WORTH_LANES + 20_000, 1)
    fine = pf.Query(W.count(1024, 1), {"s": A.sum("v"), "p": A.product("near_one")}, time="t")
    long = pf.Query(W.count(6000, 1), {"s": A.sum("v"), "v": A.var("v")}, time="t")
    some = table.slice(0, 20_000)
    given = []
    for first in (True, False):
        seconds = iter([1.0, 2.0] * 99 if first else [2.0, 1.0] * 99)
        monkeypatch.setattr(lanes, "_TRIED", {})
        monkeypatch.setattr(lanes, "_seconds", lambda *_, seconds=seconds: next(seconds))
        monkeypatch.setattr(pba, "nanoseconds", lambda _, first=first: 0.0 if first else 1000.0)
        given.append((digest(fine.over(table)), digest(long.over(some, merge="pba"))))
    assert given[0] == given[1]
