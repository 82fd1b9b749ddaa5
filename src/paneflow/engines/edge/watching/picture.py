"""The whole tree as one node sees it, from what heartbeats carry.

A heartbeat holds the metrics of its sender and of all nodes below, each with its age instead of a
time, because the clocks of two machines differ. Nothing here waits or asks what time it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

COUNTED = ("events", "in", "out")
"""What is shown per second."""
NO_RATES = dict.fromkeys(COUNTED, 0.0)


@dataclass(frozen=True)
class NodeLine:
    """What is shown of one node.

    Attributes:
        node: Its name.
        role: Its role, as far as it is known.
        depth: How far below the top of the picture it stands.
        alive: Whether it has been heard of lately.
        age: Seconds since it was last heard of; None if it never was.
        events_per_second: Events that come in from sources.
        in_per_second: Bytes that come in from neighbours.
        out_per_second: Bytes that go out to them.
        metrics: Its other figures, as `Metrics.as_dict` names them.
    """

    node: str
    role: str
    depth: int
    alive: bool
    age: float | None
    events_per_second: float
    in_per_second: float
    out_per_second: float
    metrics: Mapping[str, Any]


@dataclass(frozen=True)
class _Seen:
    """What a node said last, when that was here, and how fast its counters grew."""

    parent: str | None
    metrics: Mapping[str, Any]
    when: float
    rates: Mapping[str, float]


class TreePicture:
    """Knows the nodes of a tree, and what they did when they were last heard of.

    Args:
        patience: After so many seconds without news, a node counts as dead.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._expected: dict[str, str | None] = {}
        self._seen: dict[str, _Seen] = {}

    def expect(self, node: str, parent: str | None) -> None:
        """Show a node even if nothing is ever heard of it."""
        self._expected[node] = parent

    def forget(self, node: str) -> None:
        """Show a node no more, because it has said goodbye."""
        self._expected.pop(node, None)
        self._seen.pop(node, None)

    def take(self, node: str, parent: str | None, metrics: Mapping[str, Any], when: float) -> None:
        """Note what a node says of itself, unless it is known already, or something newer is."""
        before = self._seen.get(node)
        if before is None:
            self._seen[node] = _Seen(parent, dict(metrics), when, NO_RATES)
        elif when >= before.when and metrics.get("at") != before.metrics.get("at"):
            self._seen[node] = _Seen(parent, dict(metrics), when, _rates(before, metrics, when))

    def take_all(self, carried: Iterable[Any], here: str, now: float) -> None:
        """Note what the heartbeat of a child of node `here` carries.

        Items that make no sense are left out, for a heartbeat comes over a network.
        """
        for item in carried:
            if not _makes_sense(item):
                continue
            node, age = item["node"], item.get("age", 0.0)
            parent = item.get("parent", here)
            if age is None:
                self.expect(node, parent)
            else:
                about = {k: v for k, v in item.items() if k not in ("node", "parent", "age")}
                self.take(node, parent, about, now - age)

    def carried(self, now: float, top: str) -> list[dict[str, Any]]:
        """What the heartbeat of node `top` carries, for `take_all` one level up."""
        found: list[dict[str, Any]] = []
        for node, seen in self._seen.items():
            above = {} if node == top else {"parent": seen.parent}
            age = round(now - seen.when, 2)
            found.append({"node": node, **above, **({"age": age} if age else {}), **seen.metrics})
        for node, parent in self._expected.items():
            if node not in self._seen:
                found.append({"node": node, "parent": parent, "age": None})
        return found

    def lines(self, now: float) -> list[NodeLine]:
        """All nodes, parents before the nodes below them, siblings by name."""
        seen = self._seen
        parents = self._expected | {node: one.parent for node, one in seen.items()}
        below: dict[str | None, list[str]] = {}
        for node, parent in parents.items():
            below.setdefault(parent if parent in parents else None, []).append(node)
        return [
            self._line(node, seen.get(node), depth, now) for node, depth in _walk(None, 0, below)
        ]

    def _line(self, node: str, seen: _Seen | None, depth: int, now: float) -> NodeLine:
        age = None if seen is None else max(0.0, now - seen.when)
        alive = age is not None and age <= self._patience
        rates = seen.rates if seen is not None and alive else NO_RATES
        metrics = {} if seen is None else seen.metrics
        return NodeLine(
            node=node,
            role=str(metrics.get("role", "?")),
            depth=depth,
            alive=alive,
            age=age,
            events_per_second=rates["events"],
            in_per_second=rates["in"],
            out_per_second=rates["out"],
            metrics=metrics,
        )


def _walk(
    above: str | None, depth: int, below: Mapping[str | None, list[str]]
) -> Iterator[tuple[str, int]]:
    """Nodes with their depths, each before those below it."""
    for node in sorted(below.get(above, ())):
        yield node, depth
        yield from _walk(node, depth + 1, below)


def _makes_sense(item: Any) -> bool:
    """Whether something can be an item of a heartbeat."""
    if not isinstance(item, dict) or not isinstance(item.get("node"), str):
        return False
    parent, age = item.get("parent"), item.get("age", 0.0)
    figures = [item.get(name, 0) for name in (*COUNTED, "at")]
    return (parent is None or isinstance(parent, str)) and all(
        map(_is_figure, figures if age is None else [*figures, age])
    )


def _is_figure(given: Any) -> bool:
    return isinstance(given, int | float) and math.isfinite(given) and given >= 0


def _rates(before: _Seen, metrics: Mapping[str, Any], when: float) -> dict[str, float]:
    """How fast counters grow, by the node's own clock if that has not been put back.

    A counter that shrank has begun again, because the node has.
    """
    past = metrics.get("at", 0.0) - before.metrics.get("at", 0.0)
    if past <= 0:
        past = when - before.when
    if past <= 0:
        return NO_RATES
    grown = {}
    for name in COUNTED:
        old, new = before.metrics.get(name, 0), metrics.get(name, 0)
        grown[name] = (new - old if new >= old else new) / past
    return grown
