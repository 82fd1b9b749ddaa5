"""Rows that wait at a node leave in an order that does not depend on which node was faster."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from paneflow.engines.edge.parts.waiting import FROM, Waiting

SCHEMA = pa.schema([("start", pa.int64())])


@pytest.mark.parametrize("kept", [(), (7,)], ids=["all leave", "some stay"])
def test_rows_leave_by_the_names_of_their_nodes_and_stay_in_order(kept: tuple[int, ...]) -> None:
    waiting = Waiting(SCHEMA)
    for node, starts in (("b", [1, 7, 2]), ("a", [9, 3]), ("b", [0])):
        waiting.add(node, pa.table({"start": starts}, SCHEMA))
    left = waiting.keep(np.isin(waiting.all().column("start").to_numpy(), kept))
    gone = [(node, start) for node, start in zip(*left.select([FROM, "start"]), strict=True)]
    wanted = [("a", 9), ("a", 3), ("b", 1), ("b", 7), ("b", 2), ("b", 0)]
    assert [(n.as_py(), s.as_py()) for n, s in gone] == [w for w in wanted if w[1] not in kept]
    assert waiting.all().column("start").to_pylist() == list(kept)
