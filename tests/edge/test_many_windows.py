"""A query of many windows: what a batch costs does not depend on how many there are."""

from __future__ import annotations

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.edge.nodes.child import Child
from paneflow.engines.edge.question import Question
from paneflow.engines.edge.records import Flush, Pushed
from paneflow.windows import Sliding

SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.float64())])


@pytest.mark.parametrize("aggregate", [A.max("v"), A.median("v")], ids=str)
def test_a_child_node_lists_the_edges_of_windows_once_for_all_batches(
    aggregate: A.Aggregate, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[Sliding] = []
    edges = Sliding.edges.fget
    assert edges is not None

    def counted(window: Sliding) -> tuple[tuple[int, int], ...]:
        listed.append(window)
        progressions: tuple[tuple[int, int], ...] = edges(window)
        return progressions

    windows = [W.tumbling(10 + k) for k in range(50)]
    child = Child("child", Question(pf.Query(windows, {"x": aggregate}, time="t"), SCHEMA))
    monkeypatch.setattr(Sliding, "edges", property(counted))

    def push(position: int) -> int:
        events = pa.table({"t": [7 * position], "v": [0.5]}, SCHEMA)
        child.take(child.cut(Pushed("sensor", events), position))
        assert child.take(Flush()).report is not None
        return len(listed)

    first = push(1)
    assert [push(position) for position in range(2, 12)] == [first] * 10
