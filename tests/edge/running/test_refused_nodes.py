"""A node that is refused costs the others nothing, and loses nothing: let in later, it counts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paneflow.engines.edge.config import LimitsConfig
from paneflow.engines.edge.inputs.sensor import Sensor
from paneflow.engines.edge.network.keys import read_keys, read_public
from paneflow.engines.edge.nodes.root import in_order
from paneflow.engines.edge.question import COMPLETE, Question
from paneflow.engines.edge.running.node import Node
from tests.edge.ports import free_port
from tests.edge.running.events import QUERY, SCHEMA, events
from tests.edge.running.test_secured import keep_keys
from tests.edge.running.threads import Threads
from tests.properties.compare import assert_same_rows
from tests.waiting import wait_until

PATIENCE = 1.0
END = 5_000


def rows(tree: Threads, complete: bool) -> pa.Table:
    """The rows that are complete, or those that are not."""
    question = Question(QUERY, SCHEMA)
    given = pa.concat_tables([question.row_schema.empty_table(), *tree.rows.values()])
    kept = given.filter(pc.equal(given[COMPLETE], complete)).drop_columns(COMPLETE)
    return in_order(kept, question)


def goes_on_without(tree: Threads, caplog: pytest.LogCaptureFixture) -> None:
    """Windows close, incomplete, once the node that was refused has been waited for."""
    wait_until(lambda: "a node is given up" in caplog.messages)
    wait_until(lambda: END - 10 in rows(tree, complete=False)["end"].to_pylist())


def counts(tree: Threads, sensors: list[Sensor], nodes: list[Node], root: Node) -> None:
    """In the end the complete rows are those of all events, each given once."""
    for sensor in sensors:
        sensor.close()
    # Those that were refused end first: what returns when all others have left is late.
    for node in reversed(nodes):
        node.leave()
        node.join()
    root.leave()
    root.join()
    right = QUERY.over(pa.concat_tables([events(k, 0, END) for k in range(len(sensors))]))
    assert_same_rows(QUERY, rows(tree, complete=True), in_order(right, Question(QUERY, SCHEMA)))


def test_a_node_with_an_unknown_key_is_let_in_once_its_key_is_there(
    tree: Threads, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "keys"
    known = keep_keys(folder, "root", "a")
    root = tree.root(keys=known, children=("a", "b"), patience=PATIENCE)
    nodes, sensors = [], []
    for k, name in enumerate("ab"):
        nodes.append(tree.child(name, root, keys=keep_keys(folder, name, "root", f"s{k}")))
        own = keep_keys(folder, f"s{k}", name)
        keys, child_key = read_keys(own, f"s{k}"), read_public(own, name)
        sensors.append(tree.sensor(nodes[k], f"s{k}", keys=keys, child_key=child_key))
        sensors[k].push(events(k, 0, END))
    goes_on_without(tree, caplog)
    assert {"a stranger was refused", "the parent refuses this node"} <= set(caplog.messages)
    (known / "b.key").write_bytes((folder / "b" / "b.key").read_bytes())
    counts(tree, sensors, nodes, root)


@pytest.mark.parametrize("limit", [5_000, 60_000], ids=["cut off", "read and refused"])
def test_a_node_with_a_report_that_is_too_large_is_let_in_once_the_limit_is_raised(
    tree: Threads, limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    here = f"tcp://127.0.0.1:{free_port()}"
    about = {"listen": here, "children": ("a", "b")}
    root = tree.root(limits=LimitsConfig(message_bytes=limit), patience=PATIENCE, **about)
    nodes = [tree.child("a", root, limits=LimitsConfig(message_bytes=limit)), tree.child("b", root)]
    sensors = [tree.sensor(node, str(k)) for k, node in enumerate(nodes)]
    for k, sensor in enumerate(sensors):
        sensor.push(events(k, 0, END))
    goes_on_without(tree, caplog)
    refused = [r.fields for r in caplog.records if r.message == "the parent refuses this node"]  # type: ignore[attr-defined]
    assert f"and its parent takes {limit:,}" in refused[0]["why"]
    root.stop()
    root.join()
    counts(tree, sensors, nodes, tree.root(**about))
