"""A query over a frame whose tasks run in other processes, which get paneflow as an archive.

    python -m tests.spark._elsewhere cluster|connect ARCHIVE

Prints one line for each query: whether its rows are those of the table engine.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A, windows as W

QUERIES: list[tuple[W.Window, dict[str, Any]]] = [
    (W.sliding("10 s", "1 s"), {"max": A.max("v"), "first": A.first("v")}),
    (W.tumbling("5 s"), {"max": A.max("v"), "n": A.count()}),
    (W.session("1 s"), {"median": A.median("v")}),
    (W.count(3), {"all": A.collect("v")}),
]


def connected(archive: str) -> Any:
    """A server of Spark Connect on this machine, in another time zone than UTC."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2")
    spark = builder.config("spark.sql.session.timeZone", "Europe/Berlin").getOrCreate()
    spark.addArtifacts(archive, pyfile=True)
    return spark


def clustered(archive: str) -> Any:
    """A master and two workers in processes of their own."""
    from paneflow.spark import session

    return session(
        master="local-cluster[2,1,1024]",
        **{"spark.submit.pyFiles": archive, "spark.executor.memory": "1g"},
    )


def rows_of(table: pa.Table) -> list[str]:
    """Rows in an order, their times as seconds."""
    shown = [
        [v.timestamp() if hasattr(v, "timestamp") else v for v in row.values()]
        for row in table.to_pylist()
    ]
    return sorted(map(repr, shown))


def main(where: str, archive: str) -> None:
    """Ask all queries there."""
    spark = (connected if where == "connect" else clustered)(archive)
    random = np.random.default_rng(0)
    times = 1_700_000_000_000_000 + random.integers(0, 10**8, 500)
    events = pa.table(
        {
            "k": random.integers(0, 3, 500),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "v": random.integers(0, 1000, 500),
        }
    )
    frame = spark.createDataFrame(events.to_pandas()).repartition(3, "v").sortWithinPartitions("ts")
    events = frame.toArrow()
    for window, aggregates in QUERIES:
        query = pf.Query(window, aggregates, key="k", time="ts")
        same = rows_of(query.over(frame).toArrow()) == rows_of(query.over(events))
        print(f"{window}: {'same rows' if same else 'other rows'}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
