"""Count windows over a finite frame, of which one key is most: equal rows, and a share each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.spark.finite import positions
from paneflow.engines.spark.slices.packing import from_bytes
from tests.properties.cases import affine
from tests.spark.support import assert_same_set, frame_of

AGGREGATES = {"all": A.collect("i"), "sum": A.sum("i"), "ordered": affine("i")}
HOT = "hot"


def skewed(n: int, share: float, seed: int = 0) -> pa.Table:
    """Events of a hot key and some others, in no order of time, many of them at the same time."""
    rng = np.random.default_rng(seed)
    names = np.array([HOT, *(f"k{k}" for k in range(9))])
    cold = rng.integers(1, 10, n)
    codes = np.where(rng.random(n) < share, 0, cold)
    return pa.table(
        {
            "k": pa.array(names[codes], mask=(codes == 9)),
            "t": rng.integers(0, n // 4, n),
            "i": rng.integers(-9, 9, n),
        }
    )


@pytest.fixture
def five_tasks(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Five tasks, and blocks small enough for little data to need many."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    monkeypatch.setattr(positions, "BLOCK", 40)
    monkeypatch.setattr(positions, "SIZES_PER_BLOCK", 1)
    yield spark
    spark.conf.set("spark.sql.shuffle.partitions", before)


@pytest.mark.parametrize(
    "window",
    [
        W.count(3),
        pytest.param(W.count(7, 2), marks=pytest.mark.long),
        pytest.param(W.count(7, 2, partial=True), marks=pytest.mark.long),
        pytest.param(W.count(2, 9, partial=True), marks=pytest.mark.long),
        W.count(300, 1, partial=True),
        pytest.param(W.count(10_000, 3, partial=True), marks=pytest.mark.long),
    ],
    ids=lambda window: f"{window}{window.partial:d}",
)
@pytest.mark.parametrize("key", ["k", pytest.param(None, marks=pytest.mark.long)])
def test_positions_over_several_ranges(five_tasks: Any, window: W.Window, key: str | None) -> None:
    table = skewed(600, 0.8)
    query = pf.Query(window, AGGREGATES, key, time="t")
    rows = query.over(frame_of(five_tasks, table).repartition(3, "t")).toArrow()
    assert rows.num_rows > 0
    # The order of events of equal time is that of the frame's rows, whatever it is.
    events = frame_of(five_tasks, table).repartition(3, "t").toArrow()
    assert_same_set(query, rows, query.over(events))


def test_several_count_windows_at_once(five_tasks: Any) -> None:
    table = skewed(400, 0.9, seed=1)
    query = pf.Query([W.count(3, 5), W.count(20), W.count(55, 7)], AGGREGATES, "k", time="t")
    assert_same_set(query, query.over(frame_of(five_tasks, table)).toArrow(), query.over(table))


@pytest.mark.parametrize("n", [0, 1, 4])
def test_fewer_events_than_tasks(five_tasks: Any, n: int) -> None:
    table = skewed(60, 0.5).slice(0, n)
    query = pf.Query(W.count(2, 1, partial=True), AGGREGATES, "k", time="t")
    assert_same_set(query, query.over(frame_of(five_tasks, table)).toArrow(), query.over(table))


@dataclass(frozen=True)
class Watched:
    """A step that tells the largest number of the hot key's events that one task is given."""

    step: Any
    most: Any

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen = 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal seen
            for batch in batches:
                if "events" not in batch.schema.names:
                    seen += batch.column("c1").to_pylist().count(HOT)  # time, key, value
                else:
                    packed = batch.column("events").drop_null().to_pylist()
                    seen += sum(from_bytes(p)["k"].to_pylist().count(HOT) for p in packed)
                yield batch

        yield from self.step(counted())
        self.most.add([seen])


def test_no_task_sees_more_than_its_share_of_a_hot_key(
    five_tasks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.accumulators import AccumulatorParam

    class Lists(AccumulatorParam):  # type: ignore[type-arg]
        def zero(self, value: Any) -> Any:
            return []

        def addInPlace(self, one: Any, other: Any) -> Any:
            return [*one, *other]

    table = skewed(4000, 0.9, seed=2)
    frame = frame_of(five_tasks, table)
    shares = []
    original = type(frame).mapInArrow

    def watched(frame: Any, step: Any, *rest: Any) -> Any:
        shares.append(five_tasks.sparkContext.accumulator([], Lists()))
        return original(frame, Watched(step, shares[-1]), *rest)

    monkeypatch.setattr(type(frame), "mapInArrow", watched)
    query = pf.Query(W.count(5, 2), {"sum": A.sum("i")}, "k", time="t")
    rows = query.over(frame)
    assert rows.toArrow().num_rows > 0
    hot = table["k"].to_pylist().count(HOT)
    assert len(shares) == 3
    for step in shares:
        assert len(step.value) == 5
        assert hot <= sum(step.value) <= 1.2 * hot  # blocks of 40 share four events
        # Spark cuts ranges by a sample: a fifth each, and some more.
        assert max(step.value) <= 0.4 * hot
