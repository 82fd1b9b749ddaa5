"""`auto` with one worker and with two: events a second over a grid of workloads.

*Shared* workloads are those in which workers share batches: sum, mean, max and var, 100
and 10,000 keys, windows that overlap 1, 60 and 600 times, batches of 10,000 and 50,000 events, and
a slide every 100,000 events. The others are short batches, several windows, several sources,
disorder, functions of a user's own, cheap and expensive, and what is not made of slices.

One worker and two take turns, round by round, and all rows are read. Two threads that only count
show how much of two cores there was before and after a round. Rounds go on until enough of them
had nearly all of both, or there have been too many; those that had most count.
"""

from __future__ import annotations

import gc
import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import paneflow as pf
from bench.multicore import pictures
from bench.multicore.streams import expensive
from bench.report import Sheet
from paneflow import aggregates as A, windows as W
from paneflow.compiling import compiled

ROUNDS, MOST_ROUNDS = 3, 9
NEARLY_TWO = 1.8
SLIDE = 100_000
FASTER, NOT_SLOWER = 1.6, 0.9
Figures = dict[str, Any]

cheap = A.define(
    lift=lambda x: x,
    combine=lambda a, b: a + b,
    lower=lambda p: p,
    identity=0.0,
    commutative=True,
    name="cheap_sum",
    samples=[0.25, 2.0],
)
fading = A.define(
    lift=lambda x: (0.5, x),
    combine=lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]),
    lower=lambda p: p[1],
    identity=(1.0, 0.0),
    commutative=False,
    name="fading_sum",
    samples=[0.25, 2.0],
)


@dataclass(frozen=True)
class Workload:
    """A query, and the stream that it is asked of."""

    windows: Any
    aggregates: Any
    keys: int = 100
    length: int = 10_000
    events: int = 1_000_000
    sources: int = 1
    lateness: int = 0
    disorder: int = 0
    shared: bool = False
    """Whether two workers have to be faster, and not only as fast."""

    @property
    def query(self) -> pf.Query:
        return pf.Query(self.windows, self.aggregates, key="k", time="t", lateness=self.lateness)

    def pushes(self, events: int) -> list[tuple[int, pa.RecordBatch]]:
        """Batches and their sources: one event per tick, with a random key."""
        rng = np.random.default_rng(7)
        t = np.arange(events) + rng.integers(0, self.disorder + 1, events)
        text = np.array(["a", "bb", "ccc"])[rng.integers(0, 3, events)]
        given = pa.record_batch(
            {
                "t": t,
                "k": rng.integers(0, self.keys, events),
                "v": rng.random(events),
                "s": text,
                "m": rng.random(events) < 0.01,
            }
        )
        starts = range(0, events, self.length)
        return [(k % self.sources, given.slice(a, self.length)) for k, a in enumerate(starts)]


def workloads() -> dict[str, Workload]:
    """All of them, by name."""
    found = {}
    values = {"sum": A.sum("v"), "mean": A.mean("v"), "max": A.max("v"), "var": A.var("v")}
    for keys, events in ((100, 8_000_000), (10_000, 4_000_000)):
        for overlap in (1, 60, 600):
            for length in (10_000, 50_000):
                for name, aggregate in values.items():
                    title = f"{name}, {keys:,} keys, overlap {overlap}, batches of {length:,}"
                    window = W.sliding(SLIDE * overlap, SLIDE)
                    found[title] = Workload(
                        window, {"r": aggregate}, keys, length, events, shared=True
                    )
    return found | _others()


def _others() -> dict[str, Workload]:
    fine, total = W.sliding(60_000, 1000), {"r": A.mean("v")}
    both = {"fine": fine, "visit": W.session(50)}
    several = {"a": fine, "b": W.tumbling(7000), "c": W.sliding(100_000, 5000)}
    every = {"sum": A.sum("v"), "top": A.max("v"), "var": A.var("v"), "n": A.count()}
    ends = {"first": A.first("v"), "last": A.last("v")}
    short = {
        f"mean, {keys:,} keys, batches of {length:,}": Workload(
            fine, total, keys, length, events=length * 10_000 if length < 1000 else 3_000_000
        )
        for keys in (100, 10_000)
        for length in (10, 100, 1000)
    }
    return short | {
        "one key, mean": Workload(fine, total, keys=1),
        "a slide every 1,000 events, max": Workload(fine, {"r": A.max("v")}),
        "a slide every 100 events, mean": Workload(W.sliding(6000, 100), total),
        "three windows, four aggregates": Workload(several, every),
        "a session beside a sliding window": Workload(both, total),
        "first and last": Workload(fine, ends),
        "two sources, mean": Workload(fine, total, sources=2),
        "two sources, first and last": Workload(fine, ends, sources=2),
        "disorder within the lateness": Workload(fine, total, lateness=500, disorder=500),
        "a cheap function": Workload(fine, {"r": cheap("v")}),
        "an expensive function": Workload(fine, {"r": expensive("v")}, events=60_000),
        "a function that does not commute": Workload(fine, {"r": fading("v")}),
        "a cheap function, count windows": Workload(W.count(100, 10), {"r": cheap("v")}),
        "an expensive function, count windows": Workload(
            W.count(100, 10), {"r": expensive("v")}, events=60_000
        ),
        "count windows": Workload(W.count(100, 10), total, events=300_000),
        "sessions": Workload(W.session(50), total, events=300_000),
        "slide by tuple": Workload(W.slide_by_tuple(5000, 10), total, events=300_000),
        "punctuation": Workload(W.punctuation("m"), total, events=300_000),
        "median": Workload(W.tumbling(5000), {"r": A.median("v")}, events=300_000),
        "median, sliding": Workload(W.sliding(10_000, 2000), {"r": A.median("v")}, events=300_000),
        "distinct": Workload(W.tumbling(5000), {"r": A.distinct("v")}, events=300_000),
        "collect": Workload(W.tumbling(5000), {"r": A.collect("v")}, events=300_000),
        "longest text": Workload(W.tumbling(5000), {"r": A.max("s")}, events=300_000),
        "exact sum": Workload(fine, {"r": A.sum("v", exact=True)}, events=300_000),
        "Bloom filter": Workload(fine, {"r": A.bloom_filter("v")}, events=300_000),
        "moment sketch": Workload(fine, {"r": A.moment_sketch("v")}, events=300_000),
        "regression": Workload(fine, {"r": A.linear_regression("t", "v")}),
        "numpy's median": Workload(
            W.tumbling(20_000), {"r": A.apply(np.median, "v")}, events=200_000
        ),
    }


def seconds_with(workers: int, query: pf.Query, pushes: list[tuple[int, pa.RecordBatch]]) -> float:
    """A whole stream up to the last row that is final at the end of it."""
    gc.collect()  # streams before this one, which hold what they have not returned
    with query.open(workers=workers, sources=1 + max(source for source, _ in pushes)) as stream:
        start = time.perf_counter()
        for k, (source, batch) in enumerate(pushes):
            stream.push(batch, source)
            if k % 8 == 0 or len(batch) >= 1000:  # long batches may make millions of rows
                for _ in stream.results():
                    pass
    for _ in stream.results():
        pass
    return time.perf_counter() - start


@compiled
def _counted(n):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(n):
        total += i * 0.5
    return total


def cores() -> float:
    """How many times as much two threads do as one, if neither waits for the other."""
    n = 50_000_000

    def seconds(threads: int) -> float:
        several = [threading.Thread(target=_counted, args=(n,)) for _ in range(threads)]
        start = time.perf_counter()
        for thread in several:
            thread.start()
        for thread in several:
            thread.join()
        return time.perf_counter() - start

    return 2 * seconds(1) / seconds(2)


class Round(NamedTuple):
    """The cores that there were, and the seconds that one worker took, and two."""

    cores: float
    one: float
    two: float


def _enough(rounds: list[Round], wanted: int, most: int) -> bool:
    free = sum(each.cores >= NEARLY_TWO for each in rounds)
    return len(rounds) >= most or free >= wanted


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Events a second by workload, with one worker and with two."""
    found: dict[str, Any] = {}
    sections: dict[bool, list[list[str]]] = {True: [], False: []}
    _counted(1)
    for name, load in workloads().items():
        events = max(load.length * 4, load.events // (100 if quick else 1))
        pushes, query = load.pushes(events), load.query
        for workers in (1, 2):
            seconds_with(workers, query, pushes[: max(4, len(pushes) // 20)])  # compiles
        rounds: list[Round] = []
        while not _enough(rounds, 1 if quick else ROUNDS, 1 if quick else MOST_ROUNDS):
            before = cores()
            spent = [seconds_with(workers, query, pushes) for workers in (1, 2)]
            rounds.append(Round(min(before, cores()), *spent))
        free = sorted(rounds, reverse=True)[:ROUNDS]
        one = events / min(each.one for each in free)
        two = events / min(each.two for each in free)
        with query.open(workers=2) as stream:
            strategy = stream.plan.strategy
        had = free[-1].cores
        row = {"one": one, "two": two, "cores": had, "shared": load.shared}
        found[name] = row | {"strategy": strategy}
        cells = [f"{one:,.0f}", f"{two:,.0f}", f"{two / one:.2f}", f"{had:.2f}", strategy]
        sections[load.shared].append([name, *cells])
    headings = ("workload", "1 worker: events/s", "2 workers: events/s", "ratio", "cores", "two by")
    sheets = [
        Sheet("workers share batches", headings, [sections[True]]),
        Sheet("other workloads", headings, [sections[False]]),
    ]
    return {"workloads": found}, sheets


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """Two workers are faster where they share slices, and nowhere slower."""
    rows = figures["workloads"]
    ratios = {name: row["two"] / row["one"] for name, row in rows.items()}
    free = statistics.median(row["cores"] for row in rows.values())
    for least, which in (
        (FASTER, [name for name, row in rows.items() if row["shared"]]),
        (NOT_SLOWER, list(rows)),
    ):
        worst = min(which, key=lambda name: ratios[name])
        met = sum(ratios[name] >= least for name in which)
        yield (
            met == len(which),
            f"two workers at least {least} times as fast as one in {met} of {len(which)} "
            f"workloads, with {free:.2f} cores to be had; the least: {worst}, {ratios[worst]:.2f}",
        )


def draw(figures: Figures) -> None:
    """How many times as fast two workers are."""
    pictures.draw_workers(figures)
