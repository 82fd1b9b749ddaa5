"""The order of rows, and that the way a table is worked on cannot be seen in them.

Rows come ordered by (end, window, seq, key), null keys first. Large tables are dealt into parts
of whole keys that are answered by several threads, and sorted by several; the rows must be those
of a table that is worked on as a whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from examples.threshold_window import Threshold
from paneflow import aggregates as A, windows as W
from paneflow.engines.table import engine as table_engine
from paneflow.engines.table.windows import merge_windows
from paneflow.slicing import ordering
from paneflow.windows import Window
from tests.properties.compare import assert_same_rows

# Nothing here rests on float sums, so that rows are the same to the bit.
EXACT: dict[str, A.Aggregate] = {
    "n": A.count("v"),
    "sum": A.sum("v"),
    "peak": A.max("x"),
    "first": A.first("v"),
    "last": A.last("v"),
    "at_peak": A.arg_max("v", by="x"),
}
MORE: dict[str, A.Aggregate] = EXACT | {
    "median": A.median("v"),
    "kinds": A.distinct("s"),
    "text": A.last("s"),
    "top": A.top_k("v", 2),
    "all": A.collect("v"),
    "exact": A.sum("x", exact=True),
}
WINDOWS: dict[str, Window] = {
    "sliding": W.sliding(60, 20),
    "visit": W.session(3),
    "count": W.count(7, 3, partial=True),
    "asked": W.slide_by_tuple(40, 5),
    "last": W.slide_by_time(4, 25),
    "delta": W.delta("d", 50, 10),
    "mark": W.punctuation("m", partial=True),
    "high": Threshold("x", 5.0),
}


def events(n: int, keys: int, seed: int, *, shuffled: bool, span: int = 400) -> pa.Table:
    """Events with equal times, nulls and, among several keys, a hot one and the null key."""
    r = np.random.default_rng(seed)
    t = np.sort(r.integers(0, span, n))
    k = np.where(r.random(n) < 0.5, 0, r.integers(0, keys, n))
    table = pa.table(
        {
            "t": t,
            "k": pa.array(k, mask=k == keys - 1) if keys > 1 else pa.array(k),
            "g": pa.array(np.array(["b", "a", "c"])[r.integers(0, 3, n)]),
            "v": pa.array(r.integers(-50, 50, n), mask=r.random(n) < 0.1),
            "x": r.integers(-40, 40, n) / 4,
            "s": pa.array(np.array(["", "a", "zz", "ä"])[r.integers(0, 4, n)]),
            "d": t,
            "m": r.random(n) < 0.05,
        }
    )
    return table.take(r.permutation(n)) if shuffled else table


@pytest.fixture(params=["oracle", "table"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are dealt into many parts, and sorted and moved by several threads."""
    monkeypatch.setattr(table_engine, "WORTH_A_THREAD", 1)
    monkeypatch.setattr(table_engine, "EVENTS_PER_PART", 37)
    monkeypatch.setattr(ordering, "WORTH_A_THREAD", 1)
    monkeypatch.setenv("PANEFLOW_THREADS", "3")


def as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of any size are one part, worked on by one thread."""
    for module in (table_engine, ordering):
        monkeypatch.setattr(module, "WORTH_A_THREAD", 10**12)
    monkeypatch.setattr(table_engine, "EVENTS_PER_PART", 10**12)


def places(rows: pa.Table, key: list[str]) -> list[tuple[Any, ...]]:
    """What rows are ordered by."""
    columns = [rows[name].to_pylist() for name in ("end", "window", "seq", *key)]
    return [
        (end, window, seq, *((value is not None, value) for value in keys))
        for end, window, seq, *keys in zip(*columns, strict=True)
    ]


# The order of rows.


@pytest.mark.parametrize("key", [[], ["k"], ["g"], ["g", "k"], ["k", "g"]], ids=str)
def test_rows_are_ordered(key: list[str], engine: str) -> None:
    table = events(300, 8, seed=1, shuffled=True)
    rows = pf.Query(WINDOWS, EXACT, key=key, time="t").over(table, engine=engine)
    found = places(rows, key)
    assert len({place[:2] for place in found}) > 50  # many ends and all windows
    assert found == sorted(found)
    assert len(set(found)) == len(found)


def test_null_keys_come_first(engine: str) -> None:
    table = pa.table(
        {"t": [1, 1, 1, 1], "k": [2, None, -1, None], "g": ["b", "b", None, None], "v": [1] * 4}
    )
    query = pf.Query(W.tumbling(5), {"n": A.count()}, key=["k", "g"], time="t")
    rows = query.over(table, engine=engine).select(["k", "g"]).to_pylist()
    assert [(row["k"], row["g"]) for row in rows] == [
        (None, None),
        (None, "b"),
        (-1, None),
        (2, "b"),
    ]


def test_windows_are_ordered_by_their_label(engine: str) -> None:
    """As texts, not by the order in which they were given."""
    windows = dict.fromkeys(["b", "B", "a9", "a10"], W.tumbling(10))
    table = pa.table({"t": [1]})
    rows = pf.Query(windows, {"n": A.count()}, time="t").over(table, engine=engine)
    assert rows["window"].to_pylist() == ["B", "a10", "a9", "b"]


def test_rows_that_end_together_are_ordered_by_number(engine: str) -> None:
    """Several count windows may end at one time."""
    table = pa.table({"t": [4] * 5, "k": ["b", "a", "b", "a", "b"]})
    rows = pf.Query(W.count(1), {"n": A.count()}, key="k", time="t").over(table, engine=engine)
    assert list(zip(rows["seq"].to_pylist(), rows["k"].to_pylist(), strict=True)) == [
        (0, "a"),
        (0, "b"),
        (1, "a"),
        (1, "b"),
        (2, "b"),
    ]


def test_ends_before_and_after_zero_are_in_order(engine: str) -> None:
    table = pa.table({"t": [-7, 7, 0, -1], "v": [1, 2, 3, 4]})
    rows = pf.Query([W.sliding(4, 2), W.session(1)], {"first": A.first("v")}, time="t").over(
        table, engine=engine
    )
    ends = rows["end"].to_pylist()
    assert ends[0] < 0 < ends[-1]
    assert ends == sorted(ends)


# Parts and threads.


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("shuffled", [False, True], ids=["sorted", "shuffled"])
@pytest.mark.parametrize("keys", [1, 2, 40])
@pytest.mark.parametrize("label", WINDOWS)
def test_many_parts_give_the_rows_of_the_oracle(label: str, keys: int, shuffled: bool) -> None:
    table = events(400, keys, seed=keys, shuffled=shuffled)
    query = pf.Query({label: WINDOWS[label]}, MORE, key="k", time="t")
    rows = query.over(table)
    assert rows.num_rows >= 10
    assert_same_rows(query, rows, query.over(table, engine="oracle"))


@pytest.mark.usefixtures("in_parts")
def test_many_parts_and_many_windows() -> None:
    table = events(400, 12, seed=3, shuffled=True)
    query = pf.Query(WINDOWS, MORE, key=["g", "k"], time="t")
    assert_same_rows(query, query.over(table), query.over(table, engine="oracle"))


@pytest.mark.usefixtures("in_parts")
def test_small_parts_are_really_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the tests above test what they say."""
    made: list[int] = []

    def spy(store: Any, *arguments: Any) -> Any:
        made.append(len(store.part.t))
        return merge_windows(store, *arguments)

    monkeypatch.setattr(table_engine, "merge_windows", spy)
    table = events(400, 40, seed=1, shuffled=False)
    pf.Query(W.tumbling(10), EXACT, key="k", time="t").over(table)
    assert len(made) > 3
    assert sum(made) == 400


LARGE = 300_000


@pytest.mark.parametrize(
    ("keys", "shuffled"),
    [(1, False), (1, True), (2, True), (1_000, False), (1_000, True), (20_000, True)],
    ids=str,
)
def test_large_tables_are_answered_as_one_part_is(
    keys: int, shuffled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of all events have one key, so parts are of very different sizes."""
    table = events(LARGE, keys, seed=9, shuffled=shuffled, span=100_000)
    windows = {"sliding": W.sliding(5_000, 500), "visit": W.session(20), "count": W.count(50, 25)}
    query = pf.Query(windows, EXACT, key="k", time="t")
    monkeypatch.setattr(table_engine, "EVENTS_PER_PART", 20_000)
    monkeypatch.setattr(ordering, "WORTH_A_THREAD", 1_000)
    monkeypatch.setenv("PANEFLOW_THREADS", "3")
    side_by_side = query.over(table)
    as_a_whole(monkeypatch)
    whole = query.over(table)
    assert side_by_side.num_rows > 1_000
    assert side_by_side.equals(whole)


def test_large_tables_agree_with_the_order_of_their_rows() -> None:
    """Sorting a table by time beforehand changes nothing, as equal times keep their order."""
    table = events(LARGE, 50, seed=4, shuffled=True, span=20_000)
    position = pa.array(np.arange(LARGE))
    in_time = table.append_column("at", position).sort_by([("t", "ascending"), ("at", "ascending")])
    query = pf.Query(
        {"sliding": W.sliding(300, 100), "count": W.count(100)}, EXACT, key="k", time="t"
    )
    assert query.over(table).equals(query.over(in_time))


def of_key(table: pa.Table, key: int | None) -> pa.Table:
    return table.filter(pa.array([k == key for k in table["k"].to_pylist()]))


@pytest.mark.usefixtures("in_parts")
def test_keys_do_not_know_of_each_other() -> None:
    """Each key alone gives the rows it has among the others."""
    table = events(600, 9, seed=7, shuffled=True)
    query = pf.Query(WINDOWS, EXACT, key="k", time="t")
    together = query.over(table)
    for key in set(table["k"].to_pylist()):
        alone = query.over(of_key(table, key))
        assert alone.num_rows > 0
        assert alone.to_pylist() == of_key(together, key).to_pylist()
