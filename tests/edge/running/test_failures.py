"""Nodes that fail stop with a clear line in their logs; the tree goes on, and nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paneflow.engines.edge.question import COMPLETE
from paneflow.engines.edge.wire import PROTOCOL
from tests.edge.running.events import check, expected, push, sensors
from tests.edge.running.real_trees import QUICK, RealTree
from tests.properties.compare import assert_same_rows
from tests.waiting import wait_until

pytestmark = pytest.mark.processes

Grow = Callable[..., RealTree]


def why(tree: RealTree, name: str) -> str:
    """The reason that a node has logged for stopping, in one line."""
    [line] = tree.logged(name, "the node stops")
    assert "trace" not in line
    return str(line["why"])


@pytest.mark.parametrize("name", ["root", "m", "a"])
def test_a_full_disk_stops_one_node_and_loses_nothing(grow: Grow, name: str) -> None:
    tree = grow()
    tree.file_bytes[name] = 12_000
    tree.start()
    sources = sensors(tree)
    at = 0
    while tree.zygote.exit_code(tree.pids[name]) is None:
        push(sources, at, at + 20)
        at += 20
        time.sleep(0.01)
    assert tree.wait(name) == 1
    assert "cannot be written" in why(tree, name)
    assert all(tree.zygote.exit_code(pid) is None for pid in tree.pids.values())
    push(sources, at, at + 50)
    del tree.file_bytes[name]
    tree.start(name)
    check(tree, sources, at + 50)


def test_rows_that_cannot_be_written_stop_the_root_and_come_later(grow: Grow) -> None:
    tree = grow()
    tree.start()
    sources = sensors(tree)
    push(sources, 0, 100)
    wait_until(lambda: tree.rows().num_rows)
    rows, elsewhere = tree.folder / "rows", tree.folder / "elsewhere"
    rows.rename(elsewhere)
    rows.touch()
    push(sources, 100, 200)
    assert tree.wait("root") == 1
    assert "cannot be written to" in why(tree, "root")
    assert all(tree.zygote.exit_code(pid) is None for pid in tree.pids.values())
    push(sources, 200, 250)
    rows.unlink()
    elsewhere.rename(rows)
    tree.start("root")
    check(tree, sources, 250)


def damage(folder: Path) -> None:
    """Change a bit in the first half of a log."""
    [segment] = folder.glob("segment-*.log")
    data = bytearray(segment.read_bytes())
    data[len(data) // 3] ^= 1
    segment.write_bytes(data)


def test_a_damaged_log_stops_its_node_only(grow: Grow) -> None:
    tree = grow(pace=replace(QUICK, snapshot_every=10**9))
    tree.start()
    sources = sensors(tree)
    push(sources, 0, 200)
    wait_until(lambda: tree.rows().num_rows)
    tree.kill("m")
    damage(tree.folder / "m-log")
    tree.start("m")
    assert tree.wait("m") == 1
    assert "is damaged" in why(tree, "m")
    assert tree.zygote.exit_code(tree.pids["root"]) is None
    assert tree.zygote.exit_code(tree.pids["a"]) is None


def test_one_log_is_for_one_node(grow: Grow) -> None:
    tree = grow()
    tree.start()
    first = tree.pids.pop("m")
    wait_until(partial(tree.logged, "m", "the node runs"))
    tree.start("m")
    assert tree.wait("m") == 1
    assert f"in use by process {first}" in why(tree, "m")
    tree.pids["m"] = first


def test_a_log_of_another_query_is_refused(grow: Grow) -> None:
    tree = grow()
    tree.start("a")
    wait_until(partial(tree.logged, "a", "the node runs"))
    tree.stop("a")
    tree.query = tree.query.with_windows({"ten": tree.query.windows["ten"]})
    tree.start("a")
    assert tree.wait("a") == 1
    assert "was written by child node 'a' with query" in why(tree, "a")


def test_windows_of_a_dead_node_close_and_are_completed_when_it_returns(grow: Grow) -> None:
    tree = grow(patience=1.0)
    tree.start()
    sources = sensors(tree)
    push(sources, 0, 100)
    wait_until(lambda: tree.rows().num_rows)
    tree.kill("a")
    push(sources[1:], 100, 300)
    wait_until(partial(tree.logged, "m", "a node is given up"))
    wait_until(lambda: not pc.all(tree.rows()[COMPLETE]).as_py())
    tree.start("a")
    push(sources[:1], 100, 300)
    push(sources, 300, 400)
    right = expected(tree, 400)
    for sensor in sources:
        sensor.close()
    tree.leave()
    wait_until(lambda: complete(tree).num_rows == right.num_rows)
    assert_same_rows(tree.query, complete(tree), right)


def test_a_node_of_another_version_is_refused_and_counts_once_it_is_replaced(grow: Grow) -> None:
    tree = grow(patience=1.0)
    tree.protocols["a"] = PROTOCOL + 1
    tree.start()
    sources = sensors(tree)
    push(sources, 0, 100)
    wait_until(partial(tree.logged, "m", "a message was refused"))
    refused = tree.logged("m", "a message was refused")[0]
    assert f"of version {PROTOCOL + 1} of the protocol" in refused["why"]
    wait_until(lambda: tree.rows().num_rows)
    assert not pc.any(tree.rows()[COMPLETE]).as_py()
    tree.kill("a")
    del tree.protocols["a"]
    tree.start("a")
    push(sources, 100, 200)
    right = expected(tree, 200)
    for sensor in sources:
        sensor.close()
    tree.leave()
    wait_until(lambda: complete(tree).num_rows == right.num_rows)
    assert_same_rows(tree.query, complete(tree), right)


def complete(tree: RealTree) -> pa.Table:
    """The rows of windows that are complete, if need be after they were corrected."""
    rows = tree.rows()
    return rows.filter(rows[COMPLETE]).drop_columns(COMPLETE)
