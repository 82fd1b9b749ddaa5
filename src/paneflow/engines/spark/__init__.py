"""Spark: DataFrames in, DataFrames out, finite or streaming.

Raw rows stay in the JVM where they can; slices cross into Python. `native.py` slices by Spark's own
aggregates, `packing.py` carries what has no native form, `batch.py` answers over finite frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paneflow.engines.spark import batch
from paneflow.engines.spark.frames import source_schema

if TYPE_CHECKING:
    from paneflow.query import Query


def over(query: Query, frame: Any, merge: str = "auto") -> Any:
    """The rows of a query over a frame, as a frame."""
    source = source_schema(query, frame)
    return batch.over(query, frame, source, merge)
