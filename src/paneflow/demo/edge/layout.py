"""What is asked of the tree, and the tree: a root, two merging nodes, four children of two houses.

All of it goes into one file, `tree.toml`, as a user would write it.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import ExitStack
from typing import NamedTuple

import pyarrow as pa

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.schemas import write_schema
from paneflow.written import write_query

COLUMNS = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("house", pa.string()),
        ("plug", pa.string()),
        ("load", pa.float64()),
        ("work", pa.float64()),
    ]
)
QUERY = pf.Query(
    windows={
        "hour": W.sliding("1 hour", "1 minute"),
        "use": W.session("5 minutes"),
        "100 readings": W.count(100),
    },
    aggregates={
        "energy": A.sum("work", exact=True),
        "peak": A.max("load"),
        "median": A.median("load"),
        "readings": A.count(),
    },
    key=("house", "plug"),
    time="ts",
    lateness="30 seconds",
)
"""Sums are exact: so the rows are the same to the last bit, however the tree has added them up."""

ROOT = "root"
SHAPE = {ROOT: ("east", "west"), "east": ("e1", "e2"), "west": ("w1", "w2")}
HOUSES = {"e1": ("1", "5"), "e2": ("2", "6"), "w1": ("3", "7"), "w2": ("4", "8")}
"""Which houses a child takes readings of."""
CHILDREN = tuple(HOUSES)
NODES = (ROOT, "east", "west", *CHILDREN)
VICTIM = "e1"
PATIENCE = "2 minutes"


class Addresses(NamedTuple):
    """Where a tree on this machine is reached."""

    listen: Mapping[str, str]
    """Nodes, by name: where nodes below, or sensors, connect."""
    status: str
    """Where the root tells what the tree looks like."""
    broker: str | None
    """None: sensors connect to children."""


def addresses(broker: str | None) -> Addresses:
    """Free ports of this machine, for everybody."""
    *given, status = free_ports(len(NODES) + 1)
    listen = {name: here(port) for name, port in zip(NODES, given, strict=True)}
    return Addresses(listen, here(status), broker)


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody uses now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def here(port: int) -> str:
    """An address that only this machine can reach."""
    return f"tcp://127.0.0.1:{port}"


def topic(child: str, house: str) -> str:
    """Where the hub of a house publishes."""
    return f"plugs/{child}/{house}"


def tree_toml(at: Addresses) -> str:
    """The file that describes the tree."""
    asked = write_query(QUERY)
    parents = {below: above for above, several in SHAPE.items() for below in several}
    parts = [
        "[columns]",
        *(f'{name} = "{type_}"' for name, type_ in write_schema(COLUMNS).items()),
        "\n[query]",
        f"key = {list(QUERY.key)}",
        f'time = "{asked["time"]}"',
        f'lateness = "{asked["lateness"]}"',
        *(f'windows."{label}" = "{window}"' for label, window in asked["windows"].items()),
        *(f'aggregates.{name} = "{text}"' for name, text in asked["aggregates"].items()),
    ]
    for name in NODES:
        parts += [f"\n[node.{name}]", *_node(name, parents.get(name), at)]
    return "\n".join(parts) + "\n"


def role_of(name: str) -> str:
    """What a node does."""
    return "root" if name == ROOT else "merge" if name in SHAPE else "child"


def _node(name: str, parent: str | None, at: Addresses) -> list[str]:
    """The lines that describe a node."""
    lines = [f'role = "{role_of(name)}"', f'log = "logs/{name}"']
    if parent is not None:
        lines.append(f'parent = "{parent}"')
    if name in CHILDREN:
        return [*lines, _input(name, at)]
    lines += [f'listen = "{at.listen[name]}"', f'patience = "{PATIENCE}"']
    if name == ROOT:
        lines += [f'status = "{at.status}"', 'output = { kind = "parquet", folder = "rows" }']
    return lines


def _input(child: str, at: Addresses) -> str:
    if at.broker is None:
        return f'input = {{ kind = "zmq", address = "{at.listen[child]}" }}'
    where = topic(child, "{house}")
    return f'input = {{ kind = "mqtt", address = "{at.broker}", topic = "{where}", number = "n" }}'
