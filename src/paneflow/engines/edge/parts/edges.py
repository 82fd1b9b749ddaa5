"""Edges of time windows: where their slices begin and end, on every node alike."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from paneflow.engines.edge.records import AFTER_ALL, BEFORE_ALL
from paneflow.windows import Sliding


class Edges:
    """The times at which some windows begin or end."""

    def __init__(self, windows: Iterable[Sliding]) -> None:
        edges = sorted({edge for window in windows for edge in window.edges})
        self._phases, self._steps = np.array(edges, np.int64).T

    def by(self, watermark: int) -> int:
        """The last edge by a watermark: slices that start before it are complete."""
        if watermark in (BEFORE_ALL, AFTER_ALL):
            return watermark
        return int((watermark - (watermark - self._phases) % self._steps).max())
