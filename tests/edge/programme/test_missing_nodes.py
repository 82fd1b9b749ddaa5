"""Queries are added while nodes are missing, and nodes join later than queries."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.edge.question import COMPLETE, Question
from paneflow.engines.edge.records import Closed, Flush, Joined, Lost
from tests.edge.programme.trees import ChangingTree
from tests.edge.test_missing_nodes import BY_SLICES
from tests.edge.trees import draw_shape
from tests.multicore.stream_cases import StreamCase, draw_stream
from tests.properties.cases import MERGEABLE, WINDOWS, draw_aggregate
from tests.properties.compare import alike

SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int64())])
QUERY = pf.Query({"w": W.tumbling(10)}, {"sum": A.sum("v")}, time="t")
OTHER = pf.Query({"w": W.tumbling(5)}, {"n": A.count()}, time="t")


def events(*times: int) -> pa.Table:
    return pa.table({"t": times, "v": [1] * len(times)}, schema=SCHEMA)


def given(tree: ChangingTree, name: str) -> list[tuple[int, int, bool]]:
    rows = [row for table in tree.followed[name].rows for row in table.to_pylist()]
    return [(row["start"], row["n"], row[COMPLETE]) for row in rows]


def settle(tree: ChangingTree, *silent: str) -> None:
    """Everybody but silent nodes speaks and hears, until nothing is under way between them."""
    for _ in range(3):
        for name in tree.from_below("root"):
            if name in silent:
                continue
            while tree.asked[name]:
                tree.ask(name)
            tree.tell(name, Flush())
            while tree.sent[name]:
                tree.deliver(name)


def test_a_query_begins_after_all_that_nodes_have_seen() -> None:
    tree = ChangingTree(Question(QUERY, SCHEMA), {"root": ["c0", "m"], "m": ["c1"]}, SCHEMA)
    tree.push("c0", events(3, 12))
    tree.push("c1", events(4, 21))
    tree.add("n", OTHER)
    assert tree.root.queries["n"].begins is None
    settle(tree)
    assert tree.root.queries["n"].begins == 22
    tree.push("c0", events(14, 23, 26, 40))
    tree.push("c1", events(26, 40))
    settle(tree)
    assert given(tree, "n") == [(25, 2, True)]


def test_a_query_begins_after_all_that_nodes_have_said_that_are_gone() -> None:
    tree = ChangingTree(Question(QUERY, SCHEMA), {"root": ["c0", "c1"]}, SCHEMA)
    tree.push("c0", events(3))
    tree.push("c1", events(4, 21))
    tree.tell("c1", Closed())
    settle(tree)
    tree.add("n", OTHER)
    settle(tree, "c1")
    assert tree.root.queries["n"].begins == 22


def test_a_query_waits_for_a_lost_node_no_more_and_says_that_it_is_missing() -> None:
    tree = ChangingTree(Question(QUERY, SCHEMA), {"root": ["c0", "c1"]}, SCHEMA)
    tree.push("c0", events(3))
    tree.push("c1", events(4))
    settle(tree)
    tree.tell("root", Lost("c1"))
    tree.add("n", OTHER)
    settle(tree, "c1")
    assert tree.root.queries["n"].begins == 4
    tree.push("c0", events(5, 12, 20))
    settle(tree, "c1")
    assert given(tree, "n") == [(5, 1, False), (10, 1, False)]
    tree.push("c1", events(6))
    tree.tell("root", Joined("c1"))
    settle(tree)
    # What it had seen when it was told is missing for good.
    tree.push("c1", events(13, 24))
    tree.push("c0", events(24))
    settle(tree)
    assert given(tree, "n")[2:] == [(10, 2, True)]


def test_a_node_that_joins_is_told_of_queries_and_waited_for() -> None:
    tree = ChangingTree(Question(QUERY, SCHEMA), {"root": ["m"], "m": ["c0", "c1"]}, SCHEMA)
    tree.shape = {"root": ["m"], "m": ["c0"]}
    tree.nodes["m"] = tree.made("m")
    tree.push("c0", events(3))
    tree.add("n", OTHER)
    settle(tree, "c1")
    assert tree.root.queries["n"].begins == 4
    tree.push("c0", events(6, 31))
    tree.push("c1", events(16))
    tree.shape = {"root": ["m"], "m": ["c0", "c1"]}
    settle(tree, "c1")
    before = given(tree, "n")
    tree.tell("m", Joined("c1"))
    settle(tree)
    tree.push("c1", events(22, 31))
    settle(tree)
    # It had seen an event at 16 before it knew the query.
    assert given(tree, "n")[len(before) :] == [(20, 1, True)]


def check(seed: int) -> int:
    r = random.Random(seed)
    case = draw_stream(r, windows=("tumbling", "sliding"), aggregates=BY_SLICES, most=100)
    stamped = pa.types.is_timestamp(case.schema.field("t").type)
    tree = ChangingTree(Question(case.query, case.schema), draw_shape(r, case.sources), case.schema)
    silent: set[str] = set()
    for source, pushed in case.pushes:
        tree.push(f"c{source}", pushed)
        for _ in range(r.choice([0, 3, 12])):
            name = r.choice(sorted(set(tree.names) - silent))
            if r.random() < 0.1:
                tree.restart(name)
                continue
            if tree.asked[name]:
                tree.ask(name)
            tree.tell(name, Flush())
            while tree.sent[name]:
                tree.deliver(name)
        if r.random() < 0.4:
            below = r.choice(sorted(tree.above))
            tree.tell(tree.above[below], (Joined if below in silent else Lost)(below))
            silent ^= {below}
        if r.random() < 0.3 and len(tree.followed) < 3:
            kinds = r.sample(MERGEABLE[:2], r.randint(1, 2))
            aggregates = {name: draw_aggregate(r, name) for name in r.sample(BY_SLICES, 2)}
            windows = {kind: WINDOWS[kind](r, stamped) for kind in kinds}
            key = r.choice([case.query.key, ("h",)])
            tree.add(f"q{len(tree.followed)}", pf.Query(windows, aggregates, key, "t"))
    for below in sorted(silent):
        tree.tell(tree.above[below], Joined(below))
    for child in tree.children:
        tree.tell(child, Closed())
    for _ in range(3):
        settle(tree)
    return sum(complete_rows(tree, case, name) for name in tree.followed)


def complete_rows(tree: ChangingTree, case: StreamCase, name: str) -> int:
    """How many rows of a query are complete, and that these are right and given once."""
    followed = tree.followed[name]
    query = followed.question.query
    parts = [events for k in range(case.sources) for source, events in case.pushes if source == k]
    table = pa.concat_tables([case.schema.empty_table(), *parts])
    right = {place(query, row): row for row in query.over(table, engine="oracle").to_pylist()}
    found = 0
    done = set()
    for rows in followed.rows:
        for row in rows.to_pylist():
            at = place(query, row)
            assert at not in done, "a complete row was given again"
            if row.pop(COMPLETE):
                done.add(at)
                assert alike(row, right[at], 1e-9)
                found += 1
    sure = tree.root.sure(name)
    if sure is not None:
        ticks = query.over(table)["start"].cast(pa.int64()).to_pylist()
        places = [place(query, row) for row in query.over(table).to_pylist()]
        assert {at for t, at in zip(ticks, places, strict=True) if t >= sure} <= done
    return found


def place(query: pf.Query, row: dict[str, object]) -> tuple[object, ...]:
    return (row["window"], row["start"], *(row[name] for name in query.key))


@pytest.mark.parametrize("seed", range(12))
def test_random_losses_leave_no_wrong_row_that_claims_to_be_complete(seed: int) -> None:
    check(seed)


def test_losses_leave_rows_that_are_complete() -> None:
    assert sum(check(seed) for seed in range(100, 106)) > 50


def test_rows_wait_for_a_node_that_has_joined_and_does_not_know_the_query() -> None:
    tree = ChangingTree(Question(QUERY, SCHEMA), {"root": ["m"], "m": ["c0", "c1"]}, SCHEMA)
    tree.shape = {"root": ["m"], "m": ["c0"]}
    tree.nodes["m"] = tree.made("m")
    tree.push("c0", events(3))
    tree.add("n", OTHER)
    settle(tree, "c1")
    tree.shape = {"root": ["m"], "m": ["c0", "c1"]}
    tree.push("c1", events(16, 40))
    tree.tell("m", Joined("c1"))
    tree.tell("c1", Flush())
    tree.deliver("c1")
    tree.push("c0", events(17, 31))
    tree.tell("c0", Flush())
    tree.deliver("c0")
    # The new node has reported, and was not told yet: what it has seen is in no slice of the query.
    tree.tell("m", Flush())
    tree.deliver("m")
    tree.tell("root", Flush())
    assert given(tree, "n") == []
    tree.push("c0", events(50))
    tree.push("c1", events(50))
    settle(tree)
    assert given(tree, "n") == [(15, 1, False), (30, 1, False)]
