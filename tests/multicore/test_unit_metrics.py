"""What a stream says about its processing units: how busy they were, and who worked for them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.contract import UnitMetrics
from paneflow.engines.multicore.pump.metrics import StreamMetrics, no_metrics
from paneflow.engines.multicore.tuning import tuning

QUERY = pf.Query(W.sliding(20, 5), {"sum": A.sum("v")}, key="k", time="t")
T = np.arange(4000)
TABLE = pa.table({"t": T, "v": T % 7, "k": T % 5})


def metrics(strategy: str) -> StreamMetrics:
    with QUERY.open(workers=3, strategy=strategy) as stream:
        for start in range(0, len(T), 100):
            stream.push(TABLE.slice(start, 100))
        stream.finish()
        rows = sum(rows.num_rows for rows in stream.results())
        assert rows == QUERY.over(TABLE).num_rows
        return stream.metrics()


@pytest.mark.parametrize("strategy", ["pane_line", "round_robin", "hash_once", "active"])
def test_units_that_work_are_busy(strategy: str) -> None:
    for unit in metrics(strategy).units:
        assert unit.steps > 0
        assert unit.busy > 0
        assert 0 <= unit.helped <= unit.steps


@pytest.mark.parametrize("strategy", ["pane_line", "round_robin"])
def test_long_messages_are_processed_by_the_units_themselves(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "short_message", 0.0)
    assert [unit.helped for unit in metrics(strategy).units] == [0, 0, 0]


@pytest.mark.parametrize("strategy", ["pane_line", "round_robin"])
def test_short_messages_are_processed_by_others(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "short_message", math.inf)
    assert sum(unit.helped for unit in metrics(strategy).units) > 0


def test_imbalance_compares_the_busiest_unit_with_the_average() -> None:
    units = tuple(UnitMetrics(rank, busy=busy) for rank, busy in enumerate([1.0, 2.0, 3.0]))
    assert dataclasses.replace(no_metrics(1, 0, 0), units=units).imbalance == 1.5
    assert no_metrics(1, 0, 0).imbalance == 1.0
