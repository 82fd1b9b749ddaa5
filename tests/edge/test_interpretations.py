"""Windows that child nodes find for themselves: local, or matched by number, bound or overlap.

What is expected is worked out from the definitions: the oracle says which events are in which
window of each child node, plain Python says which windows are one, and the oracle again says what
the aggregates of those events are.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.edge.question import Question
from tests.edge.trees import Tree, rows_of, run
from tests.multicore.stream_cases import StreamCase, as_stream
from tests.properties.cases import WINDOWS, Case, draw_size, draw_table, seeded_aggregate
from tests.properties.compare import alike, assert_same_rows

NUMBER = "number"
KINDS = {
    "order": ("count", "slide_by_tuple", "slide_by_time", "delta", "punctuation"),
    "bounds": ("punctuation",),
    "gaps": ("punctuation", "alone"),
}
AGGREGATES = ("max", "mean", "median", "first", "collect", "count", "arg_max")


def drawn(r: random.Random, kinds: Iterable[str]) -> StreamCase:
    """A stream whose events are numbered, with one or two windows."""
    stamped = r.random() < 0.3
    table = draw_table(r, draw_size(r, 40), stamped)
    table = table.append_column(NUMBER, pa.array(np.arange(len(table))))
    windows = {f"w{k}": window(r, r.choice(list(kinds)), stamped) for k in range(r.choice([1, 2]))}
    names = r.sample(AGGREGATES, r.randint(1, 3))
    query = pf.Query(
        windows,
        {name: seeded_aggregate(name, r.randrange(2)) for name in names},
        key=r.choice([None, "k", ["k", "h"]]),
        time="t",
    )
    return as_stream(Case(query, table), r)


def window(r: random.Random, kind: str, stamped: bool) -> W.Window:
    if kind == "alone":
        return W.count(r.randint(1, 4))
    return WINDOWS[kind](r, stamped).without_partial()


def own_windows(case: StreamCase, label: str) -> list[dict[str, Any]]:
    """The windows of every child node alone, with the numbers of their events."""
    query = case.query.with_windows({label: case.query.windows[label]})
    asked = pf.Query(query.windows, {NUMBER: A.collect(NUMBER)}, query.key, "t")
    found = []
    for source in range(case.sources):
        mine = [events for s, events in case.pushes if s == source]
        rows = asked.over(pa.concat_tables([case.schema.empty_table(), *mine]), engine="oracle")
        found += rows.to_pylist()
    return found


def overlapping(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Windows in groups that overlap, one after the other."""
    groups: list[list[dict[str, Any]]] = []
    reach = None
    for row in sorted(rows, key=lambda row: row["start"]):
        if reach is None or row["start"] > reach:
            groups.append([])
            reach = row["end"]
        groups[-1].append(row)
        reach = max(reach, row["end"])
    return groups


def matched(rows: list[dict[str, Any]], key: tuple[str, ...], way: str) -> list[Any]:
    """Windows that are one, by the definition of each way."""
    by_key: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        by_key.setdefault(tuple(row[name] for name in key), []).append(row)
    if way == "gaps":
        return [group for mine in by_key.values() for group in overlapping(mine)]
    groups: dict[Any, list[dict[str, Any]]] = {}
    for of_key, mine in by_key.items():
        for row in mine:
            common = row["seq"] if way == "order" else row["end"]
            groups.setdefault((of_key, common), []).append(row)
    return list(groups.values())


def wanted(case: StreamCase, way: str) -> list[dict[str, Any]]:
    """The rows, worked out window by window."""
    parts = [events for k in range(case.sources) for s, events in case.pushes if s == k]
    events = pa.concat_tables([case.schema.empty_table(), *parts])
    numbers = events[NUMBER].to_pylist()
    found = []
    for label in case.query.windows:
        for group in matched(own_windows(case, label), case.query.key, way):
            inside = {n for row in group for n in row[NUMBER]}
            mine = events.filter(pa.array([n in inside for n in numbers]))
            stamped = pa.types.is_timestamp(case.schema.field("t").type)
            endless = W.session("10000 days" if stamped else 10**9)
            asked = pf.Query(endless, case.query.aggregates, case.query.key, "t")
            (row,) = asked.over(mine, engine="oracle").to_pylist()
            row["window"] = label
            row["seq"] = group[0]["seq"] if way == "order" else None
            row["start"] = min(row["start"] for row in group)
            row["end"] = max(row["end"] for row in group)
            found.append(row)
    return found


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(alike(a[name], b[name], 1e-12) for name in a)


def placed(row: dict[str, Any], key: tuple[str, ...]) -> tuple[Any, ...]:
    keys = tuple((row[name] is not None, row[name]) for name in key)
    return (row["end"], row["window"], row["seq"] or 0, keys, row["start"])


def check(seed: int, way: str) -> None:
    r = random.Random(f"{way} {seed}")
    case = drawn(r, KINDS[way])
    tree = run(case, r, dict.fromkeys(case.query.windows, way))
    key = case.query.key
    got = sorted(rows_of(tree).to_pylist(), key=lambda row: placed(row, key))
    want = sorted(wanted(case, way), key=lambda row: placed(row, key))
    assert len(got) == len(want), f"{len(got)} rows, expected {len(want)}"
    for a, b in zip(got, want, strict=True):
        assert same(a, b), f"{a}\nexpected {b}"


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("way", KINDS)
def test_matched_windows_follow_their_definition(way: str, seed: int) -> None:
    check(seed, way)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(0, 1_000, 100))
@pytest.mark.parametrize("way", KINDS)
def test_matched_windows_follow_their_definition_many_times(way: str, first: int) -> None:
    for seed in range(first, first + 100):
        check(seed, way)


@pytest.mark.parametrize("seed", range(30))
def test_local_windows_are_those_of_each_child_alone(seed: int) -> None:
    r = random.Random(f"local {seed}")
    case = drawn(r, WINDOWS)
    tree = run(case, r, dict.fromkeys(case.query.windows, "local"))
    named = [
        events.append_column("node", pa.repeat(pa.scalar(f"c{source}"), len(events)))
        for source, events in case.pushes
    ]
    schema = case.schema.append(pa.field("node", pa.string()))
    query = case.query.with_key([*case.query.key, "node"])
    rows = query.over(pa.concat_tables([schema.empty_table(), *named]), engine="oracle")
    expected = unnumbered(rows, case)
    assert_same_rows(query, by_row(rows_of(tree), query), by_row(expected, query))


def unnumbered(rows: pa.Table, case: StreamCase) -> pa.Table:
    """Rows without the numbers of sessions."""
    sessions = {label for label, w in case.query.windows.items() if isinstance(w, W.Session)}
    pairs = zip(rows["window"].to_pylist(), rows["seq"].to_pylist(), strict=True)
    seq = pa.array([None if label in sessions else n for label, n in pairs], pa.int64())
    return rows.set_column(rows.schema.get_field_index("seq"), "seq", seq)


def by_row(rows: pa.Table, query: pf.Query) -> pa.Table:
    order = sorted(
        range(len(rows)), key=lambda i: placed(rows.slice(i, 1).to_pylist()[0], query.key)
    )
    return rows.take(pa.array(order, pa.int64()))


def test_an_interpretation_that_has_no_meaning_is_refused_with_the_reason() -> None:
    schema = pa.schema([("t", pa.int64()), ("v", pa.float64()), ("b", pa.bool_())])
    for given, way, reason in (
        (W.tumbling(5), "order", "the same on every node already"),
        (W.count(3), "bounds", "only punctuation marks"),
        (W.count(3, 2), "gaps", "not in exactly one window"),
        (W.count(2, 3), "gaps", "not in exactly one window"),
        (W.count(3), "sideways", "is not known: choose one of"),
    ):
        query = pf.Query({"w": given}, {"n": A.count()}, time="t")
        with pytest.raises(pf.QueryError, match=reason):
            Question(query, schema, {"w": way})
    with pytest.raises(pf.QueryError, match="has no such window"):
        Question(pf.Query({"w": W.count(3)}, {"n": A.count()}, time="t"), schema, {"x": "local"})


def test_a_tree_says_how_each_window_is_answered() -> None:
    schema = pa.schema([("t", pa.int64()), ("v", pa.float64())])
    query = pf.Query({"hour": W.tumbling(60), "each": W.count(5)}, {"peak": A.max("v")}, time="t")
    told = Question(query, schema).explain()
    assert "hour: slices: its bounds are the same on every node" in told
    assert "each: events: count(5) depends on the order of all events" in told
    assert Tree(Question(query, schema), {"root": ["c0"]}).children == ["c0"]
