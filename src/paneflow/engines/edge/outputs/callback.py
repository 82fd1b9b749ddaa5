"""Rows for a function of the program in which the root runs."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa


class CallbackOutput:
    """Calls a function with the rows of each step.

    Args:
        function: Takes the rows and the number of the step. After a restart of the root, the last
            numbers may come again, with the same rows; whoever stores rows replaces them by number.
        added: The same for queries that are added to the tree; takes the name of the query, too.

    Example:
        >>> output = CallbackOutput(lambda rows, number: print(number, rows.num_rows))
        >>> output.write(pa.table({"peak": [3.0, 5.0]}), 1)
        1 2
    """

    def __init__(
        self,
        function: Callable[[pa.Table, int], object],
        added: Callable[[pa.Table, int, str], object] | None = None,
    ) -> None:
        self._function = function
        self._added = added

    def write(self, rows: pa.Table, number: int) -> None:
        """Call the function. What it raises stops the root."""
        self._function(rows, number)

    def of(self, query: str) -> CallbackOutput:
        """Calls the function for queries that are added."""
        added = self._added
        return CallbackOutput(lambda rows, number: added and added(rows, number, query))

    def close(self) -> None:
        """There is nothing to close."""
