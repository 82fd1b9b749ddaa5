"""Quantiles from summaries are the oracle's, and little travels for them."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.edge.nodes.child import Child
from paneflow.engines.edge.nodes.root import Root
from paneflow.engines.edge.parts.quantiles import runs
from paneflow.engines.edge.question import COMPLETE, Question
from paneflow.engines.edge.records import Closed, Flush, Joined, Lost
from tests.edge.trees import Shape, Tree, expected, left_in_order, rows_of, run
from tests.multicore.stream_cases import StreamCase, as_stream
from tests.properties.cases import Case, draw_table, perhaps
from tests.properties.compare import assert_same_rows
from tests.seeds import some_first

ODD = [math.nan, math.inf, -math.inf, 0.0, -0.0]
COLUMNS = {
    "x": pa.float64(),
    "y": pa.float32(),
    "i": pa.int64(),
    "u": pa.uint32(),
    "price": pa.decimal128(12, 2),
}


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even slices of a few values are sent as summaries."""
    monkeypatch.setattr(runs, "FEW", 2)
    monkeypatch.setattr(runs, "LEAST_STEP", 2)


def number(r: random.Random, column: str) -> Any:
    if column in ("x", "y"):
        return r.choice(ODD) if r.random() < 0.2 else r.choice([r.gauss(0, 9), r.randint(-9, 9)])
    if column == "price":
        return Decimal(r.randint(-99_999, 99_999)) / 100
    return r.randint(0, r.choice([5, 1000, 2**31]))


def quantile(r: random.Random) -> A.Aggregate:
    column = r.choice(list(COLUMNS))
    shares = [r.choice([0.0, 0.1, 0.5, 0.9, 1.0, r.random()]) for _ in range(r.randint(1, 3))]
    return r.choice([A.median(column), A.quantile(column, shares[0]), A.quantiles(column, shares)])


def draw(r: random.Random) -> StreamCase:
    """A question about quantiles, and events of which many are in each slice."""
    stamped = r.random() < 0.3
    table = draw_table(r, r.randint(30, 300), stamped)
    nulls = r.choice([0.0, 0.0, 0.3])
    for column, kind in COLUMNS.items():
        values = pa.array([perhaps(r, nulls, number(r, column)) for _ in range(len(table))], kind)
        known = [name for name in table.column_names if name != column]
        table = table.select(known).append_column(column, values)

    def span(most: int) -> str | int:
        return f"{r.randint(1, most)} s" if stamped else r.randint(1, most)

    windows: dict[str, W.Window] = {
        "whole": W.tumbling(span(100)),
        "moving": W.sliding(span(100), span(30)),
        "visit": W.session(span(3)),
        "five": W.count(5, 3),
    }
    labels = r.choice([["whole"], ["moving"], ["whole", "moving"], list(windows)])
    wanted = [quantile(r) for _ in range(r.randint(1, 3))]
    beside = [A.max("x"), A.mean("i"), A.count(), A.count("x"), A.sum("price"), A.var("x")]
    wanted += r.sample(beside, r.choice([0, 0, 1, 3]))
    key = r.choice([None, None, "k", ["k", "h"]])
    query = pf.Query(
        {label: windows[label] for label in labels},
        {f"a{k}": aggregate for k, aggregate in enumerate(wanted)},
        key=key,
        time="t",
    )
    return as_stream(Case(query, table), r)


def check(seed: int) -> int:
    """How many asks were needed."""
    r = random.Random(seed)
    case = draw(r)
    tree = run(case, r)
    assert tree.late == 0
    assert left_in_order(tree)
    assert_same_rows(case.query, rows_of(tree), expected(case, tree.question))
    return tree.asks


@pytest.mark.parametrize("seeds", some_first(20, 40))
@pytest.mark.usefixtures("small_slices")
def test_random_trees_give_the_oracles_quantiles(seeds: range) -> None:
    assert sum(check(seed) for seed in seeds) > 0


@pytest.mark.exhaustive
@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("first", range(0, 1_000, 100))
def test_a_thousand_random_trees_give_the_oracles_quantiles(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed)


def events_of(r: random.Random, n: int, start: int, end: int) -> pa.Table:
    times = sorted(r.randrange(start, end) for _ in range(n))
    return pa.table({"t": times, "x": [r.gauss(0, 1) for _ in range(n)]})


class Pair:
    """Two child nodes below a root, which is to find medians of windows of ten."""

    def __init__(
        self,
        windows: dict[str, W.Window] | None = None,
        ways: dict[str, str] | None = None,
        shape: Shape | None = None,
    ) -> None:
        r = random.Random(1)
        self.events = {child: events_of(r, 600, 0, 30) for child in ("c0", "c1")}
        asked = windows or {"ten": W.tumbling(10)}
        self.query = pf.Query(asked, {"mid": A.median("x"), "most": A.max("x")}, time="t")
        question = Question(self.query, self.events["c0"].schema, ways)
        self.tree = Tree(question, shape or {"root": ["c0", "c1"]})

    def push(self) -> None:
        """All events are pushed, and reported as far as they are complete."""
        for child, events in self.events.items():
            self.tree.push(child, events)
        self.tree.report()

    def expected(self) -> pa.Table:
        whole = pa.concat_tables(list(self.events.values()))
        return self.query.over(whole, engine="oracle")


def test_rows_wait_for_answers() -> None:
    pair = Pair()
    pair.push()
    tree = pair.tree
    root = tree.nodes["root"]
    assert isinstance(root, Root)
    assert tree.all_rows().num_rows == 0
    assert root.until == 9 < root.watermark
    tree.settle()
    assert tree.all_rows()["end"].to_pylist() == [10, 20]
    tree.finish()
    assert root.until == root.watermark
    assert_same_rows(pair.query, rows_of(tree), pair.expected())


def test_rows_of_other_windows_wait_too_and_leave_in_order() -> None:
    windows: dict[str, W.Window] = {
        "ten": W.tumbling(10),
        "visit": W.session(0),
        "seven": W.count(7),
        "mine": W.count(5),
    }
    pair = Pair(windows, {"mine": "local"})
    pair.push()
    ends = pair.tree.all_rows()["end"].to_pylist()
    assert ends
    assert max(ends) < 10
    pair.tree.finish()
    assert left_in_order(pair.tree)


def test_an_ask_that_was_lost_is_made_again() -> None:
    pair = Pair()
    pair.push()
    pair.tree.asked["c1"].clear()
    pair.tree.settle()
    assert pair.tree.all_rows().num_rows == 0
    pair.tree.tell("root", Joined("c1"))
    pair.tree.finish()
    assert_same_rows(pair.query, rows_of(pair.tree), pair.expected())


def test_an_ask_that_arrives_twice_does_no_harm() -> None:
    pair = Pair()
    pair.push()
    for asks in pair.tree.asked.values():
        asks.extend(list(asks))
    pair.tree.finish()
    assert_same_rows(pair.query, rows_of(pair.tree), pair.expected())


def test_an_answer_counts_once() -> None:
    pair = Pair()
    pair.push()
    pair.tree.ask("c1")
    pair.tree.tell("c1", Flush())
    (answer,) = pair.tree.sent["c1"]
    pair.tree.sent["c1"].append(answer)
    pair.tree.finish()
    assert pair.tree.late == 0
    assert_same_rows(pair.query, rows_of(pair.tree), pair.expected())


@pytest.mark.parametrize("middle", [False, True])
def test_a_lost_child_is_not_waited_for_and_its_rows_are_incomplete(middle: bool) -> None:
    pair = Pair(shape={"root": ["m"], "m": ["c0", "c1"]} if middle else None)
    pair.push()
    tree = pair.tree
    above = tree.nodes[tree.above["c1"]]
    assert not above.due
    tree.tell(above.name, Lost("c1"))
    assert above.due
    tree.settle(without="c1")
    tree.settle(without="c1")
    rows = tree.all_rows()
    assert rows["end"].to_pylist() == [10, 20]
    assert rows[COMPLETE].to_pylist() == [False, False]
    assert rows["most"].to_pylist() == pair.expected()["most"].to_pylist()[:2]


def test_an_event_that_comes_after_the_rows_is_late() -> None:
    pair = Pair()
    pair.push()
    pair.tree.settle()
    pair.tree.push("c0", pair.events["c0"].slice(0, 1))
    pair.tree.settle()
    assert pair.tree.late == 1
    pair.tree.finish()
    assert_same_rows(pair.query, rows_of(pair.tree), pair.expected())


def test_a_child_keeps_slices_until_the_root_is_done_with_them() -> None:
    pair = Pair()
    pair.push()
    children = [pair.tree.nodes[name] for name in pair.tree.children]
    assert not any(child.may_leave for child in children if isinstance(child, Child))
    pair.tree.finish()
    assert all(child.may_leave for child in children if isinstance(child, Child))


def test_a_child_keeps_no_slices_that_came_too_late() -> None:
    pair = Pair()
    pair.tree.push("c1", pair.events["c1"].slice(0, 5))
    pair.tree.tell("c1", Closed())
    pair.tree.tell("root", Lost("c0"))
    for _ in range(3):
        pair.tree.settle(without="c0")
    pair.tree.push("c0", pair.events["c0"])
    pair.tree.finish()
    assert pair.tree.late == pair.events["c0"].num_rows
    child = pair.tree.nodes["c0"]
    assert isinstance(child, Child)
    assert child.may_leave


def test_few_bytes_travel_for_a_median() -> None:
    made = np.random.default_rng(5)
    n, children, seconds = 100_000, 8, 2
    query = pf.Query(W.tumbling(n), {"mid": A.median("x")}, time="t")
    schema = pa.schema([("t", pa.int64()), ("x", pa.float64())])
    tree = Tree(Question(query, schema), {"root": [f"c{k}" for k in range(children)]})
    values = made.lognormal(size=(seconds, children, n))
    for second in range(seconds):
        for child, x in zip(tree.children, values[second], strict=True):
            times = np.arange(n) + second * n
            tree.push(child, pa.table({"t": times, "x": x}))
    tree.finish()
    assert rows_of(tree)["mid"].to_pylist() == np.median(values, axis=(1, 2)).tolist()
    assert tree.bytes < 0.05 * values.nbytes
