"""The watermark of a stream: the one that its frame has already, or one of ours.

Spark lets a plan define one watermark only; every operator with state passes it on to the next. It
finds the column by a mark on its type. A mark that is missing, or a second watermark, makes a
plan wait for ever, or fail in the middle of the stream. So a frame that comes with a watermark
keeps it, and the results mark their `end`: rows come out in the batch in which it is passed.
"""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.engines.spark.frames import place, spark_schema
from paneflow.errors import QueryError, UnsupportedError

if TYPE_CHECKING:
    from paneflow.query import Query

MARK = "spark.watermarkDelayMs"


def delay_of(query: Query, frame: Any, source: pa.Schema) -> int | None:
    """How far the watermark of a frame that was read is behind its times, in milliseconds.

    None if it has no watermark; an error if the query cannot go by the one that it has.
    """
    delay: int | None = frame.schema[place(source, query.time)].metadata.get(MARK)
    if delay is None:
        if not _has_watermark(frame):
            return None
        raise UnsupportedError(
            f"the DataFrame has a watermark, but not on the time column {query.time!r}, and Spark "
            f"keeps only one: call withWatermark on {query.time!r} instead; after an aggregation "
            f"of Spark take F.window_time of its window as the time"
        )
    if query.lateness.value > delay * 1000:
        raise QueryError(
            f"the query's lateness is {query.lateness}, but the DataFrame's watermark lets events "
            f"come only {delay} ms late: give withWatermark at least the lateness, or leave it out"
        )
    return delay


def _has_watermark(frame: Any) -> bool:
    """Whether a frame has a watermark on any column; only its plan tells."""
    plan = StringIO()
    with redirect_stdout(plan):  # the one way that every kind of frame has
        frame.explain(extended=True)
    return "EventTimeWatermark" in plan.getvalue()


def marked_schema(schema: pa.Schema, name: str, delay: int) -> Any:
    """An Arrow schema as Spark states it, with a column that the watermark is about."""
    made = spark_schema(schema)
    made[name].metadata[MARK] = delay
    return made
