"""What the root expects of an output.

Each step of the root has a number, and its rows are always the same. A root that starts again may
write the last steps a second time, because it cannot know whether they were written before it died.
An output that keeps rows puts them in the place of those of the same number; one that passes them
on passes on the number, or says that rows may be repeated.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from paneflow.errors import PaneflowError


class OutputError(PaneflowError):
    """Rows cannot be written. The root stops, and writes them when it is started again."""


class Output(Protocol):
    """One place that rows go to. A single thread calls it."""

    def write(self, rows: pa.Table, number: int) -> None:
        """Write the rows of one step. When this returns, they are there to stay."""

    def close(self) -> None:
        """Nothing more will be written by this process."""


class RowsOutput(Output, Protocol):
    """One place that rows go to, with room for those of queries that are added to the tree."""

    def of(self, query: str) -> Output:
        """Where the rows of an added query go."""
