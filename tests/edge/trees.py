"""Trees of nodes in one process: random shapes, random delays, and restarts from snapshots."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from paneflow import windows as W
from paneflow.engines.edge.nodes.child import Child
from paneflow.engines.edge.nodes.merge import Merge
from paneflow.engines.edge.nodes.node import Snapshot
from paneflow.engines.edge.nodes.root import Root, in_order
from paneflow.engines.edge.question import COMPLETE, Question
from paneflow.engines.edge.records import (
    Ask,
    Asked,
    Closed,
    Flush,
    Pushed,
    Record,
    Report,
    Reported,
    Said,
)
from tests.multicore.stream_cases import StreamCase

RESTARTS = 0.05
Shape = Mapping[str, list[str]]
"""The nodes below each node; those below which there is none are child nodes."""


@dataclass
class Tree:
    """A root, merging nodes and child nodes, joined by queues in which reports wait."""

    question: Question
    shape: Shape
    nodes: dict[str, Child | Merge] = field(default_factory=dict)
    sent: dict[str, deque[Report]] = field(default_factory=dict)
    asked: dict[str, deque[Ask]] = field(default_factory=dict)
    """Asks that are on their way to a node."""
    rows: list[pa.Table] = field(default_factory=list)
    slices: list[pa.Table] = field(default_factory=list)
    asks: int = 0
    """Asks that have arrived."""
    bytes: int = 0
    """Bytes that were sent from one node to another, as tables and asks, without compression."""

    def __post_init__(self) -> None:
        for name in self.names:
            self.nodes[name] = self.made(name)
            self.sent[name] = deque()
            self.asked[name] = deque()
        self.above = {child: name for name, below in self.shape.items() for child in below}
        self.numbers = dict.fromkeys(self.names, 0)

    @property
    def names(self) -> list[str]:
        return [*self.shape, *self.children]

    @property
    def children(self) -> list[str]:
        below = [name for names in self.shape.values() for name in names]
        return sorted(name for name in below if name not in self.shape)

    def made(self, name: str) -> Child | Merge:
        if name == "root":
            return Root(name, self.question, self.shape[name])
        if name in self.shape:
            return Merge(name, self.question, self.shape[name])
        return Child(name, self.question)

    def push(self, child: str, events: pa.Table, source: str = "s") -> None:
        node = self.nodes[child]
        assert isinstance(node, Child)
        self.numbers[child] += 1
        cut = node.cut(Pushed(source, events), self.numbers[child])
        self.tell(child, cut)

    def tell(self, name: str, record: Record) -> None:
        """Give a node a record; what it says goes up, or is among the rows."""
        said = self.nodes[name].take(record)
        self.bytes += size_of(said)
        if said.report is not None:
            self.sent[name].append(said.report)
        if said.rows is not None:
            self.rows.append(said.rows)
        if said.slices is not None:
            self.slices.append(said.slices)
        for ask in said.asks:
            self.asked[ask.to].append(ask)

    def deliver(self, name: str) -> None:
        """The node above takes the next report of a node."""
        self.numbers[name] += 1
        report = self.sent[name].popleft()
        self.tell(self.above[name], Reported(name, self.numbers[name], report))

    def ask(self, name: str) -> None:
        """A node takes the next ask of the node above."""
        self.asks += 1
        self.numbers[name] += 1
        self.tell(name, Asked(self.numbers[name], self.asked[name].popleft()))

    def restart(self, name: str) -> None:
        """A new node takes up the state of an old one."""
        about, tables = self.nodes[name].snapshot()
        self.nodes[name] = self.made(name)
        self.nodes[name].restore(Snapshot(json.loads(json.dumps(about)), tables))

    def move(self, r: random.Random) -> None:
        """Something happens somewhere: a node speaks, a report arrives, a node restarts."""
        name = r.choice(self.names)
        if r.random() < RESTARTS:
            self.restart(name)
        elif self.asked[name] and r.random() < 0.5:
            self.ask(name)
        elif self.sent[name]:
            self.deliver(name)
        elif r.random() < 0.5 or self.nodes[name].due:
            self.tell(name, Flush())

    def finish(self) -> None:
        """Every child node ends; all that is under way arrives."""
        for child in self.children:
            self.tell(child, Closed())
        self.settle()
        while any(self.asked.values()) or any(node.due for node in self.nodes.values()):
            self.settle()

    def settle(self, without: str = "") -> None:
        """All asks arrive, and all reports; one node may be out of reach."""
        for name in reversed(self.from_below("root")):
            while self.asked[name] and name != without:
                self.ask(name)
                self.tell(name, Flush())
        self.report(without)

    def report(self, without: str = "") -> None:
        """All nodes speak, and all reports arrive."""
        for name in self.from_below("root"):
            if name != without:
                self.tell(name, Flush())
                while self.sent[name]:
                    self.deliver(name)

    def from_below(self, name: str) -> list[str]:
        """A node after all nodes below it."""
        below = [found for child in self.shape.get(name, []) for found in self.from_below(child)]
        return [*below, name]

    @property
    def late(self) -> int:
        return sum(node.counts.get("late", 0) for node in self.nodes.values())

    def all_rows(self) -> pa.Table:
        """All rows, in order."""
        schema = self.question.row_schema
        rows = pa.concat_tables([schema.empty_table(), *self.rows])
        return in_order(rows, self.question)


def size_of(said: Said) -> int:
    """The bytes of what a node says to others."""
    asks = sum(len(json.dumps(ask.about)) for ask in said.asks)
    tables = said.report.tables.values() if said.report is not None else ()
    batches = [batch for table in tables for batch in table.combine_chunks().to_batches()]
    return asks + sum(int(batch.serialize().size) for batch in batches)


def draw_shape(r: random.Random, children: int) -> Shape:
    """A tree over so many child nodes, of any depth and fan-out."""
    names = [f"c{k}" for k in range(children)]
    shape: dict[str, list[str]] = {}
    level = names
    while len(level) > 1 and r.random() < 0.6:
        above: list[str] = []
        left = list(level)
        r.shuffle(left)
        while left:
            taken, left = left[: (n := r.randint(1, 3))], left[n:]
            name = f"m{len(shape)}"
            shape[name] = taken
            above.append(name)
        level = above
    return {"root": level, **shape}


def run(case: StreamCase, r: random.Random, ways: Mapping[str, str] | None = None) -> Tree:
    """A stream's pushes, each source to a child node of its own, in a random tree."""
    question = Question(case.query, case.schema, ways)
    tree = Tree(question, draw_shape(r, case.sources))
    for source, events in case.pushes:
        tree.push(f"c{source}", events)
        for _ in range(r.choice([0, 1, 5])):
            tree.move(r)
    tree.finish()
    return tree


def expected(case: StreamCase, question: Question) -> pa.Table:
    """The oracle's rows as a tree gives them: sessions are not numbered."""
    rows = case.expected()
    sessions = [label for label, w in case.query.windows.items() if isinstance(w, W.Session)]
    unnumbered = pc.is_in(rows["window"].cast(pa.string()), pa.array(sessions, pa.string()))
    seq = pc.if_else(unnumbered, pa.scalar(None, pa.int64()), rows["seq"])
    rows = rows.set_column(rows.schema.get_field_index("seq"), "seq", seq)
    return in_order(rows, question)


def left_in_order(tree: Tree) -> bool:
    """Whether no row was given after one of a window that ends later."""
    ends = pa.concat_tables(tree.rows)["end"].cast(pa.int64()).to_numpy()
    return bool((ends[1:] >= ends[:-1]).all())


def rows_of(tree: Tree) -> pa.Table:
    """What a tree gave, all of it complete."""
    rows = tree.all_rows()
    assert pc.all(rows[COMPLETE], min_count=0).as_py()
    return rows.drop_columns(COMPLETE)
