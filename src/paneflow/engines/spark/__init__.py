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
from paneflow.engines.table import check_laws
from paneflow.errors import UnsupportedError
from paneflow.windows.many_rows import MAX_ROWS

if TYPE_CHECKING:
    from paneflow.query import Query


def answer(
    query: Query,
    frame: Any,
    *,
    merge: str = "auto",
    max_rows: int | None = MAX_ROWS,
    stacklevel: int | None = None,
) -> Any:
    """The rows of a query over a finite frame, as a frame.

    `stacklevel` has no effect: how many rows there will be is not known here, so nobody is warned.
    """
    source = source_schema(query, frame)
    check_laws(query, source, merge)
    return batch.over(query, frame, source, merge, max_rows)


def answer_stream(query: Query, frame: Any, merge: str, options: StreamOptions) -> Any:
    """The rows of a query over an unbounded frame, as a frame."""
    source = source_schema(query, frame)
    check_laws(query, source, merge)
    if merge != "auto":
        raise UnsupportedError(
            f"merge={merge!r} was asked for over a stream, where slices are merged as suits "
            f"each batch: leave merge at 'auto'"
        )
    return streaming.over(query, frame, source, options)


__all__ = ["answer", "answer_stream", "explain", "write_stream"]
