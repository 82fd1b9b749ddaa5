"""Streams over a server of Spark Connect, whose folder is another than that of the client.

    python -m tests.spark._connected

Reads the folder `in` of the current folder and writes to it by relative paths, in both ways.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.spark import progress

QUERY = pf.Query(W.sliding("10 s", "5 s"), {"peak": A.max("v"), "n": A.count()}, "k")


def served() -> Any:
    """A session of a server that was started in another folder."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as elsewhere:
        os.chdir(elsewhere)
        builder = SparkSession.builder.remote("local[2]")
        spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
        os.chdir(here)
    return spark


def main() -> None:
    """Answer the stream in both ways."""
    spark = served()
    columns = "k decimal(20, 2), ts timestamp, v double"
    reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
    frame = reader.parquet(str(Path("in").absolute()))
    writer = QUERY.over(frame).writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(Path("over").absolute()))
    writer.start(str(Path("rows").absolute())).awaitTermination()
    QUERY.write_stream(
        frame, "sink", "checkpoint", late="late", availableNow=True
    ).awaitTermination()
    print(progress("checkpoint"))
    spark.stop()


if __name__ == "__main__":
    main()
