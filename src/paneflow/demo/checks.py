"""Other ways to the same rows: the table engine over all readings, and Spark's own `window()`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.demo.live import of_window
from paneflow.demo.plugs import Readings
from paneflow.demo.question import HOUR, KEY, LIVE, PACKET, sampled


def compare_with_table(rows: pa.Table, readings: Readings) -> int:
    """How many rows of the stream equal those over a finished table; an error if one differs.

    The table lacks the readings that came too late, and windows that the stream has not closed do
    not count. Sessions are left out: one that is still open takes a reading however late it is.
    """
    in_time = readings.table.filter(pa.array(~readings.held_up))
    order = [(name, "ascending") for name in ("seq", *KEY)]
    right = LIVE.over(in_time)
    seen = pc.max(in_time[LIVE.time]).cast(pa.int64()).as_py()
    closed = pc.less_equal(right["end"].cast(pa.int64()), seen - LIVE.lateness.value)
    right = right.filter(closed)
    compared = 0
    for label in (HOUR, PACKET):
        mine = of_window(rows, label).sort_by(order)
        _require_equal(mine, of_window(right, label).sort_by(order), "the table engine")
        compared += mine.num_rows
    return compared


@dataclass(frozen=True)
class Versus:
    """A sample, asked of both."""

    span: str
    readings: int
    rows: int
    ours: float
    theirs: float
    """Seconds."""


def compare_with_window(spark: Any, sample: pa.Table, span: str) -> Versus:
    """Ask Spark's `window()` as well, for a span that slides by a second; rows must be equal."""
    frame = spark.createDataFrame(sample).cache()
    frame.count()
    ours, mine = _timed(lambda: sampled(span).over(frame).toArrow())
    theirs, right = _timed(lambda: _by_window(frame, span).toArrow())
    frame.unpersist()
    order = [(name, "ascending") for name in ("end", *KEY)]
    mine = mine.select(right.column_names).sort_by(order)
    _require_equal(mine, right.sort_by(order), "Spark's window()")
    return Versus(span, sample.num_rows, mine.num_rows, ours, theirs)


def _by_window(frame: Any, span: str) -> Any:
    """The sampled query as Spark states it."""
    from pyspark.sql import functions as F

    window = F.window("ts", span, "1 second")
    rows = frame.groupBy(*KEY, window.alias("w")).agg(
        F.max("load").alias("peak"), F.count(F.lit(1)).alias("readings")
    )
    return rows.select(*KEY, "w.start", "w.end", "peak", "readings")


def _require_equal(rows: pa.Table, right: pa.Table, whose: str) -> None:
    if rows.num_rows != right.num_rows:
        raise SystemExit(f"the answer has {rows.num_rows:,} rows, {whose} {right.num_rows:,}")
    for name in rows.column_names:
        one, other = rows[name], right[name]
        if name == "window" or one.combine_chunks().equals(other.cast(one.type).combine_chunks()):
            continue
        # Sums of floats depend on their order in the last bits.
        if not pa.types.is_floating(one.type) or not np.allclose(
            one.to_numpy(), other.to_numpy(), rtol=1e-12, atol=0, equal_nan=True
        ):
            raise SystemExit(f"the answer differs from that of {whose} in {name!r}")


def _timed(call: Callable[[], pa.Table]) -> tuple[float, pa.Table]:
    begun = time.perf_counter()
    result = call()
    return time.perf_counter() - begun, result
