"""A task with more slices than one call takes: no key may be cut in two."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.spark.finite import batch
from paneflow.engines.spark.slices.native import carried


@pytest.mark.parametrize("at_once", [1, 7, 50, 10_000])
@pytest.mark.parametrize("size", [1, 13, 400])
def test_slices_come_in_any_batches(
    monkeypatch: pytest.MonkeyPatch, at_once: int, size: int
) -> None:
    monkeypatch.setattr(batch, "SLICES_PER_CALL", at_once)
    monkeypatch.setattr(batch, "ROWS_PER_CALL", 5 * at_once)
    random = np.random.default_rng(0)
    times = pa.array(random.integers(0, 10**8, 400), pa.timestamp("us", "UTC"))
    key = pa.array(random.integers(0, 4, 400), mask=random.random(400) < 0.2)
    events = pa.table({"ts": times, "k": key, "v": random.normal(size=400)})
    query = pf.Query(W.sliding("9 s", "2 s"), {"max": A.max("v")}, key="k", time="ts")
    slices = query.slice(events).table
    layout = slices.schema
    columns = carried(layout, query, events.schema)
    rows = query.result_schema(events.schema)
    finish = batch.Finish(query, layout, rows, "auto", None, None)
    sent = (
        slices.drop_columns(["slicing"])
        .sort_by("key:k")
        .rename_columns(columns.names)
        .cast(columns)
    )

    def batches() -> Iterator[pa.RecordBatch]:
        # Spark says of some columns that they hold no nulls.
        strict = pa.schema([f.with_nullable(f.name != "c0") for f in columns])
        yield from sent.cast(strict).to_batches(max_chunksize=size)

    answer = batch.FromNative(finish, columns, ["c1"])(batches())
    made = pa.Table.from_batches(list(answer), rows).sort_by(
        [("end", "ascending"), ("k", "ascending")]
    )
    wanted = query.over(events).sort_by([("end", "ascending"), ("k", "ascending")])
    assert made.to_pylist() == wanted.to_pylist()
