"""Queries are added to trees of real nodes, over sockets, and survive restarts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, edge, windows as W
from paneflow.engines.edge.nodes.root import in_order
from paneflow.errors import InputError, QueryError
from tests.edge.running.events import QUERY, SCHEMA, events
from tests.properties.compare import assert_same_rows
from tests.waiting import wait_until

ASKED = edge.Question(QUERY, SCHEMA)
SHARING = pf.Query(W.tumbling(30), {"peak": A.max("v")}, key="k", time="t")
OWN = pf.Query({"seven": W.tumbling(7), "gap": W.session(2)}, {"sum": A.sum("v")}, time="t")
QUANTILES = pf.Query(W.tumbling(20), {"median": A.median("v")}, time="t")


def same_rows(query: pf.Query, rows: pa.Table, begins: int | None, upto: int) -> None:
    """The rows of all windows that begin at a time or later."""
    assert begins is not None
    right = query.over(pa.concat_tables([events(k, 0, upto) for k in range(2)]))
    question = edge.Question(query, SCHEMA)
    right = in_order(right.filter(pa.array(right["start"].to_numpy() >= begins)), question)
    assert right.num_rows
    assert rows["complete"].to_pylist() == [True] * rows.num_rows
    rows = in_order(rows, question).drop_columns("complete")
    if any(isinstance(window, W.Session) for window in query.windows.values()):
        rows, right = rows.drop_columns("seq"), right.drop_columns("seq")
    assert_same_rows(query, rows, right)


class Running:
    """A root over a merging node over two child nodes, which can be made again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = edge.root(ASKED, log=folder / "root", children=["m"], rows=folder / "rows")
        self.merge = edge.merge("m", ASKED, parent=self.root, log=folder / "m", children=["a", "b"])
        self.children = [
            edge.child(name, ASKED, parent=self.merge, log=folder / name) for name in "ab"
        ]
        self.nodes = [self.root, self.merge, *self.children]

    def __enter__(self) -> Running:
        for node in self.nodes:
            node.start()
        self.sensors = [edge.sensor(child, f"s{k}") for k, child in enumerate(self.children)]
        return self

    def __exit__(self, *_: object) -> None:
        for sensor in self.sensors:
            sensor.close()
        for node in reversed(self.nodes):
            node.stop()
        for node in self.nodes:
            node.join()

    def push(self, start: int, end: int) -> None:
        for at in range(start, end, 10):
            for k, sensor in enumerate(self.sensors):
                sensor.push(events(k, at, min(at + 10, end)))
        for sensor in self.sensors:
            sensor.flush()

    def begun(self) -> bool:
        return all(standing.begins is not None for standing in self.root.queries().values())

    def finish(self) -> None:
        for sensor in self.sensors:
            sensor.close()
        for node in reversed(self.nodes):
            node.leave()
        for node in self.nodes:
            node.join()


def test_added_queries_have_rows_from_their_begin_on(tmp_path: Path) -> None:
    with Running(tmp_path) as tree:
        tree.push(0, 100)
        tree.root.add_query("wide", SHARING)
        tree.root.add_query("own", OWN)
        tree.root.add_query("median", QUANTILES)
        wait_until(tree.begun)
        standing = tree.root.queries()
        assert standing["wide"].shares == "main"
        assert standing["own"].shares is None
        assert "no key" in standing["own"].why
        tree.push(100, 300)
        tree.finish()
    for name, query in {"wide": SHARING, "own": OWN, "median": QUANTILES}.items():
        same_rows(query, edge.read_rows(tmp_path / "rows" / name), standing[name].begins, 300)
    same_rows(QUERY, edge.read_rows(tmp_path / "rows"), -100, 300)


def test_added_queries_outlive_restarts_of_all_nodes(tmp_path: Path) -> None:
    begins = {}
    for at in range(0, 400, 100):
        with Running(tmp_path) as tree:
            if at == 100:
                tree.root.add_query("wide", SHARING)
                tree.root.add_query("own", OWN)
            tree.push(at, at + 100)
            wait_until(tree.begun)
            begins = {name: query.begins for name, query in tree.root.queries().items()}
            if at == 300:
                tree.finish()
    for name, query in {"wide": SHARING, "own": OWN}.items():
        same_rows(query, edge.read_rows(tmp_path / "rows" / name), begins[name], 400)
    same_rows(QUERY, edge.read_rows(tmp_path / "rows"), -100, 400)


def test_a_removed_query_has_no_rows_of_later_windows(tmp_path: Path) -> None:
    with Running(tmp_path) as tree:
        tree.root.add_query("own", OWN)
        wait_until(tree.begun)
        tree.push(0, 100)
        wait_until(lambda: tree.root.queries()["own"].rows > 0)
        tree.root.remove_query("own")
        assert tree.root.queries() == {}
        with pytest.raises(QueryError, match="has answered another query 'own' before"):
            tree.root.add_query("own", SHARING)
        tree.push(100, 200)
        tree.finish()
    rows = edge.read_rows(tmp_path / "rows" / "own")
    assert max(rows["end"].to_pylist()) <= 100
    same_rows(QUERY, edge.read_rows(tmp_path / "rows"), -100, 200)


def test_rows_of_added_queries_come_with_their_names(tmp_path: Path) -> None:
    given: list[tuple[str, int]] = []
    root = edge.root(
        ASKED,
        log=tmp_path / "r",
        children=["a"],
        on_added=lambda rows, number, query: given.append((query, rows.num_rows)),
    )
    child = edge.child("a", ASKED, parent=root, log=tmp_path / "a")
    with root, child:
        root.add_query("wide", SHARING)
        with edge.sensor(child, "s") as sensor:
            sensor.push(events(0, 0, 90))
        for node in (child, root):
            node.leave()
        root.join()
    assert given
    assert {query for query, _ in given} == {"wide"}
    assert sum(rows for _, rows in given) == 9


def test_queries_that_cannot_be_added_are_refused(tmp_path: Path) -> None:
    root = edge.root(ASKED, log=tmp_path / "root")
    child = edge.child("a", ASKED, parent=root, log=tmp_path / "a")
    with pytest.raises(QueryError, match="the root does not run: start it"):
        root.add_query("wide", SHARING)
    with root, child:
        root.add_query("wide", SHARING)
        refused = {
            "answers a query 'wide' already": ("wide", SHARING),
            "cannot be the name of a query": ("../x", SHARING),
            "depends on all events since the first": (
                "n",
                pf.Query(W.count(5), {"n": A.count()}, time="t"),
            ),
            "the watermarks of this tree follow 't'": (
                "n",
                pf.Query(W.tumbling(5), {"n": A.count()}, time="v"),
            ),
            "but this tree waits": (
                "n",
                pf.Query(W.tumbling(5), {"n": A.count()}, time="t", lateness=3),
            ),
        }
        for message, (name, query) in refused.items():
            with pytest.raises(QueryError, match=message):
                root.add_query(name, query)
        with pytest.raises(InputError, match="column 'nowhere' is needed"):
            root.add_query("n", pf.Query(W.tumbling(5), {"n": A.max("nowhere")}, time="t"))
        with pytest.raises(QueryError, match="there is no query 'wied' to remove"):
            root.remove_query("wied")
        with pytest.raises(QueryError, match="'main' is the query that the tree was started with"):
            root.remove_query("main")
        with pytest.raises(QueryError, match="'a' has the role 'child'"):
            child.add_query("n", SHARING)
        assert list(root.queries()) == ["wide"]


def test_a_node_whose_events_lack_a_column_says_so_and_the_tree_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    query = pf.Query(W.tumbling(10), {"n": A.count()}, time="t")
    asked = edge.Question(query, SCHEMA)
    config = edge.NodeConfig(
        "root", "root", asked, SCHEMA, tmp_path / "r", listen="tcp://127.0.0.1:*", children=("a",)
    )
    given: list[pa.Table] = []
    root = edge.Node(config, on_rows=lambda rows, number: given.append(rows))
    child = edge.child("a", asked, parent=root, log=tmp_path / "a")
    with root, child:
        root.add_query("peak", SHARING)
        wait_until(lambda: "a query cannot be answered here" in caplog.messages)
        with edge.sensor(child, "s") as sensor:
            sensor.push(events(0, 0, 25))
        for node in (child, root):
            node.leave()
        root.join()
        assert root.queries()["peak"].rows == 0
    assert [row["n"] for table in given for row in table.to_pylist()] == [10, 10, 5]
