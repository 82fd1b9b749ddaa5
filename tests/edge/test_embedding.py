"""A tree inside a program, made in a few lines with `paneflow.edge`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, edge, windows as W
from paneflow.engines.edge.nodes.root import in_order
from paneflow.errors import QueryError, UnsupportedError
from tests.edge.running.events import QUERY, SCHEMA, events
from tests.properties.compare import assert_same_rows
from tests.waiting import wait_until

ASKED = edge.Question(QUERY, SCHEMA)


def finish(*nodes: edge.Node) -> None:
    """Let nodes leave, and wait until they have."""
    for node in nodes:
        node.leave()
    for node in nodes:
        node.join()


def same_rows(rows: pa.Table, given: pa.Table) -> None:
    right = in_order(QUERY.over(given), ASKED)
    assert rows["complete"].to_pylist() == [True] * right.num_rows
    assert_same_rows(QUERY, in_order(rows, ASKED).drop_columns("complete"), right)


def test_a_root_and_two_children_in_one_program_give_the_rows_of_all_events(tmp_path: Path) -> None:
    given: list[pa.Table] = []
    root = edge.root(
        ASKED,
        log=tmp_path / "root",
        children=["a", "b"],
        on_rows=lambda rows, number: given.append(rows),
    )
    children = [edge.child(name, ASKED, parent=root, log=tmp_path / name) for name in "ab"]

    def send(source: int) -> None:
        with edge.sensor(children[source], f"s{source}") as sensor:
            for at in range(0, 300, 20):
                sensor.push(events(source, at, at + 20))

    with root, children[0], children[1]:
        threads = [Thread(target=send, args=(source,)) for source in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        finish(*children, root)
    same_rows(pa.concat_tables(given), pa.concat_tables([events(0, 0, 300), events(1, 0, 300)]))


def test_a_merging_node_stands_between_and_rows_are_kept_in_files(tmp_path: Path) -> None:
    with (
        edge.root(
            ASKED, log=tmp_path / "root", children=["m"], rows=tmp_path / "rows", name="top"
        ) as root,
        edge.merge("m", ASKED, parent=root, log=tmp_path / "m", children=["a"]) as merge,
        edge.child("a", ASKED, parent=merge.address or "", log=tmp_path / "a") as child,
    ):
        with edge.sensor(child, "s") as sensor:
            sensor.push(events(0, 0, 100))
        finish(child, merge, root)
    same_rows(edge.read_rows(tmp_path / "rows"), events(0, 0, 100))


def test_a_tree_that_is_made_again_with_the_same_logs_goes_on(tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    for start in (0, 100):
        root = edge.root(ASKED, log=tmp_path / "root", children=["a"], rows=rows)
        child = edge.child("a", ASKED, parent=root, log=tmp_path / "a")
        with root, child, edge.sensor(child, "s") as sensor:
            sensor.push(events(0, start, start + 100))
            sensor.flush()
            if start:
                finish(child, root)
    same_rows(edge.read_rows(rows), events(0, 0, 200))


def test_a_root_without_nodes_below_it_can_end(tmp_path: Path) -> None:
    with edge.root(ASKED, log=tmp_path / "root") as root:
        finish(root)
        wait_until(lambda: not root.running)


def test_what_a_window_means_on_several_nodes_can_be_chosen(tmp_path: Path) -> None:
    query = pf.Query({"lap": W.count(2)}, {"best": A.max("v")}, time="t")
    asked = edge.Question(query, SCHEMA, {"lap": "local"})
    given: list[pa.Table] = []
    root = edge.root(
        asked, log=tmp_path / "r", children=["a"], on_rows=lambda rows, n: given.append(rows)
    )
    child = edge.child("a", asked, parent=root, log=tmp_path / "a")
    with root, child:
        with edge.sensor(child, "s") as sensor:
            sensor.push(events(0, 0, 4))
        finish(child, root)
    rows = pa.concat_tables(given).to_pylist()
    assert [(row["node"], row["best"]) for row in rows] == [("a", 10), ("a", 30)]


def test_mistakes_are_explained(tmp_path: Path) -> None:
    with edge.root(ASKED, log=tmp_path / "root") as root:
        with pytest.raises(QueryError, match="'root' has the role 'root' and does not listen"):
            edge.sensor(root, "s")
        with edge.child("a", ASKED, parent=root, log=tmp_path / "a") as child:
            message = "'a' is a child node, which has no nodes below it: give a merging node"
            with pytest.raises(QueryError, match=message):
                edge.child("b", ASKED, parent=child, log=tmp_path / "b")


@pytest.mark.parametrize("package", ["zmq", "paho", "prometheus_client"])
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name == "paneflow.edge" or name.startswith(("paneflow.engines.edge.", f"{package}.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    message = rf'{package}, which is not installed: .*pip install "paneflow\[edge\]"'
    with pytest.raises(UnsupportedError, match=message) as caught:
        importlib.import_module("paneflow.edge")
    assert isinstance(caught.value, ImportError)
