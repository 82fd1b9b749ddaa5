"""Spark: DataFrames in, DataFrames out, finite or streaming.

Raw rows stay in the JVM where possible; only slices cross into Python. There are three entries:

- `finite/batch.py` answers over finite frames; `pieces.py` limits how many rows are made at once.
- `unbounded/streaming.py` answers over unbounded frames; `shard_state.py` is the state of each
  shard, `watermarks.py` says which watermark a plan goes by, and `observed.py` what it reports.
- `sinks/sink.py` answers into a sink; `memory.py` is its state in files, `commits.py` says which
  batches are done, and `lease.py` lets only the newest run of a stream go on. `storage/` is where
  those files are: on a disk, or on any file system of Spark.

All of them use `slices/`: `native.py` cuts slices with Spark's own aggregates, and `parcels.py`
carries what Spark has no aggregate for. `frames.py` reads the columns of a frame, which
`columns.py` finds by their names, and `versions.py` says which older state this version can read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paneflow.engines.live.stream_options import StreamOptions
from paneflow.engines.spark.explaining import explain
from paneflow.engines.spark.finite import batch
from paneflow.engines.spark.frames import read
from paneflow.engines.spark.sinks.sink import write_stream
from paneflow.engines.spark.unbounded import streaming
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

    `stacklevel` has no effect: the number of rows is not known up front, so there is no warning.
    """
    frame, source = read(query, frame)
    check_laws(query, source, merge)
    return batch.over(query, frame, source, merge, max_rows)


def answer_stream(query: Query, frame: Any, merge: str, options: StreamOptions) -> Any:
    """The rows of a query over an unbounded frame, as a frame."""
    frame, source = read(query, frame, further=options.late)
    check_laws(query, source, merge)
    if merge != "auto":
        raise UnsupportedError(
            f"merge={merge!r} was given for a stream, but streams choose how to merge "
            f"batch by batch: leave merge at 'auto'"
        )
    return streaming.over(query, frame, source, options)


__all__ = ["answer", "answer_stream", "explain", "write_stream"]
