"""Says in words what `finite/batch.py` or `unbounded/streaming.py` will do with a frame."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.engines.live.open_windows import OpenWindows
from paneflow.engines.spark.finite.native_rows import rows_natively
from paneflow.engines.spark.finite.positions import has_only_counts
from paneflow.engines.spark.frames import read, rows_schema
from paneflow.engines.spark.slices.native import slices_natively
from paneflow.engines.table import layout_of
from paneflow.planning import Plan, plan
from paneflow.planning.merge_choice import choose_stream_merge
from paneflow.slicing.layout import not_sliceable
from paneflow.windows import Sliding

if TYPE_CHECKING:
    from paneflow.query import Query


def explain(query: Query, frame: Any, merge: str) -> Plan:
    """The plan for a frame, with the reason for the chosen way first."""
    frame, source = read(query, frame)
    made = plan(query.windows, query.aggregates, source, "spark", merge)
    if not frame.isStreaming:
        return replace(made, reasons=(_of_batch(query, frame, source), *made.reasons))
    return replace(made, reasons=(_of_stream(query, source), *made.reasons, *_merges(query)))


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


def _merges(query: Query) -> list[str]:
    """By what each time window of a stream is merged, and why."""
    timed = {label: w for label, w in query.windows.items() if isinstance(w, Sliding)}
    chosen = {label: choose_stream_merge(w, None, stored=True) for label, w in timed.items()}
    return [f"{label} is merged anew: {merge.reason}" for label, merge in chosen.items()]


def _of_stream(query: Query, source: pa.Schema) -> str:
    if OpenWindows(query, source).needs_events:
        return "the state keeps events: the bounds of some windows depend on earlier events"
    return "the state keeps slices: all windows can be sliced where events arrive"
