"""`query.explain(frame)` says which way a frame's events will go."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.windows import Sliding

EVENTS = pa.table(
    {"k": [1], "ts": pa.array([0], pa.timestamp("us", "UTC")), "v": [1.0], "s": ["a"]}
)


@pytest.mark.parametrize(
    ("window", "aggregate", "way"),
    [
        (W.tumbling("1 s"), A.max("v"), "Spark answers alone"),
        (W.sliding("9 s", "1 s"), A.max("v"), "Spark cuts the slices"),
        (W.sliding("9 s", "1 s"), A.median("v"), "slices are cut in Python"),
        (W.session("1 s"), A.max("v"), "slices are cut in Python"),
        (W.count(3), A.max("v"), "events are sorted into ranges"),
        (W.slide_by_tuple("9 s", 3), A.max("v"), "events are brought together by key"),
    ],
)
def test_a_finite_frame(spark: Any, window: W.Window, aggregate: Any, way: str) -> None:
    query = pf.Query(window, {"x": aggregate}, key="k", time="ts")
    plan = query.explain(spark.createDataFrame(EVENTS))
    assert plan.engine == "spark"
    assert plan.reasons[0].startswith(way)


@pytest.mark.parametrize(
    ("window", "way"),
    [(W.sliding("9 s", "1 s"), "the state keeps slices"), (W.count(3), "the state keeps events")],
)
def test_a_stream(spark: Any, tmp_path: Any, window: W.Window, way: str) -> None:
    query = pf.Query(window, {"x": A.max("v")}, key="k", time="ts")
    schema = spark.createDataFrame(EVENTS).schema
    stream = spark.readStream.schema(schema).parquet(str(tmp_path))
    reasons = query.explain(stream).reasons
    assert reasons[0].startswith(way)
    assert isinstance(window, Sliding) == ("is merged anew" in reasons[-1])
