"""The queries, the events and the comparison of the benchmarks of the tree."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates import Aggregate
from paneflow.windows import Window

SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND
ONE_SECOND = W.tumbling("1 second")
AGGREGATES: dict[str, Aggregate] = {"max": A.max("v"), "avg": A.mean("v"), "median": A.median("v")}
GOALS = {"max": 20_000_000, "avg": 20_000_000, "median": 5_000_000}
"""Events a second that a child is to sustain, and the rate at which the times of events go on."""
POOL = 8
"""Batches that differ in their values; later ones repeat these with later times."""


class Feed:
    """Batches of events at an even rate, in order of time.

    Args:
        length: The events in a batch.
        rate: Events in a second of event time.
        keys: How many keys there are; without keys there is no such column.
        seed: Streams of different seeds differ in their values.
    """

    def __init__(self, length: int, rate: int, keys: int = 0, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.length = length
        self.rate = rate
        self._steps = np.arange(length) * SECOND // rate
        self._values = [pa.array(random.normal(size=length)) for _ in range(POOL)]
        self._keys = [
            pa.array(random.integers(0, keys, length)) for _ in range(POOL if keys else 0)
        ]
        self.schema = self.batch(0).schema

    def start(self, number: int) -> int:
        """The time at which a batch begins."""
        return BEGIN + number * self.length * SECOND // self.rate

    def batch(self, number: int, start: int | None = None) -> pa.Table:
        """The batch of a number, at its own time or another one."""
        times = self._steps + (self.start(number) if start is None else start)
        columns = {"ts": pa.array(times, pa.timestamp("us", "UTC"))}
        if self._keys:
            columns["key"] = self._keys[number % POOL]
        columns["v"] = self._values[number % POOL]
        return pa.table(columns)


def asked(aggregate: str, keys: int = 0, windows: Window | list[Window] = ONE_SECOND) -> pf.Query:
    """A query for one aggregate."""
    key = "key" if keys else None
    return pf.Query(windows, {"x": AGGREGATES[aggregate]}, key=key, time="ts")
