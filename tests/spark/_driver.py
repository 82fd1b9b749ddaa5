"""A stream as a process of its own, which a test may kill at any moment and start again.

It answers the files of `<folder>/in`, one in each micro-batch, in both ways: by `query.over` into
Spark's Parquet sink, and by `query.write_stream`. It ends when the files are used up.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.spark import session
from tests.spark.support import read_files

SCHEMA = pa.schema(
    [("k", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.float64()), ("i", pa.int64())]
)
AGGREGATES = {
    "n": A.count(),
    "sum": A.sum("i"),
    "first": A.first("v"),
    "median": A.median("v"),
    "all": A.collect("i"),
}
SLICED = {"hop": W.sliding("10 s", "2 s"), "rest": W.session("300 ms")}
QUERIES = {
    "slices": pf.Query(SLICED, AGGREGATES, key="k", lateness="3 s"),
    "events": pf.Query(SLICED | {"five": W.count(5, 3)}, AGGREGATES, key="k", lateness="3 s"),
}
"""Questions by what a stream has to remember for them."""


def main(folder: Path, query: pf.Query) -> None:
    """Answer all files."""
    spark = session(
        "paneflow-killed",
        "local[2]",
        **{"spark.sql.shuffle.partitions": 2, "spark.driver.memory": "1g"},
    )
    frame = read_files(spark, folder / "in", SCHEMA)
    writer = query.over(frame).writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / "composed-checkpoint"))
    streams = [
        writer.start(str(folder / "composed")),
        query.write_stream(frame, folder / "fused", folder / "fused-checkpoint", availableNow=True),
    ]
    for stream in streams:
        stream.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), QUERIES[sys.argv[2]])
