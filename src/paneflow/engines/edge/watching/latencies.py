"""How long windows took, in a size that does not grow: classes of them, and the latest."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
"""Seconds; the last class holds all that took longer."""
LATEST = 256


class Latencies:
    """Seconds from the report that closed windows to their rows."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0
        self._latest: deque[float] = deque(maxlen=LATEST)

    def add(self, seconds: float) -> None:
        """Note that closing windows took so long."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds
        self._latest.append(seconds)

    def copy(self) -> Latencies:
        """The same, apart from what happens later."""
        found = Latencies()
        found.counts = self.counts.copy()
        found.total = self.total
        found._latest = self._latest.copy()
        return found

    def quantile(self, share: float) -> float | None:
        """What that share of the latest did not exceed; None if there were none.

        >>> latencies = Latencies()
        >>> for seconds in (0.1, 0.4, 0.2, 0.3):
        ...     latencies.add(seconds)
        >>> latencies.quantile(0.5), latencies.quantile(0.99)
        (0.2, 0.4)
        """
        if not self._latest:
            return None
        ordered = sorted(self._latest)
        return ordered[math.ceil(share * len(ordered)) - 1]
