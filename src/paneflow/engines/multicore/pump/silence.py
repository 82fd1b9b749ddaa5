"""Which sources have fallen silent: nothing was pushed to them for as long as `idle` says.

While a push waits for room, no source falls silent: the stream is behind, and the waiting thread
may be the one that pushes to the others as well. A source that has ended is not silent either.
"""

from __future__ import annotations

import numpy as np

from paneflow.engines.multicore import wall_clock

NOT_AWAITED = np.inf
"""In place of a time: the source cannot fall silent now."""


class Silence:
    """When each source was heard last, by the wall clock."""

    def __init__(self, sources: int, idle: int) -> None:
        """`idle` is in microseconds."""
        self._idle = idle / 1e6
        self._heard = np.full(sources, wall_clock.clock.now())
        self._soonest = float(self._heard[0]) + self._idle
        """No source falls silent before this."""
        self._ended: set[int] = set()
        self._pauses = 0

    def hear(self, source: int) -> bool:
        """Note that something was pushed; whether none could fall silent before."""
        if source in self._ended:
            return False
        self._heard[source] = heard = wall_clock.clock.now()
        before, self._soonest = self._soonest, min(self._soonest, heard + self._idle)
        return before == NOT_AWAITED

    def pause(self) -> None:
        """Note that a push begins to wait for room."""
        self._pauses += 1

    def resume(self) -> None:
        """Note that a push waits no longer; the wait counts as no source's silence."""
        self._pauses -= 1
        if self._pauses == 0:
            self._heard[self._heard < NOT_AWAITED] = wall_clock.clock.now()
            self._soonest = float(self._heard.min()) + self._idle

    def end(self, source: int) -> None:
        """Note that a source has ended."""
        self._ended.add(source)
        self._heard[source] = NOT_AWAITED

    def fallen(self) -> list[int]:
        """The sources that have fallen silent and are not known to be."""
        now = wall_clock.clock.now()
        if self._pauses or now < self._soonest:
            return []
        return [int(source) for source in np.flatnonzero(self._heard + self._idle <= now)]

    def know(self, silent: list[int]) -> None:
        """Note that these sources are known to be silent."""
        self._heard[silent] = NOT_AWAITED
        self._soonest = float(self._heard.min()) + self._idle

    @property
    def due_in(self) -> float:
        """Seconds until a source may fall silent; infinite if none can."""
        if self._pauses:
            return NOT_AWAITED
        return max(self._soonest - wall_clock.clock.now(), 0.0)
