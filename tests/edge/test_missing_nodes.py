"""When a node goes silent, windows close without it, say so, and are completed if it returns."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.edge.question import COMPLETE, Question
from paneflow.engines.edge.records import Closed, Flush, Joined, Left, Lost
from tests.edge.trees import Tree, expected, run
from tests.multicore.stream_cases import draw_stream
from tests.properties.compare import assert_same_rows

BY_SLICES = ("max", "sum", "mean", "first", "arg_min", "collect", "mode", "count", "var")
"""Aggregates of which nothing but slices travels."""
SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int64())])
QUERY = pf.Query({"w": W.tumbling(10)}, {"sum": A.sum("v"), "n": A.count()}, time="t")


def two_children(query: pf.Query = QUERY) -> Tree:
    return Tree(Question(query, SCHEMA), {"root": ["c0", "m"], "m": ["c1"]})


def events(*times: int) -> pa.Table:
    return pa.table({"t": times, "v": [1] * len(times)}, schema=SCHEMA)


def settle(tree: Tree, *silent: str) -> None:
    """Everybody but silent nodes speaks, and all that is said arrives."""
    for name in tree.from_below("root"):
        if name in silent:
            continue
        tree.tell(name, Flush())
        while tree.sent[name]:
            tree.deliver(name)


def given(tree: Tree) -> list[tuple[int, int, bool]]:
    rows = [row for table in tree.rows for row in table.to_pylist()]
    return [(row["end"], row["n"], row[COMPLETE]) for row in rows]


@pytest.mark.parametrize("above", ["root", "m"])
def test_windows_of_a_lost_node_are_flagged_and_completed_when_it_returns(above: str) -> None:
    tree = two_children()
    lost = "m" if above == "root" else "c1"
    tree.push("c0", events(1, 11))
    tree.push("c1", events(2, 12))
    settle(tree)
    assert given(tree) == [(10, 2, True)]
    tree.push("c0", events(25, 41))
    settle(tree)
    assert len(given(tree)) == 1
    tree.tell(above, Lost(lost))
    settle(tree, lost)
    assert given(tree)[1:] == [(20, 1, False), (30, 1, False)]
    tree.push("c1", events(13, 22, 45))
    tree.tell(above, Joined(lost))
    settle(tree)
    assert given(tree)[3:] == [(20, 3, True), (30, 2, True)]
    tree.finish()
    assert given(tree)[5:] == [(50, 2, True)]
    assert tree.late == 0


def test_a_node_that_left_is_not_waited_for_and_nothing_is_incomplete() -> None:
    tree = two_children()
    tree.push("c0", events(1, 11))
    settle(tree)
    assert given(tree) == []
    tree.tell("root", Left("m"))
    settle(tree, "m")
    assert given(tree) == [(10, 1, True)]


def test_a_node_that_joins_later_is_waited_for_from_then_on() -> None:
    tree = Tree(Question(QUERY, SCHEMA), {"root": ["c0"]})
    tree.push("c0", events(1, 15))
    settle(tree)
    tree.tell("root", Joined("c1"))
    tree.push("c0", events(35))
    settle(tree)
    assert given(tree) == [(10, 1, True)]


def test_sessions_close_without_a_lost_node_that_had_one_open() -> None:
    query = pf.Query({"w": W.session(5)}, {"n": A.count()}, time="t")
    tree = two_children(query)
    tree.push("c0", events(1, 2))
    tree.push("c1", events(1, 5))
    tree.push("c0", events(40))
    settle(tree)
    assert given(tree) == []
    tree.tell("root", Lost("m"))
    settle(tree, "m")
    assert given(tree) == [(7, 2, False)]
    tree.push("c1", events(50))
    tree.tell("root", Joined("m"))
    settle(tree)
    assert given(tree)[1:] == [(10, 4, True)]


def test_a_session_that_is_open_on_one_node_holds_back_what_others_have_of_it() -> None:
    tree = two_children(pf.Query({"w": W.session(5)}, {"n": A.count()}, time="t"))
    tree.push("c0", events(1, 4, 8, 12, 16, 20))
    tree.push("c1", events(10, 30))
    settle(tree)
    assert given(tree) == []
    tree.push("c0", events(50))
    tree.push("c1", events(50))
    settle(tree)
    assert given(tree) == [(25, 7, True), (35, 1, True)]


@pytest.mark.parametrize("seed", range(25))
def test_random_losses_end_in_the_oracles_rows(seed: int) -> None:
    r = random.Random(seed)
    case = draw_stream(r, windows=("tumbling", "sliding"), aggregates=BY_SLICES)
    calm = run(case, random.Random(seed))
    tree = Tree(calm.question, calm.shape)
    silent: set[str] = set()
    for source, pushed in case.pushes:
        tree.push(f"c{source}", pushed)
        for _ in range(3):
            name = r.choice(sorted(set(tree.names) - silent))
            tree.restart(name) if r.random() < 0.1 else tree.tell(name, Flush())
            while tree.sent[name]:
                tree.deliver(name)
        below = r.choice(sorted(tree.above))
        tree.tell(tree.above[below], (Joined if below in silent else Lost)(below))
        silent ^= {below}
    for below in silent:
        tree.tell(tree.above[below], Joined(below))
    for child in tree.children:
        tree.tell(child, Closed())
    for _ in range(3):
        settle(tree)
    final: dict[object, dict[str, object]] = {}
    for table in tree.rows:
        for row in table.to_pylist():
            key = (row["window"], *(row[name] for name in case.query.key), row["seq"])
            assert not final.get(key, {}).get(COMPLETE), "a complete row was given again"
            final[key] = row
    assert all(row[COMPLETE] for row in final.values())
    assert tree.late == 0
    tree.rows = [pa.Table.from_pylist(list(final.values()), schema=tree.question.row_schema)]
    rows = tree.all_rows().drop_columns(COMPLETE)
    assert_same_rows(case.query, rows, expected(case, tree.question))
