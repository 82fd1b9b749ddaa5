"""The slices of each step as files, for whoever makes rows of the slices of many trees.

A file holds the slices that all nodes below the root have reported and the root has merged, in the
table that `query.slice` makes. `Slices(table)` reads it, and `query.finish` makes rows of it. The
names of files tell their order, and a step that is written again has the same slices: a reader can
begin anywhere, stop, and begin there again.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from paneflow.engines.edge.outputs.numbered_files import NumberedFiles
from paneflow.slicing.slices import Slices

PREFIX = "slices"


class SlicesOutput:
    """Writes the slices of each step to a file of their own.

    Args:
        folder: Where the files are. It is made if it does not exist.

    Example:
        >>> import tempfile
        >>> import paneflow as pf
        >>> from paneflow import aggregates as A, windows as W
        >>> query = pf.Query(W.tumbling(5), {"peak": A.max("v")}, time="t")
        >>> folder = tempfile.mkdtemp()
        >>> output = SlicesOutput(folder)
        >>> output.write(query.slice([{"t": 1, "v": 5}]).table, 1)
        >>> output.write(query.slice([{"t": 4, "v": 7}]).table, 2)
        >>> query.finish(read_slices(folder))["peak"].to_pylist()
        [7]
    """

    def __init__(self, folder: str | Path) -> None:
        self._files = NumberedFiles(folder, PREFIX)
        self._files.make_folder()

    def write(self, rows: pa.Table, number: int) -> None:
        """Write the file of a step; `rows` is a table of slices, with its metadata."""
        self._files.write(Slices(rows).table, number)

    def close(self) -> None:
        """There is nothing to close."""


def read_slices(folder: str | Path) -> Slices:
    """All slices that a root has written to a folder.

    Args:
        folder: The folder of a `SlicesOutput`, which may be written to meanwhile.

    Returns:
        The slices of all steps up to now, for `query.finish`.

    Example:
        >>> read_slices("no such folder")
        Traceback (most recent call last):
        ...
        paneflow.errors.InputError: no such folder holds no slices: expected files named like \
slices-000000000000001.parquet; name the folder that the root writes to
    """
    return Slices(NumberedFiles(folder, PREFIX).read_all("slices"))
