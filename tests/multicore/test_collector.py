"""The collector: rows in order across everything, and those that wait cost nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.completeness import no_rows
from paneflow.engines.multicore.contract import Result, Rows
from paneflow.engines.multicore.intake.key_codes import KeyCodes
from paneflow.engines.multicore.pump.row_order import RowOrder, portions
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.engines.multicore.tuning import tuning

SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int64())])
QUERY = pf.Query(W.tumbling(1), {"n": A.count("v")}, time="t")


class Watched(np.ndarray[Any, Any]):
    """Ends of rows that count how often they are compared."""

    looks = 0

    def __lt__(self, other: Any) -> Any:
        Watched.looks += 1
        return super().__lt__(other)


def rows(*ends: int) -> Rows:
    end = np.array(ends)
    n = len(end)
    return Rows(
        label=np.zeros(n, np.int32),
        key=np.zeros(n, np.int64),
        seq=end - 1,
        start=end - 1,
        end=end.view(Watched),
        results={"n": Result(end * 10, None)},
        arrived=0.0,
        passed=-1000,
    )


def collected(collector: RowOrder, passed: int) -> list[int]:
    collector.add([no_rows(0.0, passed)])
    found = collector.collect()
    return [] if found is None else found.table["end"].to_pylist()


def a_collector() -> RowOrder:
    return RowOrder(QUERY, SCHEMA, KeyCodes((), SCHEMA))


def test_many_rows_are_put_in_order_in_parts_that_are_final_by_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "ordered_together", 3)
    one, two, *others = (
        replace(rows(*ends), passed=BEFORE_ALL) for ends in ([1], [2, 3], [4], [5], [6])
    )
    given = [one, no_rows(0.0, 2), two, others[0], no_rows(0.0, 5), *others[1:]]
    parts = list(portions(given))
    assert [sum(map(len, part)) for part in parts] == [4, 2]
    collector, tables = a_collector(), []
    for part in [*parts, [no_rows(0.0, 7)]]:
        collector.add(part)
        found = collector.collect()
        tables.append([] if found is None else found.table["end"].to_pylist())
    assert tables == [[1, 2, 3, 4], [], [5, 6]]


def test_rows_leave_in_order_whatever_they_came_with() -> None:
    collector = a_collector()
    collector.add([rows(9, 2, 5), rows(3, 8), rows(1)])
    assert collected(collector, 0) == []
    assert collected(collector, 4) == [1, 2, 3]
    collector.add([rows(4, 6)])
    assert collected(collector, 6) == [4, 5]
    assert collector.held == 3
    assert collected(collector, 100) == [6, 8, 9]
    assert collector.held == 0


def test_rows_that_wait_are_not_looked_at() -> None:
    looks = []
    for waiting in (10, 1000):
        collector = a_collector()
        collector.add([rows(10_000 + k) for k in range(waiting)])
        Watched.looks = 0
        for end in range(1, 20):
            collector.add([rows(end)])
            assert collected(collector, end + 1) == [end]
        looks.append(Watched.looks)
    assert looks[0] == looks[1]
