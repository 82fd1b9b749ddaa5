"""What simulated nodes say: the real machines, or only how long their messages are."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from bench.edge.simulated.costs import Costs, question, window
from bench.edge.simulated.scenario import Scenario, name
from paneflow.engines.edge.nodes.child import Child
from paneflow.engines.edge.nodes.merge import Merge
from paneflow.engines.edge.nodes.root import Root
from paneflow.engines.edge.records import Flush, Pushed, Reported, Said
from paneflow.engines.edge.wire import Numbered, Wire


class Sent(NamedTuple):
    """A report on its way."""

    size: int
    windows: int
    """How many windows it tells of."""
    data: bytes = b""


class Logic(Protocol):
    """What nodes say."""

    def first(self, index: int, number: int) -> Sent:
        """A child node reports a window."""
        ...

    def take(self, level: int, index: int, child: int, sent: Sent) -> None:
        """A node takes the report of a node below."""
        ...

    def speak(self, level: int, index: int, windows: int) -> Sent:
        """A node speaks of so many windows, or gives their rows."""
        ...


class Fitted:
    """Counts windows; the lengths of messages are those that were measured."""

    def __init__(self, scenario: Scenario, costs: Costs) -> None:
        most = scenario.windows + 1
        self._sizes = [0, *(costs.size(n * scenario.slices) for n in range(1, most))]

    def first(self, index: int, number: int) -> Sent:
        return Sent(self._sizes[1], 1)

    def take(self, level: int, index: int, child: int, sent: Sent) -> None:
        """Nothing but the number of windows matters."""

    def speak(self, level: int, index: int, windows: int) -> Sent:
        return Sent(self._sizes[windows], windows)


class Real:
    """The real machines, and real messages."""

    def __init__(self, scenario: Scenario) -> None:
        asked = question(scenario.slices)
        self._wire = Wire(asked.schemas)
        self._events = [window(number, scenario.slices) for number in range(scenario.windows)]
        self._children = [Child(name(0, k), asked) for k in range(scenario.children)]
        self._nodes: dict[tuple[int, int], Merge] = {}
        for level, count in enumerate(scenario.levels[1:], 1):
            kind = Root if level == scenario.height - 1 else Merge
            for index in range(count):
                below = [name(level - 1, child) for child in scenario.below(level, index)]
                self._nodes[level, index] = kind(name(level, index), asked, below)
        self._numbers: dict[str, int] = {}
        self.rows = 0

    def first(self, index: int, number: int) -> Sent:
        child = self._children[index]
        child.take(child.cut(Pushed("sensor", self._events[number]), number + 1))
        return self._written(child.name, child.take(Flush()), 1)

    def take(self, level: int, index: int, child: int, sent: Sent) -> None:
        message = self._wire.decode(sent.data)
        assert isinstance(message, Numbered), "it was written as one"
        record = Reported(name(level - 1, child), message.number, message.report)
        self._nodes[level, index].take(record)

    def speak(self, level: int, index: int, windows: int) -> Sent:
        node = self._nodes[level, index]
        said = node.take(Flush())
        if said.rows is not None:
            self.rows += said.rows.num_rows
            return Sent(0, windows)
        return self._written(node.name, said, windows)

    def _written(self, node: str, said: Said, windows: int) -> Sent:
        assert said.report is not None, "a flush is answered"
        number = self._numbers[node] = self._numbers.get(node, 0) + 1
        data = self._wire.encode(Numbered(number, said.report))
        return Sent(len(data), windows, data)


def random_of(seed: int) -> np.random.Generator:
    """All that is left to chance in a simulation."""
    return np.random.default_rng(seed)
