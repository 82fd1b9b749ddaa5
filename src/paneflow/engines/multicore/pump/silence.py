"""Which sources have fallen silent: nothing was pushed to them for as long as `idle` says.

A source whose push waits for room is not silent, nor is one that has ended.
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

    def hear(self, source: int) -> None:
        """Note that something was pushed."""
        if source not in self._ended:
            self._heard[source] = heard = wall_clock.clock.now()
            self._soonest = min(self._soonest, heard + self._idle)

    def excuse(self, source: int) -> None:
        """Note that a push waits for room: it is not the source that is slow."""
        self._heard[source] = NOT_AWAITED

    def end(self, source: int) -> None:
        """Note that a source has ended."""
        self._ended.add(source)
        self._heard[source] = NOT_AWAITED

    def fallen(self) -> list[int]:
        """The sources that have fallen silent and are not known to be."""
        now = wall_clock.clock.now()
        if now < self._soonest:
            return []
        return [int(source) for source in np.flatnonzero(self._heard + self._idle <= now)]

    def know(self, silent: list[int]) -> None:
        """Note that these sources are known to be silent."""
        self._heard[silent] = NOT_AWAITED
        self._soonest = float(self._heard.min()) + self._idle

    @property
    def due_in(self) -> float:
        """Seconds until a source may fall silent; infinite if none can."""
        return max(self._soonest - wall_clock.clock.now(), 0.0)
