"""Events of sensors whose rows are known, and the rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.edge.inputs.sensor import Sensor
from paneflow.engines.edge.nodes.root import in_order
from paneflow.engines.edge.question import COMPLETE
from tests.edge.running.real_trees import RealTree, Shape
from tests.properties.compare import assert_same_rows

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.string(), "v": pa.int64()})
QUERY = pf.Query(
    {"ten": W.tumbling(10), "slide": W.sliding(30, 15)},
    {"peak": A.max("v"), "n": A.count()},
    key="k",
    time="t",
)
SMALL: Shape = {"root": ["m"], "m": ["a", "b"]}


def events(source: int, start: int, end: int) -> pa.Table:
    """Events of one source, one at each time, with values that no other source has."""
    times = np.arange(start, end)
    keys = np.array(["x", "y", "z"])[(times + source) % 3]
    return pa.table({"t": times, "k": keys, "v": times * 10 + source}, SCHEMA)


def sensors(tree: RealTree) -> list[Sensor]:
    """A sensor for each child node."""
    return [tree.sensor(leaf, str(k)) for k, leaf in enumerate(tree.leaves)]


def push(sources: list[Sensor], start: int, end: int, step: int = 5) -> None:
    """Send the events of some time, in small batches."""
    for at in range(start, end, step):
        for sensor in sources:
            sensor.push(events(int(sensor.name), at, min(at + step, end)))


def expected(tree: RealTree, upto: int) -> pa.Table:
    """The rows of all events before a time; of events at one time, those of lesser leaves first."""
    sources = [events(k, 0, upto) for k in range(len(tree.leaves))]
    return in_order(tree.query.over(pa.concat_tables(sources)), tree.question)


def check(tree: RealTree, sources: list[Sensor], upto: int) -> None:
    """The tree ends with exactly the rows of all events before a time."""
    for sensor in sources:
        sensor.close()
    right = expected(tree, upto)
    rows = tree.finish(right.num_rows)
    assert rows[COMPLETE].to_pylist() == [True] * rows.num_rows
    assert_same_rows(tree.query, rows.drop_columns(COMPLETE), right)
