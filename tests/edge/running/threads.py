"""Small trees in threads of the test's own process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from paneflow.engines.edge.config import NodeConfig, Parent, Role, ZmqInputConfig
from paneflow.engines.edge.inputs.sensor import Sensor
from paneflow.engines.edge.inputs.zmq_input import ZmqInput
from paneflow.engines.edge.question import Question
from paneflow.engines.edge.running.node import Node
from tests.edge.running.events import QUERY, SCHEMA, events
from tests.edge.running.real_trees import QUICK
from tests.waiting import wait_until

HERE = "tcp://127.0.0.1:*"


@dataclass
class Threads:
    """Makes nodes, and keeps what the root says."""

    folder: Path
    stack: ExitStack
    rows: dict[int, pa.Table] = field(default_factory=dict)

    def config(self, name: str, role: Role, **settings: Any) -> NodeConfig:
        question = settings.pop("question", None) or Question(QUERY, SCHEMA)
        return NodeConfig(name, role, question, SCHEMA, self.folder / name, **settings)

    def node(self, name: str, role: Role, **settings: Any) -> Node:
        """A node that runs until the test ends."""
        on_rows = self.rows.__setitem__ if role == "root" else None
        config = self.config(name, role, **settings)
        taken = None if on_rows is None else lambda rows, number: on_rows(number, rows)
        return self.stack.enter_context(Node(config, on_rows=taken, pace=QUICK))

    def root(self, **settings: Any) -> Node:
        return self.node("root", "root", **({"listen": HERE} | settings))

    def child(self, name: str, above: Node, **settings: Any) -> Node:
        assert above.address is not None
        parent = Parent(above.address, above.config.name)
        given = {"parent": parent, "inputs": (ZmqInputConfig(HERE),)} | settings
        return self.node(name, "child", **given)

    def sensor(self, child: Node, name: str = "0", **settings: Any) -> Sensor:
        [given] = child.inputs
        assert isinstance(given, ZmqInput)
        return self.stack.enter_context(Sensor(given.address, name, **settings))

    def ends(self) -> set[int]:
        """Until when there are rows."""
        return {end for rows in self.rows.values() for end in rows["end"].to_pylist()}


@contextmanager
def threads(folder: Path) -> Iterator[Threads]:
    """Nodes in threads; all are stopped in the end, the last one first."""
    with ExitStack() as stack:
        yield Threads(folder, stack)


def goes_on(tree: Threads, root: Node) -> None:
    """The tree still turns events into rows."""
    sensor = tree.sensor(tree.child("a", root))
    sensor.push(events(0, 0, 100))
    wait_until(lambda: 90 in tree.ends())
