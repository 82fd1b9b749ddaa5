"""Whose turn it is to work on what was pushed: the stream's thread's, or his who pushes.

Where pushes and the work on them are short, who pushes does it himself and lets the thread sleep:
to hand it over would take longer. He then rests from work as long as it took him, and what he
pushes meanwhile is worked on together. But a push that is due, because windows may have ended by
it, is worked on at once, with all that waits: only who comes straight back, and so has more to
push, rests then too. What he leaves behind and does not come back for, the thread works on.
"""

from __future__ import annotations

import threading
import time

from paneflow.engines.multicore.tuning import tuning


class Turns:
    """When work was done, and what has been left behind since."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        """Held by the thread that works, whichever it is."""
        self.ended = self.left = time.perf_counter()
        """When the last turn ended, and when somebody who pushed left."""
        self._rested = self.ended
        self.due: float | None = None
        """When the first push came that waits and is due; None if none does."""

    def rests(self, arrived: float, due: bool) -> bool:
        """Whether who pushes at a time shall not work."""
        if not due:
            return arrived < self._rested
        straight_back = arrived - self.left <= tuning.straight_back
        return straight_back and arrived < min(self._rested, self.ended + tuning.left_over / 2)

    def end(self, began: float) -> None:
        """A turn is over."""
        self.ended = time.perf_counter()
        self._rested = self.ended + (self.ended - began)

    @property
    def patience(self) -> float:
        """Seconds that the thread leaves to others what waits."""
        return tuning.postponed if self.due is None else tuning.left_over

    def left_to_others(self, waiting_since: float | None) -> bool:
        """Whether those who push will soon be back for what they have left behind, if anything."""
        since = self.due if self.due is not None else waiting_since
        return time.perf_counter() - max(since or self.ended, self.ended) < self.patience
