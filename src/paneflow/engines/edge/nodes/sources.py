"""How far the sources of a child node have come: its watermark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paneflow.engines.edge.records import AFTER_ALL, BEFORE_ALL


class Sources:
    """The largest time that each source has shown, and which sources are waited for.

    Args:
        lateness: How far out of order events may come.
        least: Until this many sources have been heard, the watermark stays where it is.
    """

    def __init__(self, lateness: int, least: int = 1) -> None:
        self._lateness = lateness
        self._least = least
        self._shown: dict[str, int] = {}
        self._unwaited: set[str] = set()
        self.positions: dict[str, int] = {}
        self.closed = False
        self.watermark = BEFORE_ALL

    def show(self, source: str, position: int, latest: int) -> None:
        """A source has sent events until some time."""
        self._unwaited.discard(source)
        self._shown[source] = max(self._shown.get(source, BEFORE_ALL), latest)
        self.positions[source] = max(self.positions.get(source, 0), position)

    def wait_no_more(self, source: str) -> None:
        """A source has ended, or has been silent for long."""
        if source in self._shown:
            self._unwaited.add(source)

    def close(self) -> None:
        """No source will send anything more."""
        self.closed = True

    def latest(self) -> int:
        """The largest time that any source has shown."""
        return max(self._shown.values(), default=BEFORE_ALL)

    def advance(self, horizon: Callable[[int], int]) -> int:
        """The watermark as it is now; `horizon` tells at which one all until a time has closed."""
        waited = [t for source, t in self._shown.items() if source not in self._unwaited]
        if self.closed:
            self.watermark = AFTER_ALL
        elif len(self._shown) >= self._least:
            # Until then, the first event of another source may be older than all that came.
            if not waited:
                self.watermark = max(self.watermark, horizon(self.latest()))
            elif min(waited) > BEFORE_ALL:
                self.watermark = max(self.watermark, min(waited) - self._lateness)
        return self.watermark

    def state(self) -> dict[str, Any]:
        """All of this, as JSON can hold it."""
        return {
            "shown": self._shown,
            "unwaited": sorted(self._unwaited),
            "positions": self.positions,
            "closed": self.closed,
            "watermark": self.watermark,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        self._shown = dict(state["shown"])
        self._unwaited = set(state["unwaited"])
        self.positions = dict(state["positions"])
        self.closed = state["closed"]
        self.watermark = state["watermark"]
