"""From the slices of many trees to rows, on a cluster.

The root of each tree writes its slices into a folder that all machines of the cluster can read.
Here they become a frame, finite or a stream; `finish_slices` makes rows of a finite one, each shard
of the keys in a task of its own, and `slices_in` brings one to the driver.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.engines.spark.finite.batch import Finish
from paneflow.engines.spark.frames import rows_schema, spark_schema
from paneflow.engines.spark.slices.packing import PARCELS, from_bytes
from paneflow.engines.spark.slices.parcels import FromParcels
from paneflow.errors import InputError
from paneflow.slicing.slices import Slices
from paneflow.windows.many_rows import MAX_ROWS

if TYPE_CHECKING:
    from paneflow.query import Query

Folder = str | os.PathLike[str]


def read_slices(session: Any, folders: Folder | Iterable[Folder]) -> Any:
    """The slices that trees have written up to now, as a frame.

    Args:
        session: The Spark session.
        folders: The folder of each tree. All machines of the cluster must find them there.

    Returns:
        A frame with the columns `tree` (the folder), `number` (of the step) and the slices of some
        keys as bytes, for `finish_slices` and `slices_in`. Frames of several trees may be filtered
        and put together by `union`.
    """
    return _source(session, session.read, folders).load()


def stream_slices(session: Any, folders: Folder | Iterable[Folder]) -> Any:
    """The same as a stream, to which each new step of a tree adds rows.

    It can be replayed: a stream that is started again from its checkpoint reads the same steps
    again. With `foreachBatch`, what a function gets is a finite frame.
    """
    return _source(session, session.readStream, folders).load()


def slices_in(frame: Any) -> Slices:
    """The slices of a finite frame, on the driver: for `query.finish`, or to be stored."""
    ordered = frame.select("shard", "part", "parcel").orderBy("part", "shard").toArrow()
    if not ordered.num_rows:
        raise InputError(
            "the frame holds no slices: the trees have not written any yet, or a filter leaves "
            "none; look into the folders, or wait"
        )
    return Slices(pa.concat_tables(map(from_bytes, ordered.column("parcel").to_pylist())))


def finish_slices(
    query: Query, frame: Any, *, merge: str = "auto", max_rows: int | None = MAX_ROWS
) -> Any:
    """The rows that the slices of a finite frame amount to, as a frame: `query.finish` on Spark.

    Args:
        query: The query that the trees answer.
        frame: What `read_slices` gives, or a micro-batch of `stream_slices`.
        merge: How slices are merged into windows; the rows are the same for all.
        max_rows: More rows than this of one shard of the keys are refused; None is no limit.

    Returns:
        The rows of `query.over` for all events of all trees, in no order.
    """
    first = frame.select("parcel").head()
    if first is None:
        slices_in(frame)
    slices = Slices(from_bytes(first["parcel"]))
    schema = rows_schema(query, slices.source)
    parcels = frame.select(*PARCELS.names)
    spread = parcels.repartition("shard").sortWithinPartitions("shard", "part")
    finish = Finish(query, slices.table.schema, schema, merge, None, max_rows)
    return spread.mapInArrow(FromParcels(finish), spark_schema(schema))


def _source(session: Any, reader: Any, folders: Folder | Iterable[Folder]) -> Any:
    """A reader of the folders, which have to be there."""
    from paneflow.engines.spark.sources.data_source import FOLDERS, NAME, SlicesSource

    given = [folders] if isinstance(folders, (str, os.PathLike)) else list(folders)
    paths = [Path(folder).resolve() for folder in given]
    for path in paths:
        if not path.is_dir():
            raise InputError(
                f"{path} is not a folder: name the folder that the root of a tree writes its "
                f"slices to, as it is found on all machines of the cluster"
            )
    session.dataSource.register(SlicesSource)
    return reader.format(NAME).option(FOLDERS, json.dumps([str(path) for path in paths]))
