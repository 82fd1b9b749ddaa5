"""How long the steps of a stream are: so long that what a step costs by itself is shared by many
events, and so short that it makes only a fraction of the rows that may wait to be read.

How many rows an event makes is known only from the steps before. Workers that share keys return
rows later than they take events, and a stream that grew its steps meanwhile would find itself with
more rows at once than fit into the cache, several times over.
"""

from __future__ import annotations

from collections import deque

from paneflow.engines.multicore.tuning import tuning


class StepLength:
    """Learns from steps, and from the rows that they made."""

    def __init__(self, longest: int, most_rows: int) -> None:
        """`most_rows`: how many rows may wait to be read."""
        self._longest = longest
        self._most_rows = most_rows
        self._taken = self._answered = self._rows = 0
        self._under_way: deque[tuple[int, int]] = deque()
        """Watermarks, and how many events had been taken by then."""
        self.now = max(tuning.pushed_piece, min(tuning.first_step, longest))
        """How many events the next step may take."""

    def took(self, events: int, watermark: int) -> None:
        """A step took some events, and moved the watermark."""
        self._taken += events
        self._under_way.append((watermark, self._taken))
        fitting = self._most_rows // 8 * self._answered // max(self._rows, 1)
        if self._answered == 0:
            fitting = tuning.unknown_step
        self.now = max(tuning.pushed_piece, min(self._longest, fitting, 2 * self.now))

    def gave(self, rows: int, passed: int) -> None:
        """Rows were made, and all that end before a time have been by now."""
        self._rows += rows
        while self._under_way and self._under_way[0][0] < passed:
            self._answered = self._under_way.popleft()[1]
