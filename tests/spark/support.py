"""What tests of Spark share: results that have no order, compared; streams of files, run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import paneflow as pf
from paneflow.engines.spark.storage.contract import Storage
from paneflow.engines.spark.storage.places import storage_of
from tests.properties.compare import assert_same_rows


def frame_of(spark: Any, table: pa.Table) -> Any:
    """A table as a frame, in which times without a time zone have none."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame(table, from_arrow_schema(table.schema))


def plain(table: pa.Table) -> pa.Table:
    """Rows with labels as plain text, the way Spark has them."""
    place = table.schema.get_field_index("window")
    return table.set_column(place, "window", table.column("window").cast(pa.string()))


def in_order(query: pf.Query, rows: pa.Table) -> pa.Table:
    """Rows ordered by what tells them apart."""
    columns = [rows[name].to_pylist() for name in ("window", *query.key, "start", "end", "seq")]
    marks = [tuple((v is not None, v) for v in row) for row in zip(*columns, strict=True)]
    blank = [tuple((there, v if there else 0) for there, v in mark) for mark in marks]
    order = sorted(range(rows.num_rows), key=lambda i: blank[i])
    return rows.take(pa.array(order, pa.int64()))


def assert_same_set(query: pf.Query, got: pa.Table, expected: pa.Table) -> None:
    """The same rows, each as often, in any order; the same columns, in Spark's types."""
    expected = plain(expected)
    assert got.column_names == expected.column_names
    # Spark's lists and structs name their fields otherwise; casting changes nothing else.
    for mine, theirs in zip(got.schema, expected.schema, strict=True):
        same = mine.type == theirs.type or pa.types.is_nested(theirs.type)
        assert same, f"{mine.name} has type {mine.type}, expected {theirs.type}"
    got = got.cast(expected.schema)
    assert_same_rows(query, in_order(query, got), in_order(query, expected))


PLACES = {"disk": "{}", "hadoop": "viewfs://paneflow/mount{}"}
"""Where a folder is for Spark: on the disk, and on a file system that only Hadoop can reach.

The second is Hadoop's view of other file systems, and shows the same disk.
"""


def mount(spark: Any) -> None:
    """Let a session reach folders by Hadoop."""
    spark.conf.set("fs.viewfs.mounttable.paneflow.link./mount", "file:///")


def storage(spark: Any, place: str, folder: Path) -> Storage:
    """A folder at a place, made."""
    mount(spark)
    found = storage_of(spark, PLACES[place].format(folder), "folder")
    found.make()
    return found


def write_files(parts: list[pa.Table], folder: Path, first: int = 0) -> None:
    """One Parquet file for each part; Spark reads them in the order of their times."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(parts, start=first):
        path = folder / f"{number:05}.parquet"
        draft = folder / f".{number:05}.draft"
        pq.write_table(part, draft)
        os.utime(draft, (1_000_000_000 + number, 1_000_000_000 + number))
        os.replace(draft, path)


def read_files(spark: Any, folder: Path, schema: pa.Schema) -> Any:
    """A stream of the files of a folder, one in each micro-batch."""
    from pyspark.sql.pandas.types import from_arrow_schema

    reader = spark.readStream.schema(from_arrow_schema(schema)).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def ran(rows: Any, folder: Path) -> Any:
    """Spark's query that has written a stream's rows to files, until the events were used up."""
    writer = rows.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.start(str(folder / "rows"))
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return query


def rows_of(rows: Any, folder: Path) -> pa.Table:
    """The rows that a stream has written so."""
    table: pa.Table = (
        rows.sparkSession.read.schema(rows.schema).parquet(str(folder / "rows")).toArrow()
    )
    return table
