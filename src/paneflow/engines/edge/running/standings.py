"""What a node's log says of the nodes below it: which report each owes, and whether it is there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from paneflow.engines.edge.records import AFTER_ALL, Joined, Left, Lost, Record, Reported


@dataclass
class Standing:
    """One node below."""

    wanted: int = 1
    """The number of the report that comes next."""
    here: bool = False
    """Whether it has joined, and was neither lost nor has it left since."""
    awaited: bool = True
    """Whether windows wait for it, so that its silence matters."""


class Standings:
    """All nodes below, by name. They follow from records alone, so a restart finds them again."""

    def __init__(self, expected: Iterable[str]) -> None:
        self._known = {name: Standing() for name in expected}

    def of(self, name: str) -> Standing:
        """The standing of a node; one that is not known yet owes its first report."""
        return self._known.get(name, Standing(awaited=False))

    def names(self) -> list[str]:
        """All nodes that were expected or have joined."""
        return list(self._known)

    def take(self, record: Record) -> None:
        """Note what a record says of a node below."""
        match record:
            case Joined(child):
                standing = self._known.setdefault(child, Standing())
                standing.here = standing.awaited = True
            case Reported(child, number, report):
                standing = self._known.setdefault(child, Standing())
                standing.wanted = number + 1
                standing.here = True
                standing.awaited = report.watermark < AFTER_ALL
            case Lost(child) | Left(child):
                standing = self._known.setdefault(child, Standing())
                standing.here = standing.awaited = False
            case _:
                pass

    def state(self) -> dict[str, Any]:
        """All of this, as JSON can hold it."""
        return {name: asdict(standing) for name, standing in self._known.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        self._known |= {name: Standing(**known) for name, known in state.items()}
