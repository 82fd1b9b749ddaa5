"""Trees in this process, in which the bytes and the time of every node are counted.

Nodes are the real ones, and what they say is written as bytes and read again, as over a socket. A
node speaks as soon as it has something to say.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pyarrow as pa

from paneflow.engines.edge.nodes.child import Child
from paneflow.engines.edge.nodes.merge import Merge
from paneflow.engines.edge.nodes.root import Root
from paneflow.engines.edge.question import Question
from paneflow.engines.edge.records import (
    Asked,
    Closed,
    Flush,
    Pushed,
    Record,
    Reported,
    Said,
)
from paneflow.engines.edge.wire import Ack, Ask, Message, Numbered, Wire

Shape = Mapping[str, Sequence[str]]
"""The nodes below each node; those below which there is none are child nodes."""
LIMIT = 1 << 30


class CountedTree:
    """A root, merging nodes and child nodes, which talk to each other at once.

    Args:
        question: What is asked.
        shape: The nodes below each node; the highest is called root.
    """

    def __init__(self, question: Question, shape: Shape) -> None:
        self.wire = Wire(question.schemas, LIMIT)
        self.shape = shape
        self.above = {child: name for name, below in shape.items() for child in below}
        self.leaves = [name for name in self.above if name not in shape]
        self.nodes: dict[str, Child | Merge] = {name: Child(name, question) for name in self.leaves}
        for name, below in shape.items():
            self.nodes[name] = (Root if name == "root" else Merge)(name, question, below)
        self._order = self._from_below("root")
        self._numbers: dict[str, int] = defaultdict(int)
        self.up: dict[str, int] = defaultdict(int)
        """Bytes from each node to the one above."""
        self.down: dict[str, int] = defaultdict(int)
        """Bytes from the node above to each node: acknowledgements, and what is asked."""
        self.reports: dict[str, int] = defaultdict(int)
        self.seconds: dict[str, float] = defaultdict(float)
        """What each node has taken, reading and writing of messages included."""
        self.rows: list[pa.Table] = []

    def push(self, leaf: str, events: pa.Table) -> None:
        """Give a child node events."""
        begun = time.perf_counter()
        child = self.nodes[leaf]
        assert isinstance(child, Child), "only child nodes take events"
        self._numbers[leaf] += 1
        child.take(child.cut(Pushed("sensor", events), self._numbers[leaf]))
        self.seconds[leaf] += time.perf_counter() - begun

    def settle(self) -> None:
        """Let every node speak that has something to say, until none has."""
        said = True
        while said:
            said = False
            for name in self._order:
                said |= self._speak(name)

    def close(self) -> None:
        """No more events come."""
        for leaf in self.leaves:
            self._tell(leaf, Closed())
        self.settle()

    def level(self, name: str) -> int:
        """How far a node is from the child nodes."""
        return 1 + max((self.level(below) for below in self.shape.get(name, ())), default=-1)

    def _speak(self, name: str) -> bool:
        if not self.nodes[name].due:
            return False
        said = self._tell(name, Flush())
        if said.rows is not None and said.rows.num_rows:
            self.rows.append(said.rows)
        for ask in said.asks:
            self._numbers[ask.to] += 1
            number = self._numbers[ask.to]
            self.down[ask.to] += framed(self._write(name, Ask(number, ask.about)))
            self.up[ask.to] += framed(self.wire.encode(Ack(number)))
            self._tell(ask.to, Asked(number, ask))
        if said.report is not None:
            self.reports[name] += 1
            number = self.reports[name]
            data = self._write(name, Numbered(number, said.report))
            self.up[name] += framed(data)
            self._deliver(self.above[name], name, data)
            self.down[name] += framed(self.wire.encode(Ack(number)))
        return True

    def _write(self, name: str, message: Message) -> bytes:
        begun = time.perf_counter()
        data = self.wire.encode(message)
        self.seconds[name] += time.perf_counter() - begun
        return data

    def _deliver(self, name: str, child: str, data: bytes) -> None:
        begun = time.perf_counter()
        message = self.wire.decode(data)
        assert isinstance(message, Numbered), "it was written as one"
        self.nodes[name].take(Reported(child, message.number, message.report))
        self.seconds[name] += time.perf_counter() - begun

    def _tell(self, name: str, record: Record) -> Said:
        begun = time.perf_counter()
        said = self.nodes[name].take(record)
        self.seconds[name] += time.perf_counter() - begun
        return said

    def _from_below(self, name: str) -> list[str]:
        below = [found for child in self.shape.get(name, ()) for found in self._from_below(child)]
        return [*below, name]


def framed(data: bytes) -> int:
    """The bytes of a message on a connection of ZeroMQ, which puts a head before each frame."""
    return len(data) + (2 if len(data) < 256 else 9)


def levels(height: int, width: int) -> dict[str, list[str]]:
    """A tree in which every level below the root has the same number of nodes."""
    names = [[f"{level}-{k}" for k in range(width)] for level in range(height - 1)]
    shape = {
        node: [below]
        for lower, upper in pairwise(names)
        for below, node in zip(lower, upper, strict=True)
    }
    return {"root": names[-1], **shape}
