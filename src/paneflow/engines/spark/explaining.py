"""Says in words what `batch.py` or `streaming.py` will do with a frame."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.engines.live.open_windows import OpenWindows
from paneflow.engines.spark.frames import rows_schema, source_schema
from paneflow.engines.spark.native import slices_natively
from paneflow.engines.spark.native_rows import rows_natively
from paneflow.engines.spark.positions import has_only_counts
from paneflow.engines.table import layout_of
from paneflow.planning import Plan, plan
from paneflow.slicing.layout import not_sliceable

if TYPE_CHECKING:
    from paneflow.query import Query


def explain(query: Query, frame: Any, merge: str) -> Plan:
    """The plan for a frame, with the reason for the chosen way first."""
    source = source_schema(query, frame)
    made = plan(query.windows, query.aggregates, source, "spark", merge)
    way = _of_stream(query, source) if frame.isStreaming else _of_batch(query, frame, source)
    return replace(made, reasons=(way, *made.reasons))


def _of_batch(query: Query, frame: Any, source: pa.Schema) -> str:
    if has_only_counts(query):
        return "events are sorted into ranges, and their positions counted in two passes"
    refused = not_sliceable(query, source)
    if refused is not None:
        return f"events are brought together by key: {refused}"
    if rows_natively(query, frame, source, rows_schema(query, source)) is not None:
        return "Spark answers alone: windows do not overlap, and it has every aggregate"
    layout = layout_of(query, source)
    if slices_natively(query, frame, source, layout, {}) is not None:
        return "Spark cuts the slices: it has every aggregate; only slices cross into Python"
    return (
        "slices are cut in Python, before the shuffle: Spark lacks one of the aggregates, or "
        "there is a session"
    )


def _of_stream(query: Query, source: pa.Schema) -> str:
    if OpenWindows(query, source).needs_events:
        return "the state keeps events: the bounds of some windows depend on earlier events"
    return "the state keeps slices: all windows can be sliced where events arrive"
