"""Count windows from cells are the oracle's, and little travels for them."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.edge import interpreting
from paneflow.engines.edge.nodes import counting
from paneflow.engines.edge.nodes.child import Child
from paneflow.engines.edge.parts.counts import cells
from paneflow.engines.edge.parts.counts.positions import grouped, settled_by
from paneflow.engines.edge.question import COMPLETE, Question
from paneflow.engines.edge.records import Closed, Flush, Joined, Lost
from tests.edge.trees import Shape, Tree, expected, left_in_order, rows_of, run
from tests.multicore.stream_cases import StreamCase, as_stream
from tests.properties.cases import Case, draw_aggregate, draw_table
from tests.properties.compare import assert_same_rows
from tests.seeds import some_first

MERGEABLE = (
    *("count", "sum", "exact_sum", "min", "max", "mean", "var", "std", "geometric_mean"),
    *("product", "linear_regression", "define_commutative", "approx_distinct", "bloom_filter"),
)


@dataclass
class Lengths:
    """How long cells are: another length after every step."""

    random: random.Random
    unit: int = 1
    choices: tuple[int, ...] = (0, 4, 8, 16, 64, 256)

    def __call__(self, *seen: object) -> int:
        return self.random.choice(self.choices) * self.unit


@pytest.fixture
def lengths(monkeypatch: pytest.MonkeyPatch) -> Lengths:
    """Even a few events make a cell, and cells are opened by degrees."""
    for name, value in {"FEW": 1, "SPLIT": 4, "LEAST_SPLIT": 6}.items():
        monkeypatch.setattr(cells, name, value)
    monkeypatch.setattr(interpreting, "LEAST_SPACING", 1)
    drawn = Lengths(random.Random(7))
    monkeypatch.setattr(counting, "grain_for", drawn)
    monkeypatch.setattr(cells, "grain_for", drawn)
    return drawn


def draw(r: random.Random) -> StreamCase:
    """A question with count windows, and events."""
    stamped = r.random() < 0.3
    table = draw_table(r, r.randint(10, 200), stamped)
    windows: dict[str, W.Window] = {
        "few": W.count(r.randint(1, 40), r.randint(1, 60), partial=r.random() < 0.3),
        "many": W.count(r.randint(1, 60)),
        "ten": W.tumbling("10 s" if stamped else 10),
    }
    labels = r.choice([["few"], ["many"], ["few", "many"], list(windows)])
    wanted = {f"a{k}": draw_aggregate(r, r.choice(MERGEABLE)) for k in range(r.randint(1, 3))}
    key = r.choice([None, None, "k", ["k", "h"]])
    query = pf.Query({label: windows[label] for label in labels}, wanted, key=key, time="t")
    return as_stream(Case(query, table), r)


def check(seed: int, lengths: Lengths) -> int:
    """How many asks were needed."""
    r = random.Random(seed)
    case = draw(r)
    lengths.unit = 1_000_000 if pa.types.is_timestamp(case.schema.field("t").type) else 1
    tree = run(case, r)
    assert tree.late == 0
    assert left_in_order(tree)
    assert_same_rows(case.query, rows_of(tree), expected(case, tree.question))
    return tree.asks


@pytest.mark.parametrize("seeds", some_first(32, 64))
def test_random_trees_give_the_oracles_count_windows(seeds: range, lengths: Lengths) -> None:
    assert sum(check(seed, lengths) for seed in seeds) > 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(0, 1_000, 100))
def test_a_thousand_random_trees_give_the_oracles_count_windows(
    lengths: Lengths, first: int
) -> None:
    for seed in range(first, first + 100):
        check(seed, lengths)


def ways(windows: dict[str, W.Window], aggregate: A.Aggregate) -> dict[str, str]:
    query = pf.Query(windows, {"a": aggregate}, time="t")
    question = Question(query, pa.schema({"t": pa.int64(), "x": pa.float64()}))
    return {label: way.name for label, way in question.ways.items()}


def test_events_are_sent_where_windows_end_often_or_their_order_matters() -> None:
    assert ways({"w": W.count(5000)}, A.max("x")) == {"w": "counted"}
    assert ways({"w": W.count(50_000, 5000)}, A.max("x")) == {"w": "counted"}
    assert ways({"w": W.count(50_000, 10)}, A.max("x")) == {"w": "events"}
    assert ways({"w": W.count(5000)}, A.median("x")) == {"w": "events"}
    assert ways({"w": W.count(5000)}, A.first("x")) == {"w": "events"}
    both: dict[str, W.Window] = {"w": W.count(5000), "v": W.count(5)}
    assert ways(both, A.max("x")) == {"w": "events", "v": "events"}


def test_no_settled_group_reaches_beyond_the_time_that_is_settled() -> None:
    #  key 0: 0 ======= 10
    #  key 1:      5 ========= 20, which waits for an answer
    spans = (np.array([0, 1]), np.array([0, 5]), np.array([10, 20]))
    groups = grouped(*spans, np.array([3, 3]), np.array([0, 0]))
    assert settled_by(groups, np.array([False, False]), 30) == 30
    assert settled_by(groups, np.array([False, True]), 30) == 0


class Pair:
    """Two child nodes with events of which each window of a hundred takes half of theirs."""

    def __init__(self, shape: Shape) -> None:
        r = random.Random(3)
        self.events = {}
        for child in ("c0", "c1"):
            times = sorted(r.randrange(1000) for _ in range(500))
            values = [r.gauss(0, 1) for _ in times]
            self.events[child] = pa.table({"t": times, "x": values})
        self.query = pf.Query({"w": W.count(100)}, {"most": A.max("x")}, time="t")
        self.tree = Tree(Question(self.query, self.events["c0"].schema), shape)

    def push(self) -> None:
        """All events are pushed, and reported as far as they are complete."""
        for child, events in self.events.items():
            self.tree.push(child, events)
        self.tree.report()

    def expected(self) -> pa.Table:
        return self.query.over(pa.concat_tables(list(self.events.values())), engine="oracle")


DIRECT = {"root": ["c0", "c1"]}
DEEP = {"root": ["m"], "m": ["c0", "c1"]}


def test_rows_wait_for_cells_that_child_nodes_keep_until_then(lengths: Lengths) -> None:
    lengths.choices = (64,)
    pair = Pair(DIRECT)
    pair.push()
    children = [node for node in pair.tree.nodes.values() if isinstance(node, Child)]
    assert pair.tree.all_rows().num_rows == 0
    assert not any(child.may_leave for child in children)
    pair.tree.finish()
    assert_same_rows(pair.query, rows_of(pair.tree), pair.expected())
    assert all(child.may_leave for child in children)


def test_an_ask_that_was_lost_is_made_again(lengths: Lengths) -> None:
    lengths.choices = (64,)
    pair = Pair(DIRECT)
    pair.push()
    pair.tree.asked["c1"].clear()
    pair.tree.settle()
    assert pair.tree.all_rows().num_rows == 0
    pair.tree.tell("root", Joined("c1"))
    pair.tree.finish()
    assert_same_rows(pair.query, rows_of(pair.tree), pair.expected())


def test_an_answer_counts_once(lengths: Lengths) -> None:
    lengths.choices = (64,)
    pair = Pair(DIRECT)
    pair.push()
    pair.tree.ask("c1")
    pair.tree.tell("c1", Flush())
    (answer,) = pair.tree.sent["c1"]
    pair.tree.sent["c1"].append(answer)
    pair.tree.finish()
    assert pair.tree.late == 0
    assert_same_rows(pair.query, rows_of(pair.tree), pair.expected())


@pytest.mark.parametrize("shape", [DIRECT, DEEP], ids=["direct", "deep"])
def test_a_lost_child_is_not_waited_for_and_rows_are_incomplete(
    shape: Shape, lengths: Lengths
) -> None:
    lengths.choices = (64,)
    pair = Pair(shape)
    pair.push()
    pair.tree.tell(pair.tree.above["c1"], Lost("c1"))
    for _ in range(5):
        pair.tree.settle(without="c1")
    rows = pair.tree.all_rows()
    assert rows["seq"].to_pylist() == list(range(rows.num_rows))
    assert rows.num_rows > 3
    assert not any(rows[COMPLETE].to_pylist())
    pair.tree.tell(pair.tree.above["c1"], Joined("c1"))
    pair.tree.finish()
    lost = pair.tree.nodes["c1"]
    assert isinstance(lost, Child)
    assert lost.may_leave


def test_an_event_that_comes_after_the_rows_is_late(lengths: Lengths) -> None:
    lengths.choices = (64,)
    pair = Pair(DIRECT)
    pair.push()
    for _ in range(5):
        pair.tree.settle()
    before = pair.tree.all_rows()
    assert before.num_rows > 5
    # In the stretch of time in which the next cell begins.
    straggler = pa.table({"t": [970], "x": [0.0]})
    for child, earlier in pair.events.items():
        later = pa.table({"t": range(1000, 1200), "x": [0.5] * 200})
        pair.tree.push(child, pa.concat_tables([straggler, later] if child == "c0" else [later]))
        pair.events[child] = pa.concat_tables([earlier, later])
    pair.tree.finish()
    assert pair.tree.late == 1
    assert_same_rows(pair.query, rows_of(pair.tree), pair.expected())


def test_a_child_keeps_no_cells_that_came_too_late(lengths: Lengths) -> None:
    pair = Pair(DIRECT)
    lengths.choices = (0,)
    pair.tree.push("c1", pair.events["c1"].slice(0, 5))
    pair.tree.tell("c1", Closed())
    pair.tree.tell("root", Lost("c0"))
    for _ in range(3):
        pair.tree.settle(without="c0")
    lengths.choices = (64,)
    pair.tree.push("c0", pair.events["c0"])
    pair.tree.finish()
    assert pair.tree.late == pair.events["c0"].num_rows
    child = pair.tree.nodes["c0"]
    assert isinstance(child, Child)
    assert child.may_leave


def test_few_bytes_travel_for_long_count_windows() -> None:
    made = np.random.default_rng(5)
    n, children, batches, each = 1_000_000, 8, 25, 20_000
    query = pf.Query(W.count(n), {"most": A.max("x")}, time="t")
    schema = pa.schema({"t": pa.int64(), "x": pa.float64()})
    tree = Tree(Question(query, schema), {"root": [f"c{k}" for k in range(children)]})
    pushed = []
    for batch in range(batches):
        for child in tree.children:
            times = np.sort(made.integers(batch * 10**6, (batch + 1) * 10**6, each))
            pushed.append(pa.table({"t": times, "x": made.normal(size=each)}))
            tree.push(child, pushed[-1])
        tree.settle()
    tree.finish()
    events = pa.concat_tables(pushed)
    assert rows_of(tree).equals(query.over(events))
    assert tree.bytes < 0.02 * 8 * len(events)
