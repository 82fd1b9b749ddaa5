"""Hives that add up whole numbers, as tests ask them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A
from paneflow.aggregates.values import Kind
from paneflow.engines.multicore.multiway.hive import Hive, Winsets
from paneflow.engines.multicore.topologies.parts.question import Inputs, Question
from paneflow.slicing.columns import Column
from paneflow.windows import Sliding


class SummingHive:
    """A hive of a single window, by windows or by slices."""

    def __init__(self, window: Sliding, writers: int, slices: bool) -> None:
        query = pf.Query(window, {"sum": A.sum("v"), "n": A.count()}, key="k", time="t")
        self._question = Question(query, {"v": Kind.INTEGER})
        self._window = window
        span = (window.range.value, window.slide.value, window.offset.value)
        self.hive = Hive(self._question, writers, window.edges, None if slices else span)
        self._slices = slices

    def winsets(self, t: int) -> list[int]:
        """When the winsets begin that an event of some time belongs to."""
        if self._slices:
            return [max(t - (t - phase) % step for phase, step in self._window.edges)]
        offset, slide = self._window.offset.value, self._window.slide.value
        return [offset + number * slide for number in self._window.assigned(t)]

    def first(self, t: int) -> int:
        """The first winset that an event at some time or later may belong to."""
        return min(self.winsets(t), default=t)

    def update(self, writer: int, key: list[int], t: list[int], v: list[int]) -> None:
        """Add events."""
        numbers = np.array(v, np.int64)
        column = Column("v", pa.int64(), Kind.INTEGER, numbers, None)
        times = np.array(t, np.int64)
        inputs = Inputs(self._question, np.array(key, np.int64), times, times, {"v": column})
        self.hive.update(writer, inputs.key, times, inputs.counted, inputs.inputs)

    def next_winsets(self, most: int = 2**62) -> dict[tuple[int, int], tuple[int, int]]:
        """Counts and sums of windows that are final; each of them once, and in order."""
        found = self.hive.next_winsets(most)
        return {} if found is None else as_dict(found)


def as_dict(found: Winsets) -> dict[tuple[int, int], tuple[int, int]]:
    """Counts and sums by winset and key."""
    assert list(found.number) == sorted(found.number)
    high, low = found.partials[0]
    windows = list(zip(found.number.tolist(), found.key.tolist(), strict=True))
    sums = ((high.astype(object) * 2**32) + low.astype(object)).tolist()
    assert len(set(windows)) == len(windows)
    return dict(zip(windows, zip(found.fields[0].tolist(), sums, strict=True), strict=True))
