"""Spark: DataFrames in, DataFrames out, finite or streaming.

Raw rows stay in the JVM where they can; slices cross into Python. `native.py` slices by Spark's own
aggregates, `packing.py` carries what has no native form, `batch.py` answers over finite frames;
`streaming.py` over unbounded ones, whose memory is `shard_state.py`; `sink.py` over those that end
in a sink, whose memory is `sink_memory.py`, committed by `commits.py` and, where several runs meet,
kept by the newest alone (`lease.py`). `versions.py` says which memory can be gone on with. Rows of
many windows are made in `pieces.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paneflow.engines.live.stream_options import StreamOptions
from paneflow.engines.spark import batch, streaming
from paneflow.engines.spark.explaining import explain
from paneflow.engines.spark.frames import source_schema
from paneflow.engines.spark.sink import write_stream
from paneflow.errors import QueryError, UnsupportedError
from paneflow.windows.many_rows import MAX_ROWS

if TYPE_CHECKING:
    from paneflow.query import Query


def over(
    query: Query, frame: Any, merge: str = "auto", max_rows: int | None = MAX_ROWS, **stream: Any
) -> Any:
    """The rows of a query over a frame, as a frame; `stream` are the options of `StreamOptions`."""
    source = source_schema(query, frame)
    query.over(source.empty_table(), merge=merge)  # refuses a merge whose law an aggregate breaks
    if frame.isStreaming:
        if merge != "auto":
            raise UnsupportedError(
                f"merge={merge!r} was asked for over a stream, where slices are merged as suits "
                f"each batch: leave merge at 'auto'"
            )
        return streaming.over(query, frame, source, StreamOptions.of(**stream, max_rows=max_rows))
    if stream:
        raise QueryError(
            f"{', '.join(stream)} is for streams, and this DataFrame is finite: leave it out"
        )
    return batch.over(query, frame, source, merge, max_rows)


__all__ = ["explain", "over", "write_stream"]
