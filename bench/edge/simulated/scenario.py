"""What is simulated: the shape of a tree, its links, and how its nodes are timed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from bench.edge.simulated.links import Link


@dataclass(frozen=True)
class Scenario:
    """A tree whose child nodes report a window every second.

    Attributes:
        children: Its child nodes.
        fan_out: The most nodes below any node.
        links: Those of the child nodes, and those above.
        windows: The windows that are simulated.
        slices: The keys, all of which every child reports.
        chunk: Seconds between two batches of a sensor.
        linger: Seconds that nodes wait for more to say.
        show: Seconds between heartbeats that tell how a node and those below it fare.
        skew: The standard deviation of child nodes' clocks, in seconds.
        even: Whether sensors begin at times that are evenly spread, and not at random ones.
    """

    children: int
    fan_out: int
    links: tuple[Link, Link]
    windows: int = 5
    slices: int = 1
    chunk: float = 0.01
    linger: float = 0.02
    show: float = 5.0
    skew: float = 0.002
    even: bool = False

    @cached_property
    def levels(self) -> list[int]:
        """The nodes of every level: first the child nodes, last the root."""
        found = [self.children]
        while found[-1] > self.fan_out:
            found.append(-(-found[-1] // self.fan_out))
        return [*found, 1]

    @property
    def nodes(self) -> int:
        """All nodes."""
        return sum(self.levels)

    @property
    def height(self) -> int:
        """The levels, child nodes and root included."""
        return len(self.levels)

    def below(self, level: int, index: int) -> range:
        """The nodes of the level below that a node has."""
        first = index * self.width(level)
        return range(first, min(first + self.width(level), self.levels[level - 1]))

    def width(self, level: int) -> int:
        """The most nodes below a node of a level."""
        return self.levels[-2] if level == self.height - 1 else self.fan_out

    def link(self, level: int) -> Link:
        """The links from a level upwards."""
        return self.links[0 if level == 0 else 1]

    def subtree(self, level: int) -> float:
        """The nodes below a node of a level and itself, on average."""
        return sum(self.levels[: level + 1]) / self.levels[level]


def name(level: int, index: int) -> str:
    """What a node is called."""
    return f"{level}-{index}"
