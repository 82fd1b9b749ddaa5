"""The nodes below a node: how far each has come, and which are waited for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from paneflow.engines.edge.records import AFTER_ALL, BEFORE_ALL


class Below:
    """Watermarks of the nodes below; the least of those waited for is the node's own."""

    def __init__(self, expected: Iterable[str]) -> None:
        self._watermarks = dict.fromkeys(expected, BEFORE_ALL)
        self._lost: set[str] = set()
        self._missing: dict[str, Mapping[str, int]] = {}
        self.watermark = BEFORE_ALL

    def join(self, child: str) -> bool:
        """A node is there, for the first time or again; whether it had been given up."""
        # Nobody waited for what a new node has seen before it came.
        self._watermarks.setdefault(child, self.watermark)
        returned = child in self._lost
        self._lost.discard(child)
        self._advance()
        return returned

    def report(self, child: str, watermark: int, missing: Mapping[str, int]) -> None:
        """A node has come so far, without what others below it are missing.

        A node that misses itself has nobody left below it, and is not waited for.
        """
        self._watermarks[child] = watermark
        self._missing[child] = missing
        if child in missing:
            self._lost.add(child)
        self._advance()

    def leave(self, child: str) -> None:
        """A node will say nothing more."""
        self._watermarks[child] = AFTER_ALL
        self._lost.discard(child)
        self._missing.pop(child, None)
        self._advance()

    def lose(self, child: str) -> None:
        """A node is not waited for until it is there again."""
        if self._watermarks.get(child, AFTER_ALL) < AFTER_ALL:
            self._lost.add(child)
            self._advance()

    @property
    def missing(self) -> dict[str, int]:
        """Nodes that are behind the watermark, and until when all they had to say is known."""
        found = {name: t for name, t in self._watermarks.items() if t < self.watermark}
        for others in self._missing.values():
            found |= {name: t for name, t in others.items() if t < self.watermark}
        return found

    @property
    def known(self) -> dict[str, int]:
        """All nodes, and how far each has come."""
        return dict(self._watermarks)

    @property
    def lost(self) -> list[str]:
        """The nodes that were given up."""
        return sorted(self._lost)

    @property
    def deserted(self) -> bool:
        """Whether all nodes that have not ended were given up."""
        return not self.waited and bool(self._lost)

    @property
    def waited(self) -> list[str]:
        """The nodes that have not ended and were not given up."""
        alive = [name for name, t in self._watermarks.items() if t < AFTER_ALL]
        return sorted(name for name in alive if name not in self._lost)

    def _advance(self) -> None:
        waited = [t for name, t in self._watermarks.items() if name not in self._lost]
        if waited:
            self.watermark = max(self.watermark, min(waited))

    def state(self) -> dict[str, Any]:
        """All of this, as JSON can hold it."""
        return {
            "watermarks": self._watermarks,
            "lost": sorted(self._lost),
            "missing": {name: dict(others) for name, others in self._missing.items()},
            "watermark": self.watermark,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        self._watermarks = dict(state["watermarks"])
        self._lost = set(state["lost"])
        self._missing = dict(state["missing"])
        self.watermark = state["watermark"]
