"""A data source of Spark: the slices that the roots of trees have written, as a table or a stream.

Rows are parcels, as paneflow sends them through a shuffle: the slices of some keys, as bytes. So
whatever a query keeps in its slices needs no counterpart in Spark's types. A stream can be
replayed: its offsets are the numbers of files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from paneflow.engines.spark.frames import spark_schema
from paneflow.engines.spark.slices.packing import PARCELS, SHARDS, pack, shards_of
from paneflow.engines.spark.sources.numbered_files import Files, between, last_numbers
from paneflow.slicing.slices import ROWS, Slices

NAME = "paneflow_slices"
FOLDERS = "folders"
"""The option that holds the folders, as a JSON array."""
SCHEMA = pa.schema([("tree", pa.string()), ("number", pa.int64()), *PARCELS])
_FILES_PER_TASK = 64
_STEPS = 40
"""Bits for the number of a file, below those for its tree, in what orders parcels."""


class _Part(InputPartition):
    """The files that one task reads."""

    def __init__(self, files: Files) -> None:
        super().__init__(files)
        self.files = files


class SlicesSource(DataSource):
    """Reads the folders that outputs of the kind `slices` write."""

    @classmethod
    def name(cls) -> str:
        """What Spark knows it by."""
        return NAME

    def schema(self) -> StructType:
        """The tree and the step, and the slices of a shard of the keys as bytes."""
        found: StructType = spark_schema(SCHEMA)
        return found

    def reader(self, schema: StructType) -> DataSourceReader:
        """All files that are there."""
        return _Reader(self._folders())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The files that are there, and those that follow."""
        return _StreamReader(self._folders())

    def _folders(self) -> list[str]:
        folders: list[str] = json.loads(self.options[FOLDERS])
        return folders


class _Reader(DataSourceReader):
    def __init__(self, folders: list[str]) -> None:
        self._folders = folders

    def partitions(self) -> list[InputPartition]:
        last = last_numbers(self._folders)
        return [_Part(f) for f in between(self._folders, {}, last, _FILES_PER_TASK)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _parcels(partition)


class _StreamReader(DataSourceStreamReader):
    def __init__(self, folders: list[str]) -> None:
        self._folders = folders

    def initialOffset(self) -> dict[str, int]:
        return dict.fromkeys(self._folders, 0)

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        return last_numbers(self._folders)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [_Part(f) for f in between(self._folders, start, end, _FILES_PER_TASK)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _parcels(partition)


def _parcels(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The slices of some files, one parcel for each shard of the keys that they hold."""
    if not isinstance(partition, _Part):
        return  # where there are no files, Spark asks for a partition of its own
    files = partition.files
    for number, path in files.paths:
        with open(path, "rb") as file:
            slices = Slices(pq.read_table(file)).table
        keys = tuple(name for name in slices.column_names if name.startswith("key:"))
        part = (files.place << _STEPS) + number
        packed = pack(slices, shards_of(slices, keys, SHARDS), part, ROWS)
        about = [pa.repeat(files.folder, len(packed)), pa.repeat(number, len(packed))]
        yield pa.RecordBatch.from_arrays([*about, *packed.columns], schema=SCHEMA)
