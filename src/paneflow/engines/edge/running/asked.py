"""What nodes below are asked, until they have it in their logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Wanted(NamedTuple):
    """Something that is wanted of a node below."""

    number: int
    about: Mapping[str, Any]


class AsksOfOne:
    """What one node below is asked, numbered from 1 on.

    >>> asks = AsksOfOne()
    >>> asks.add({"of": {}})
    >>> [wanted.number for wanted in asks.since(1)]
    [1]
    >>> asks.acknowledge(1)
    >>> list(asks.since(1))
    []
    """

    def __init__(self, newest: int = 0, kept: tuple[Mapping[str, Any], ...] = ()) -> None:
        self.newest = newest
        first = newest - len(kept) + 1
        self._kept = {first + k: about for k, about in enumerate(kept)}

    def add(self, about: Mapping[str, Any]) -> None:
        """Keep something that is wanted until it is acknowledged."""
        self.newest += 1
        self._kept[self.newest] = about

    def since(self, number: int) -> Iterator[Wanted]:
        """What is not acknowledged, from a number on."""
        for known, about in self._kept.items():
            if known >= number:
                yield Wanted(known, about)

    def acknowledge(self, upto: int) -> None:
        """The node has all up to this number in its log."""
        for number in [known for known in self._kept if known <= upto]:
            del self._kept[number]

    def state(self) -> dict[str, Any]:
        """All of this, as JSON can hold it."""
        return {"newest": self.newest, "kept": [dict(about) for about in self._kept.values()]}
