"""What is known of a tree and of each of its nodes before they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa

from paneflow.engines.edge.question import Question
from paneflow.errors import PaneflowError
from paneflow.suggesting import suggestion

Role = Literal["child", "merge", "root"]
ROLES: tuple[Role, ...] = ("child", "merge", "root")


class ConfigError(PaneflowError, ValueError):
    """A file that describes a tree has a mistake; the message names the place."""


@dataclass(frozen=True)
class ZmqInputConfig:
    """Sensors that connect over ZeroMQ.

    Attributes:
        address: Where the child node listens for them.
    """

    address: str


@dataclass(frozen=True)
class FileInputConfig:
    """A file of events, or a folder of such files.

    Attributes:
        path: The file or the folder.
        format: `"parquet"`, `"csv"`, `"ndjson"` or `"arrow"`; None: by the ending of the name.
        follow: Whether to wait for new files in the folder.
    """

    path: Path
    format: str | None = None
    follow: bool = False


@dataclass(frozen=True)
class MqttInputConfig:
    """Messages of an MQTT broker.

    Attributes:
        address: The broker, `mqtt://host:port`, or `mqtts://host:port` for TLS.
        topic: What to subscribe to; a level such as `{house}` becomes a column.
        payload: `"json"` or `"arrow"`.
        number: The field of a payload that numbers the messages of a sensor, if there is one.
        user: The name to log in with.
        password_file: A file that holds the password.
        ca_file: The certificates to trust, if not those of the system.
    """

    address: str
    topic: str
    payload: str = "json"
    number: str | None = None
    user: str | None = None
    password_file: Path | None = None
    ca_file: Path | None = None


@dataclass(frozen=True)
class StdoutOutputConfig:
    """Rows on the standard output.

    Attributes:
        format: `"text"`, `"json"` or `"csv"`.
    """

    format: str = "text"


@dataclass(frozen=True)
class ParquetOutputConfig:
    """Rows as Parquet files.

    Attributes:
        folder: Where they are written.
    """

    folder: Path


@dataclass(frozen=True)
class SlicesOutputConfig:
    """Slices as files, for Spark.

    Attributes:
        folder: Where they are written.
    """

    folder: Path


InputConfig = ZmqInputConfig | FileInputConfig | MqttInputConfig
OutputConfig = StdoutOutputConfig | ParquetOutputConfig | SlicesOutputConfig


@dataclass(frozen=True)
class Parent:
    """The node that a node reports to.

    Attributes:
        address: Where it is reached.
        name: Its name, under which its public key is kept; None where no keys are used.

    Example:
        >>> Parent("tcp://gateway.local:7002", "gateway").name
        'gateway'
    """

    address: str
    name: str | None = None


@dataclass(frozen=True)
class LimitsConfig:
    """What a node takes from others, and how much it keeps for its parent.

    Attributes:
        message_bytes: Larger messages are refused.
        messages_per_second: More messages from one neighbour have to wait; None is no limit.
        waiting_bytes: With more than this not yet acknowledged by the parent, a node stops reading.
    """

    message_bytes: int = 64 * 10**6
    messages_per_second: float | None = None
    waiting_bytes: int = 256 * 10**6


@dataclass(frozen=True)
class NodeConfig:
    """All that is needed to run a node.

    Attributes:
        name: The name of the node, unique in its tree.
        role: What it does.
        question: The query that the tree answers.
        columns: All columns of the events; the query may read only some.
        log: The folder of the durable log.
        parent: The node above; None for the root.
        listen: Where nodes below connect; None for a child.
        children: The names of the nodes below that are expected; others may join.
        patience: For how many seconds a silent node below is waited for.
        sources: How many sources of a child must have been heard before a window closes.
        idle: After how many seconds a silent source of a child is not waited for; None: never.
        keep: For how long the root can complete windows that were closed without a node, in the
            unit of the time column (microseconds for timestamps).
        keys: The folder of keys; None where everything stays on one machine.
        metrics: `host:port` at which Prometheus finds the metrics, if anywhere.
        status: Where `paneflow node top` asks, if anywhere.
        limits: What it takes from others.
        inputs: Where a child takes events from.
        outputs: Where the root writes rows.

    Example:
        >>> from paneflow import edge
        >>> edge.read_tree("tree.toml").node("child", "kitchen").log  # doctest: +SKIP
        PosixPath('logs/kitchen')
    """

    name: str
    role: Role
    question: Question
    columns: pa.Schema
    log: Path
    parent: Parent | None = None
    listen: str | None = None
    children: tuple[str, ...] = ()
    patience: float = 30.0
    sources: int = 1
    idle: float | None = None
    keep: int = 3_600_000_000
    keys: Path | None = None
    metrics: str | None = None
    status: str | None = None
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    inputs: tuple[InputConfig, ...] = ()
    outputs: tuple[OutputConfig, ...] = ()


@dataclass(frozen=True)
class TreeConfig:
    """A file that describes a tree, or one node of it.

    Attributes:
        file: Where it was read.
        question: The query that the tree answers.
        columns: The columns of the events.
        nodes: The nodes that the file describes, by name.

    Example:
        >>> from paneflow import edge
        >>> sorted(edge.read_tree("tree.toml").nodes)  # doctest: +SKIP
        ['gateway', 'kitchen', 'root']
    """

    file: Path
    question: Question
    columns: pa.Schema
    nodes: Mapping[str, NodeConfig]

    def node(self, role: Role, name: str | None = None) -> NodeConfig:
        """The node of that name and role.

        Args:
            role: What it does: `"child"`, `"merge"` or `"root"`.
            name: Its name. None is enough where only one node has the role.

        Returns:
            All that is needed to run it.

        Example:
            >>> edge.read_tree("tree.toml").node("root").name  # doctest: +SKIP
            'cloud'
        """
        having = [node for node in self.nodes.values() if node.role == role]
        if name is None:
            if len(having) == 1:
                return having[0]
            which = ", ".join(node.name for node in having) or "none"
            raise ConfigError(
                f"{self.file} has {len(having)} nodes with the role {role!r} ({which}): "
                + ("say which with --name" if having else "describe one, as in [node.NAME]")
            )
        node = self.nodes.get(name)
        if node is None:
            raise ConfigError(f"{self.file} has no [node.{name}]: {suggestion(name, self.nodes)}")
        if node.role != role:
            raise ConfigError(
                f"{self.file}: {name!r} has the role {node.role!r}, not {role!r}: run "
                f"`paneflow node {node.role}`"
            )
        return node
