"""The streams and queries of table 16, and how a topology is fed with them."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates.values import Kind
from paneflow.engines.multicore.choosing import BY_NAME
from paneflow.engines.multicore.contract import Batch, UnitMetrics
from paneflow.slicing.columns import Column

KINDS = {"v": Kind.FLOAT}
PANE_BASED = ("pane_ring", "pane_line")
TOPOLOGIES = ("handshake", "round_robin", "hash_once", "round_robin_cyclic", *PANE_BASED)


def _thousandfold(x: float) -> float:
    """The thesis' expensive preparation of an event: a thousand of each kind of operation."""
    y = x
    for i in range(1, 1001):
        y = (y + i) * 1.0001 - i
        y = y / 1.0001
    return y


expensive = A.define(
    lift=_thousandfold,
    combine=lambda a, b: a + b,
    lower=lambda p: p,
    identity=0.0,
    commutative=True,
    name="expensive_sum",
    samples=[0.25, 0.5, 2.0],
)


@dataclass(frozen=True)
class Setting:
    """One line of table 16. Events are one tick apart, each with a random key."""

    name: str
    size: int
    slide: int
    keys: int
    aggregate: A.Aggregate

    @property
    def query(self) -> pf.Query:
        return pf.Query(
            W.sliding(self.size, self.slide), {"result": self.aggregate}, key="k", time="t"
        )

    def batches(self, events: int, length: int) -> list[Batch]:
        """That many events, in batches."""
        rng = np.random.default_rng(16)
        t = np.arange(events)
        key, v = rng.integers(0, self.keys, events), rng.random(events)
        given = pa.record_batch({"k": key, "t": t, "v": v})
        columns = {"v": Column("v", pa.float64(), Kind.FLOAT, v, None)}
        whole = Batch(key, t, given, columns, 0.0)
        return [whole.between(a, min(a + length, events)) for a in range(0, events, length)]


HASH = Setting("Hash-Advantage", 10_000, 10_000, 1000, expensive("v"))
RRCP = Setting("RRCP-Advantage", 10_000, 100, 10, expensive("v"))
RR = Setting("RR-Advantage", 1000, 1, 1, A.count())
CHEAP = Setting("sum, 100 keys, overlap 60", 60_000, 1000, 100, A.sum("v"))


@dataclass
class Driven:
    """The result of a run."""

    seconds: float
    rows: int
    units: list[UnitMetrics]
    latencies: list[float] = field(default_factory=list)


def drive(
    topology: str, setting: Setting, workers: int, batches: list[Batch], pace: float = 0.0
) -> Driven:
    """Feed all batches, back to back or one every `pace` seconds, and time the rows.

    As in the thesis, latency counts from the entry of the event that ends a window to the moment
    when the window's row leaves; a separate thread reads the rows.
    """
    running = BY_NAME[topology](setting.query, KINDS, workers)
    last_event = int(batches[-1].t[-1])
    latencies: list[float] = []
    rows = 0
    ended = False

    def take() -> None:
        nonlocal rows
        while True:
            last = ended
            for part in running.take():
                rows += len(part)
                # Windows that close only at the end of the stream say nothing about latency.
                if len(part) and (part.end.min() <= last_event or not pace):
                    latencies.append(time.perf_counter() - part.arrived)
            if last:
                return
            time.sleep(0.0002)

    taker = threading.Thread(target=take)
    taker.start()
    start = time.perf_counter()
    try:
        for k, batch in enumerate(batches):
            if pace:
                time.sleep(max(0.0, start + k * pace - time.perf_counter()))
            now = time.perf_counter()
            running.feed(replace(batch, arrived=now))
            running.advance(int(batch.t[-1]))
        running.finish()
        seconds = time.perf_counter() - start
    finally:
        ended = True
        taker.join()
        running.stop()
    return Driven(seconds, rows, running.metrics(), latencies)
