"""Rows as Parquet files in a folder, each row exactly once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from paneflow.engines.edge.outputs.numbered_files import NumberedFiles

_PREFIX = "rows"


class ParquetOutput:
    """Writes the rows of each step to a file of their own.

    The folder holds every row exactly once, however often the root is started again. Each row is
    in the file of the step that made it, and the names of files tell their order. Any reader of
    Parquet can read the folder.

    Args:
        folder: Where the files are. It is made if it does not exist.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> output = ParquetOutput(folder)
        >>> output.write(pa.table({"peak": [3.0]}), 1)
        >>> output.write(pa.table({"peak": [5.0]}), 2)
        >>> read_rows(folder)["peak"].to_pylist()
        [3.0, 5.0]
    """

    def __init__(self, folder: str | Path) -> None:
        self._files = NumberedFiles(folder, _PREFIX)
        self._files.make_folder()

    def write(self, rows: pa.Table, number: int) -> None:
        """Write the file of a step. A step without rows has none."""
        if rows.num_rows:
            self._files.write(rows, number)

    def of(self, query: str) -> ParquetOutput:
        """The rows of an added query are in a folder of its name, in this folder."""
        return ParquetOutput(self._files.folder / query)

    def close(self) -> None:
        """There is nothing to close."""


def read_rows(folder: str | Path) -> pa.Table:
    """All rows that the root has written to a folder, in order.

    Args:
        folder: The folder of a `ParquetOutput`, which may be written to meanwhile.

    Returns:
        The rows of all steps up to now.

    Example:
        >>> read_rows("no such folder")
        Traceback (most recent call last):
        ...
        paneflow.errors.InputError: no such folder holds no rows: expected files named like \
rows-000000000000001.parquet; name the folder that the root writes to
    """
    return NumberedFiles(folder, _PREFIX).read_all("rows")
