"""Trees whose queries change while events arrive, and the rows that each query is to have."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import paneflow as pf
from paneflow import windows as W
from paneflow.engines.edge.nodes.root import in_order
from paneflow.engines.edge.parts.slices import ticks
from paneflow.engines.edge.programme.child import ChildProgramme
from paneflow.engines.edge.programme.merge import MergeProgramme
from paneflow.engines.edge.programme.root import RootProgramme
from paneflow.engines.edge.question import COMPLETE, Question
from paneflow.engines.edge.records import AFTER_ALL, Pushed, Record
from paneflow.written import write_query
from tests.edge.trees import Tree, draw_shape, expected, size_of
from tests.multicore.stream_cases import StreamCase
from tests.properties.cases import AGGREGATES, MERGEABLE, WINDOWS, draw_aggregate
from tests.properties.compare import assert_same_rows

WORDED = tuple(
    name for name in AGGREGATES if name not in ("define_commutative", "define_ordered", "apply")
)
"""Aggregates that can be stated in words."""


@dataclass
class Followed:
    """A query that was added to a tree, and what has become of it."""

    question: Question
    begins: int | None = None
    ends: int = AFTER_ALL
    shares: str | None = None
    rows: list[pa.Table] = field(default_factory=list)

    def all_rows(self) -> pa.Table:
        """All rows, in order."""
        rows = pa.concat_tables([self.question.row_schema.empty_table(), *self.rows])
        return in_order(rows, self.question)

    def wanted(self, rows: pa.Table) -> pa.Table:
        """Those of all rows that it is to give."""
        if self.begins is None:
            return rows.slice(0, 0)
        sessions = [n for n, w in self.question.query.windows.items() if isinstance(w, W.Session)]
        is_session = pc.is_in(rows["window"].cast(pa.string()), pa.array(sessions, pa.string()))
        ends = ticks(rows, "end") + is_session.to_numpy().astype(np.int64)
        chosen = (ticks(rows, "start") >= self.begins) & (ends <= self.ends)
        return rows.filter(pa.array(chosen))


class ChangingTree(Tree):
    """A tree to which queries are added, and from which they are removed."""

    def __init__(self, question: Question, shape: Mapping[str, list[str]], columns: pa.Schema):
        self.columns = columns
        self.followed: dict[str, Followed] = {}
        self.live: list[str] = []
        super().__init__(question, shape)

    @property
    def root(self) -> RootProgramme:
        root: Any = self.nodes["root"]
        assert isinstance(root, RootProgramme)
        return root

    def made(self, name: str) -> Any:
        if name == "root":
            return RootProgramme(name, self.question, self.columns, self.shape[name])
        if name in self.shape:
            return MergeProgramme(name, self.question, self.shape[name])
        return ChildProgramme(name, self.question, self.columns)

    def push(self, child: str, events: pa.Table, source: str = "s") -> None:
        node: Any = self.nodes[child]
        self.numbers[child] += 1
        self.tell(child, node.cut(Pushed(source, events), self.numbers[child]))

    def tell(self, name: str, record: Record) -> None:
        said = self.nodes[name].take(record)
        self.bytes += size_of(said)
        if said.report is not None:
            self.sent[name].append(said.report)
        if said.rows is not None:
            self.rows.append(said.rows)
        for ask in said.asks:
            self.asked[ask.to].append(ask)
        for query, rows in said.added.items():
            self.followed[query].rows.append(rows)
        if name == "root":
            self.follow()

    def follow(self) -> None:
        """Note from when on queries are answered."""
        for name in self.live:
            standing = self.root.queries[name]
            self.followed[name].begins = standing.begins
            self.followed[name].shares = standing.shares

    def add(self, name: str, query: pf.Query) -> None:
        record = self.root.adding(name, write_query(query), {})
        stated = self.root.known.stating(name, write_query(query), {}, self.columns)
        self.followed[name] = Followed(stated.question(self.question))
        self.live.append(name)
        self.tell("root", record)

    def remove(self, name: str) -> None:
        self.followed[name].ends = self.root.queries[name].until
        self.live.remove(name)
        self.tell("root", self.root.removing(name))

    def check(self, case: StreamCase) -> None:
        """Every query has given the rows that it was to give, and no others."""
        for followed in self.followed.values():
            query = followed.question.query
            right = followed.wanted(expected(replace(case, query=query), followed.question))
            rows = followed.all_rows()
            assert pc.all(rows[COMPLETE], min_count=0).as_py()
            assert_same_rows(query, rows.drop_columns(COMPLETE), right)


def draw_query(r: random.Random, running: list[pf.Query], stamped: bool) -> pf.Query:
    """A query that can be added, often one that can share the slices of those that run."""
    main = r.choice(running)
    if r.random() < 0.5:
        some = r.sample(list(main.aggregates), r.randint(1, len(main.aggregates)))
        windows = {
            label: coarser(r, window)
            for label, window in main.windows.items()
            if isinstance(window, W.Sliding | W.Session)
        }
        if windows:
            aggregates = {name: main.aggregates[name] for name in some}
            return pf.Query(windows, aggregates, main.key, "t")
    kinds = r.sample(MERGEABLE, r.randint(1, 2))
    names = r.sample(WORDED, r.randint(1, 3))
    windows = {kind: WINDOWS[kind](r, stamped) for kind in kinds}
    aggregates = {name: draw_aggregate(r, name) for name in names}
    return pf.Query(windows, aggregates, r.choice([(), ("k",), ("k", "h")]), "t")


def coarser(r: random.Random, window: W.Window) -> W.Window:
    """A window whose edges are edges of another."""
    if not isinstance(window, W.Sliding) or r.random() < 0.3:
        return window
    unit = window.slide
    size = unit.value * r.randint(1, 3)
    offset = window.offset.value
    return (
        W.tumbling(f"{size} us", offset=f"{offset} us")
        if unit.textual
        else W.tumbling(size, offset=offset)
    )


def run(case: StreamCase, r: random.Random) -> ChangingTree:
    """A stream's pushes, in a random tree whose queries change at random moments."""
    question = Question(case.query, case.schema)
    tree = ChangingTree(question, draw_shape(r, case.sources), case.schema)
    stamped = pa.types.is_timestamp(case.schema.field("t").type)
    for source, events in case.pushes:
        tree.push(f"c{source}", events)
        for _ in range(r.choice([0, 1, 5, 25])):
            tree.move(r)
        if r.random() < 0.2 and len(tree.followed) < 5:
            running = [case.query, *(tree.followed[name].question.query for name in tree.live)]
            tree.add(f"q{len(tree.followed)}", draw_query(r, running, stamped))
        if tree.live and r.random() < 0.1:
            tree.remove(r.choice(tree.live))
    tree.finish()
    return tree
