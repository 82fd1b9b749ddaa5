"""The simulation: what happens at the nodes of a tree, event by event, by a simulated clock.

A node works as the real loop does, in turns, one after the other: it takes all reports that have
arrived, writes them down in one commit, and speaks when that is due. A report waits while the node
is at work, and what a node says leaves it at the end of the turn.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bench.edge.simulated.costs import Costs
from bench.edge.simulated.logic import Logic, Sent
from bench.edge.simulated.scenario import Scenario
from paneflow.aggregates.operator import Array

ACK = 34
"""Bytes of an acknowledgement."""
ARRIVES, ENDS, WAKES = range(3)


class Event(NamedTuple):
    """Something that happens; events at the same time happen in the order in which they arose."""

    time: float
    number: int
    kind: int
    node: int
    child: int = 0
    sent: Sent | None = None


@dataclass
class Node:
    """A merging node or the root, at work or idle."""

    level: int
    index: int
    below: int
    heard: dict[int, int] = field(default_factory=dict)
    """How many windows each node below has reported."""
    reported: list[int] = field(default_factory=list)
    """How many nodes below have reported each window."""
    inbox: list[tuple[int, Sent]] = field(default_factory=list)
    working: bool = False
    spoken: int = 0
    due_since: float = np.inf
    speaks: int = 0
    """The windows that it speaks of in this turn."""
    untold: int = 0
    """Windows in reports that it has not spoken of, counted once for each node below."""
    busy: float = 0.0
    last_arrival: float = 0.0
    """When its last message arrives above: later ones cannot overtake it."""

    @property
    def complete(self) -> int:
        """The windows that all nodes below have reported."""
        whole = (count < self.below for count in self.reported)
        return next((k for k, part in enumerate(whole) if part), len(self.reported))


@dataclass(frozen=True)
class Outcome:
    """What a simulation has found."""

    latencies: Array
    """Seconds from the end of each window to its row at the root."""
    sizes: list[int]
    """Bytes of all reports and acknowledgements between each level and the next."""
    packets: list[int]
    busy: list[float]
    """The largest share of the time that a node of each level is at work."""
    to_root: float
    """Bytes of reports a second that reach the root."""


class World:
    """A tree, simulated.

    Args:
        scenario: What is simulated.
        logic: What nodes say.
        costs: What their work costs.
        random: All that is left to chance.
    """

    def __init__(
        self, scenario: Scenario, logic: Logic, costs: Costs, random: np.random.Generator
    ) -> None:
        self._scenario = scenario
        self._logic = logic
        self._costs = costs
        self._random = random
        self._events: list[Event] = []
        self._made = 0
        self._nodes: list[Node] = []
        self._first: list[int] = [0]
        """The number of the first node of each level; child nodes are not among them."""
        for level, count in enumerate(scenario.levels[1:], 1):
            self._first.append(len(self._nodes))
            self._nodes += [
                Node(
                    level, index, len(scenario.below(level, index)), reported=[0] * scenario.windows
                )
                for index in range(count)
            ]
        self._sizes = [0] * (scenario.height - 1)
        self._packets = [0] * (scenario.height - 1)
        self._rows = np.full(scenario.windows, np.nan)

    def run(self) -> Outcome:
        """Simulate all windows, until the root has given their rows."""
        scenario = self._scenario
        self._report_first()
        while self._events:
            self._happen(heapq.heappop(self._events))
        assert not np.isnan(self._rows).any(), "every window has a row"
        levels = range(1, scenario.height)
        # A tree that falls behind is at work for longer than its windows last.
        lasted = max(scenario.windows, self._rows.max() - 1)
        busy = [max(n.busy for n in self._nodes if n.level == level) / lasted for level in levels]
        reports = sum(self._nodes[-1].heard.values())
        to_root = (self._sizes[-1] - ACK * reports) / scenario.windows
        ends = np.arange(1, scenario.windows + 1)
        return Outcome(self._rows - ends, self._sizes, self._packets, busy, to_root)

    def _report_first(self) -> None:
        """All child nodes report all windows; what they do in between is not simulated."""
        scenario, costs = self._scenario, self._costs
        shape = (scenario.windows, scenario.children)
        sent = [
            [self._logic.first(index, number) for index in range(scenario.children)]
            for number in range(scenario.windows)
        ]
        sizes = np.array([[one.size for one in row] for row in sent])
        ends = np.arange(1, scenario.windows + 1)[:, None]
        shown = ends + self._random.normal(0, scenario.skew, scenario.children)
        # The first sensor sends when a window ends, and shows only with its next batch that it has.
        evenly = np.append(1, np.arange(1, scenario.children) / scenario.children)
        late = evenly if scenario.even else self._random.uniform(0, 1, shape)
        closes = shown + scenario.chunk * late
        speaking = costs.merge(scenario.slices) + 2 * costs.commit
        delays, packets = scenario.link(0).delays(sizes, self._random)
        arrives = np.maximum.accumulate(closes + scenario.linger + speaking + delays)
        self._packets[0] += packets + sizes.size
        self._sizes[0] += int(sizes.sum()) + ACK * sizes.size
        for number, row in enumerate(sent):
            for index, one in enumerate(row):
                parent = self._first[1] + index // scenario.width(1)
                self._add(float(arrives[number, index]), ARRIVES, parent, index, one)

    def _add(
        self, time: float, kind: int, node: int, child: int = 0, sent: Sent | None = None
    ) -> None:
        self._made += 1
        heapq.heappush(self._events, Event(time, self._made, kind, node, child, sent))

    def _happen(self, event: Event) -> None:
        node = self._nodes[event.node]
        if event.kind == ARRIVES:
            assert event.sent is not None, "a report arrives"
            node.inbox.append((event.child, event.sent))
        elif event.kind == ENDS:
            self._end(event.node, node, event.time)
        if not node.working:
            self._turn(event.node, node, event.time)

    def _turn(self, number: int, node: Node, now: float) -> None:
        """Begin a turn, if there is anything to do."""
        costs, scenario = self._costs, self._scenario
        taken, works = 0.0, bool(node.inbox)
        for child, sent in node.inbox:
            self._logic.take(node.level, node.index, child, sent)
            before = node.heard.get(child, 0)
            node.heard[child] = before + sent.windows
            for k in range(before, before + sent.windows):
                node.reported[k] += 1
            node.untold += sent.windows
            taken += costs.message + costs.report(sent.windows * scenario.slices)
        node.inbox = []
        complete = node.complete
        if complete > node.spoken and node.due_since == np.inf:
            node.due_since = now + taken
            self._add(now + taken + scenario.linger, WAKES, number)
        if now >= node.due_since + scenario.linger:
            node.speaks = complete - node.spoken
            top = node.level == scenario.height - 1
            slices = node.untold * scenario.slices
            taken += costs.rows(slices) if top else costs.merge(slices)
            node.untold, works = 0, True
        if works:
            taken += costs.commit
            node.busy += taken
            node.working = True
            self._add(now + taken, ENDS, number)

    def _end(self, number: int, node: Node, now: float) -> None:
        """End a turn: what was said goes out."""
        node.working = False
        if node.speaks == 0:
            return
        sent = self._logic.speak(node.level, node.index, node.speaks)
        if node.level == self._scenario.height - 1:
            self._rows[node.spoken : node.spoken + node.speaks] = now
        else:
            self._send(node, sent, now)
        node.spoken += node.speaks
        node.speaks, node.due_since = 0, np.inf

    def _send(self, node: Node, sent: Sent, now: float) -> None:
        scenario, level = self._scenario, node.level
        delays, packets = scenario.link(level).delays(np.array([sent.size]), self._random)
        node.last_arrival = max(node.last_arrival, now + float(delays[0]))
        parent = self._first[level + 1] + node.index // scenario.width(level + 1)
        self._sizes[level] += sent.size + ACK
        self._packets[level] += packets + 1
        self._add(node.last_arrival, ARRIVES, parent, node.index, sent)
