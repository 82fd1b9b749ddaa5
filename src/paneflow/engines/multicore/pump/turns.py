"""Whether the stream thread or the pushing thread works on what was pushed.

If pushes and the work on them are short, the pushing thread does the work and the stream thread
sleeps: handing it over would take longer. The pushing thread then *rests* as long as it worked, and
what is pushed meanwhile is processed together. A push that is *due*, because windows may have ended
by it, is processed at once together with everything that waits, unless the thread comes straight
back and so has more to push. What is left over and not followed by another push, the stream thread
processes.
"""

from __future__ import annotations

import threading
import time

from paneflow.engines.multicore.tuning import tuning


class Turns:
    """When work was done last, and whether a pushing thread rests."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        """Held by the thread that works."""
        self.ended = self.left = time.perf_counter()
        """When the last turn ended, and when the last push returned."""
        self._rested = self.ended

    def rests(self, arrived: float, due: bool) -> bool:
        """Whether a thread that pushes at a time leaves the work for later."""
        if not due:
            return arrived < self._rested
        straight_back = arrived - self.left <= tuning.straight_back
        return straight_back and arrived < min(self._rested, self.ended + tuning.left_over / 2)

    def end(self, began: float) -> None:
        """Note that a turn is over."""
        self.ended = time.perf_counter()
        self._rested = self.ended + (self.ended - began)

    def left_to_others(self, waiting_since: float | None) -> bool:
        """Whether pushing threads are likely to come back soon for what waits, if anything does."""
        since = max(waiting_since or self.ended, self.ended)
        return time.perf_counter() - since < tuning.left_over
