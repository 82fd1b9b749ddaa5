"""A sink of Parquet files, one for each batch that has rows and each run that wrote some.

Files appear as a whole and are never changed, so any reader of Parquet can read the folder while
the stream runs. A file is named after its batch and its run. If a run ends in the middle of a
batch, or is overtaken by a newer one, the file that it wrote or may still write must not count: the
newer run puts an empty file in its place before it writes its own (`take_over`). A run writes each
file only if there is none of that name, so the older one cannot undo this.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq

from paneflow.engines.spark.sinks.lease import lost
from paneflow.engines.spark.storage.contract import Storage, drafted

SUFFIX = ".parquet"


class ParquetFiles:
    """A folder with the rows of a stream, or its late events."""

    def __init__(self, storage: Storage, schema: pa.Schema, name: str) -> None:
        """`name` tells the sinks of one folder apart."""
        self.storage = storage
        self._schema = schema
        self._name = name
        self._run = 0
        self._files = re.compile(rf"{name}-\d+-(?P<run>\d+)\{SUFFIX}")

    @property
    def uri(self) -> str:
        """The folder."""
        return self.storage.uri

    @property
    def used(self) -> bool:
        """Whether there are files of a stream already."""
        names = self.storage.names()
        return any(n.startswith(f"{self._name}-") and n.endswith(SUFFIX) for n in names)

    def take_over(self, run: int, rivals: list[int], batch: int) -> None:
        """Begin to write as a run, in place of others that may be busy with the same batch."""
        self._run = run
        for name in self.storage.names():
            file = self._files.fullmatch(drafted(name) or "")
            old = file and int(file["run"]) < run
            if old or name.startswith(f".{self._name}-run-"):  # drafts; the second, of version 3
                self.storage.remove(name)
        nothing = self._as_bytes(self._schema.empty_table())
        for rival in rivals:
            name = self._file(batch, rival)
            # An older version of this library did not name the run; it is not running any more.
            if rival == 0 and name not in self.storage.names():
                continue
            if not self.storage.create_or_find(name, nothing):
                self.storage.replace(name, nothing)

    def __call__(self, rows: pa.Table, batch: int) -> None:
        if not rows.num_rows:
            return
        data = self._as_bytes(rows)
        if not self.storage.create_or_find(self._file(batch, self._run), data):
            raise lost(self.storage)

    def _as_bytes(self, rows: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        pq.write_table(rows.cast(self._schema), sink)
        data: bytes = sink.getvalue().to_pybytes()
        return data

    def _file(self, batch: int, run: int) -> str:
        return f"{self._name}-{batch:09}{f'-{run:06}' if run else ''}{SUFFIX}"
