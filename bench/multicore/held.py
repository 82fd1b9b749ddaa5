"""What a push of 100 events costs, by what the stream holds: 10^4 to 10^6 events.

Events are held for many reasons: windows are long, sources are silent, lateness is large, there
are many keys. The cost of a push may depend on what arrives and what closes, never on what is held.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import paneflow as pf
from bench.multicore import pictures
from bench.report import Sheet
from paneflow import aggregates as A, windows as W
from paneflow.aggregates.values import kind_of
from paneflow.engines.multicore.choosing import BY_NAME
from paneflow.engines.multicore.intake.front import Arrival, Front
from paneflow.engines.multicore.pump.row_order import RowOrder
from paneflow.engines.multicore.workers.farm import Farm

PUSH = 100
LONG = 10**9
PROMISED = 2.0
TOPOLOGIES = (
    "handshake",
    "round_robin",
    "hash_once",
    "round_robin_cyclic",
    "pane_ring",
    "pane_line",
)
WORKERS = ("active", "agnostic")
EVERY = ("single", *WORKERS, *TOPOLOGIES)
Figures = dict[str, Any]


@dataclass(frozen=True)
class Holding:
    """A reason to hold events, and the strategies to measure it with."""

    name: str
    windows: list[W.Window]
    aggregate: A.Aggregate
    strategies: tuple[str, ...] = ("single",)
    lateness: int = 0
    sources: int = 1
    keys: int = 100
    lonely: bool = False
    """Every other event has a key of its own, which is never seen again."""
    spread: int = 0
    """Ticks by which events come out of order."""

    @property
    def query(self) -> pf.Query:
        return pf.Query(
            self.windows, {"result": self.aggregate}, key="k", time="t", lateness=self.lateness
        )


SHORT = W.tumbling(10 * PUSH)
HOLDINGS = (
    Holding("lateness", [SHORT], A.sum("v"), EVERY, lateness=LONG),
    Holding("lateness, spread", [SHORT], A.sum("v"), lateness=LONG, spread=10**6),
    Holding("a silent source", [SHORT], A.sum("v"), EVERY, sources=2),
    Holding("a long window, sum", [W.tumbling(LONG)], A.sum("v"), EVERY),
    Holding("a short one beside it, sum", [SHORT, W.tumbling(LONG)], A.sum("v"), EVERY),
    Holding("a long window, median", [W.tumbling(LONG)], A.median("v"), ("single", *WORKERS)),
    Holding(
        "a short one beside it, median",
        [SHORT, W.tumbling(LONG)],
        A.median("v"),
        ("single", *WORKERS),
    ),
    Holding("count, one key", [W.count(LONG)], A.sum("v"), EVERY, keys=1),
    Holding("count, many keys", [W.count(5)], A.sum("v"), EVERY, keys=10, lonely=True),
    Holding("count, median", [W.count(LONG)], A.median("v"), ("single", *WORKERS)),
    Holding("session, sum", [W.session(LONG)], A.sum("v"), ("single", "agnostic")),
    Holding("session, median", [W.session(LONG)], A.median("v"), ("single", "agnostic")),
    Holding(
        "sessions, many keys",
        [W.session(500), W.session(LONG)],
        A.sum("v"),
        ("single", "agnostic"),
        lonely=True,
    ),
    Holding("slide_by_tuple", [W.slide_by_tuple(LONG, LONG)], A.sum("v"), ("single", "agnostic")),
    Holding("slide_by_time", [W.slide_by_time(LONG, LONG)], A.sum("v"), ("single", "agnostic")),
    Holding("delta", [W.delta("t", LONG, LONG)], A.sum("v"), ("single", "agnostic")),
    Holding("punctuation", [W.punctuation("mark")], A.sum("v"), ("single", *WORKERS)),
    Holding("many keys, sum", [SHORT, W.tumbling(LONG)], A.sum("v"), EVERY, lonely=True),
    Holding("many keys, median", [W.tumbling(LONG)], A.median("v"), ("single",), lonely=True),
    Holding("many keys, delta", [W.delta("t", 1000, 1000)], A.sum("v"), ("single",), lonely=True),
)


class Line:
    """A stream without its thread: each push is processed completely before the next."""

    def __init__(self, holding: Holding, strategy: str, schema: pa.Schema) -> None:
        query = holding.query
        names = [query.time, *query.key, *(c for w in query.windows.values() for c in w.columns)]
        names += [c for a in query.aggregates.values() for c in a.columns]
        self._names = list(dict.fromkeys(names))
        schema = pa.schema([schema.field(name) for name in self._names])
        kinds = {name: kind_of(type_, name) for name, type_ in query.types(schema).items()}
        self._front = Front(query, schema, holding.sources)
        self._collector = RowOrder(query, schema, self._front.keys)
        made = BY_NAME[strategy]
        self._strategy = made(query, kinds, 1 if strategy == "single" else 2, None)

    def push(self, batch: pa.RecordBatch) -> None:
        """Everything that a push causes."""
        now = time.perf_counter()
        arrival = Arrival(0, batch.select(self._names), None, batch.num_rows, now, True)
        for step in self._front.take([arrival]):
            if isinstance(step, int):
                self._strategy.advance(step)
            else:
                self._strategy.feed(step)
        while isinstance(self._strategy, Farm) and not self._strategy.idle:
            time.sleep(0)
        self._collector.add(self._strategy.take())
        self._collector.collect()

    def stop(self) -> None:
        self._strategy.stop()


def events(holding: Holding, start: int, end: int) -> pa.RecordBatch:
    """One event per tick."""
    rng = np.random.default_rng(start)
    n = end - start
    t = np.arange(start, end)
    key = rng.integers(0, holding.keys, n)
    if holding.lonely:
        key[::2] = holding.keys + t[::2]
    return pa.record_batch(
        {
            "t": t - rng.integers(0, holding.spread + 1, n) if holding.spread else t,
            "k": key,
            "v": rng.random(n),
            "mark": np.zeros(n, np.bool_),
        }
    )


def costs(holding: Holding, strategy: str, sizes: list[int], pushes: int) -> list[list[float]]:
    """Seconds of each push, once that many events are held."""
    line = Line(holding, strategy, events(holding, 0, 1).schema)
    found = []
    at = 0
    try:
        for size in sizes:
            while at < size:
                step = min(size - at, 5000)
                line.push(events(holding, at, at + step))
                at += step
            spent = []
            for _ in range(pushes):
                batch = events(holding, at, at + PUSH)
                at += PUSH
                time.sleep(0.001)  # threads finish the push before
                start = time.perf_counter()
                line.push(batch)
                spent.append(time.perf_counter() - start)
            found.append(spent)
    finally:
        line.stop()
    return found


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Median, mean and 99th percentile of pushes, by what is held."""
    sizes = [10**2, 10**3] if quick else [10**4, 10**5, 10**6]
    figures: Figures = {}
    rows = []
    for holding in HOLDINGS:
        for strategy in holding.strategies[:2] if quick else holding.strategies:
            costs(holding, strategy, [PUSH], 2)  # compiles
            spent = costs(holding, strategy, sizes, 3 if quick else 300)
            found = {
                "held": sizes,
                "median": [float(np.median(s)) for s in spent],
                "mean": [float(np.mean(s)) for s in spent],
                "p99": [float(np.quantile(s, 0.99)) for s in spent],
            }
            figures[f"{holding.name}: {strategy}"] = found
            cells = [f"{1e3 * s:.2f}" for s in found["median"]]
            cells += [f"{found[what][-1] / found[what][0]:.2f}" for what in ("median", "mean")]
            cells += [f"{1e3 * s:.2f}" for s in found["p99"]]
            rows.append([holding.name, strategy, *cells])
    headings = ["held because of", "strategy", *(f"{n:,}: ms" for n in sizes), "ratio", "of means"]
    headings += [f"{n:,}: p99 ms" for n in sizes]
    return figures, [Sheet("a push of 100 events, by what is held", tuple(headings), [rows])]


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """The cost does not grow with what is held."""
    for name, found in figures.items():
        ratio = found["median"][-1] / found["median"][0]
        yield ratio <= PROMISED, f"{name}: {ratio:.2f} times ({PROMISED:g})"


def draw(figures: Figures) -> None:
    """Milliseconds by what is held."""
    pictures.draw_held(figures)
