"""A front that merges by itself releases everything, whatever its merger takes of a batch."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.intake.front import Arrival
from paneflow.engines.multicore.multiway.source_front import Merger, SourceFront
from paneflow.engines.multicore.multiway.tuple_gate import TupleGate


class Reluctant(TupleGate):
    """A gate that takes two tuples of a batch."""

    def offer(self, source: int, times: Array, begin: int = 0) -> int:
        return super().offer(source, times[: begin + 2], begin)


class ReluctantFront(SourceFront):
    merger: ClassVar[type[Merger]] = Reluctant


QUERY = pf.Query(W.tumbling(100), {"sum": A.sum("v")}, time="t")


def made(sources: int) -> ReluctantFront:
    return ReluctantFront(QUERY, pa.schema({"t": pa.int64(), "v": pa.int64()}), sources)


def pushed(front: SourceFront, source: int, times: list[int], value: int) -> Arrival:
    """A batch with values that count up from one."""
    batch = pa.record_batch({"t": times, "v": range(value, value + len(times))})
    added = front.add(source, batch, None)
    return Arrival(source, batch, None, len(times), 0.0, True, added=added)


def ended(source: int) -> Arrival:
    return Arrival(source, None, None, 0, 0.0, True)


def values(steps: list[Batch | int]) -> list[int]:
    return [v for step in steps if isinstance(step, Batch) for v in step.given["v"].to_pylist()]


def test_a_batch_that_was_taken_in_part_is_followed_by_another() -> None:
    front = made(1)
    arrivals = [pushed(front, 0, [1, 2, 3, 4], 10), pushed(front, 0, [5, 6, 7], 20)]
    assert [arrival.added.merged for arrival in arrivals if arrival.added] == [2, 2]
    assert values(front.take([*arrivals, ended(0)])) == [10, 11, 12, 13, 20, 21, 22]


def test_equal_times_keep_the_order_in_which_they_came() -> None:
    front = made(2)
    arrivals = [pushed(front, 0, [4, 4, 4], 10), pushed(front, 0, [4, 4, 9], 20)]
    arrivals += [pushed(front, 1, [4, 5], 30), ended(0), ended(1)]
    assert values(front.take(arrivals)) == [10, 11, 12, 20, 21, 30, 31, 22]


def test_what_is_merged_before_it_has_arrived_waits_for_its_arrival() -> None:
    front = made(2)
    first = [pushed(front, 0, [1, 9], 10), pushed(front, 1, [2, 9], 20)]
    later = pushed(front, 0, [9, 11], 30)
    assert values(front.take(first)) == [10, 20]
    assert front.held == 4
    assert values(front.take([later, ended(0), ended(1)])) == [11, 30, 21, 31]


def test_nothing_is_left_in_the_front_at_the_end() -> None:
    front = made(3)
    r = np.random.default_rng(1)
    arrivals = []
    for step in range(30):
        times = np.sort(r.integers(step, step + 4, 3)).tolist()
        arrivals.append(pushed(front, step % 3, times, 0))
    steps = front.take([*arrivals, *map(ended, range(3))])
    assert len(values(steps)) == 90
    assert front.held == 0
