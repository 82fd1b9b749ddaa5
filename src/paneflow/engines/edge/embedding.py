"""Trees inside a program: nodes in threads, made without a file that describes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa

from paneflow.engines.edge.config import NodeConfig, Parent, ParquetOutputConfig, ZmqInputConfig
from paneflow.engines.edge.inputs.sensor import Sensor
from paneflow.engines.edge.inputs.zmq_input import ZmqInput
from paneflow.engines.edge.question import Question
from paneflow.engines.edge.running.node import Node
from paneflow.errors import QueryError

FREE_PORT = "tcp://127.0.0.1:*"


def root(
    question: Question,
    *,
    log: str | Path,
    children: Iterable[str] = (),
    on_rows: Callable[[pa.Table, int], object] | None = None,
    on_added: Callable[[pa.Table, int, str], object] | None = None,
    rows: str | Path | None = None,
    listen: str = FREE_PORT,
    name: str = "root",
    patience: float = NodeConfig.patience,
    keys: str | Path | None = None,
    status: str | None = None,
) -> Node:
    """The root of a tree: turns what the nodes below report into rows.

    Args:
        question: What is asked.
        log: The folder of its durable log. A root that is made again with this folder continues.
        children: The names of the nodes below that no window closes without. Others may join.
        on_rows: Called with the rows of each step and their number, in the node's thread. After a
            restart the last numbers may come again, with the same rows.
        on_added: The same for queries that are added while the tree runs, with their names.
        rows: A folder for the rows, as Parquet files; `read_rows` reads it.
        listen: Where the nodes below connect.
        name: Its name.
        patience: For how many seconds a silent node below is waited for.
        keys: The folder of keys; needed if others than this machine can connect.
        status: Where `paneflow node top` may ask, if anywhere.

    Returns:
        The node. It runs inside `with`, or from `start` to `stop`.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import paneflow as pf
        >>> from paneflow import aggregates as A, edge, windows as W
        >>> query = pf.Query(W.tumbling(5), {"peak": A.max("load")}, time="t")
        >>> asked = edge.Question(query, pa.schema({"t": pa.int64(), "load": pa.int64()}))
        >>> with edge.root(asked, log=tempfile.mkdtemp(), on_rows=print) as top:
        ...     top.address.rpartition(":")[0]
        'tcp://127.0.0.1'
    """
    return Node(
        NodeConfig(
            name=name,
            role="root",
            question=question,
            columns=question.source,
            log=Path(log),
            listen=listen,
            children=tuple(children),
            patience=patience,
            keys=_folder(keys),
            status=status,
            outputs=() if rows is None else (ParquetOutputConfig(Path(rows)),),
        ),
        on_rows=on_rows,
        on_added=on_added,
    )


def merge(
    name: str,
    question: Question,
    *,
    parent: Node | Parent | str,
    log: str | Path,
    children: Iterable[str] = (),
    listen: str = FREE_PORT,
    patience: float = NodeConfig.patience,
    keys: str | Path | None = None,
) -> Node:
    """A merging node: what the nodes below it report becomes one report.

    Args:
        name: Its name, unique in the tree.
        question: What is asked; the same for all nodes of a tree.
        parent: The node above, or its address; with keys a `Parent`, with its address and name.
        log: The folder of its durable log.
        children: The names of the nodes below that no window closes without. Others may join.
        listen: Where the nodes below connect.
        patience: For how many seconds a silent node below is waited for.
        keys: The folder of keys; needed if others than this machine can connect.

    Returns:
        The node. It runs inside `with`, or from `start` to `stop`.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import paneflow as pf
        >>> from paneflow import aggregates as A, edge, windows as W
        >>> query = pf.Query(W.tumbling(5), {"peak": A.max("load")}, time="t")
        >>> asked = edge.Question(query, pa.schema({"t": pa.int64(), "load": pa.int64()}))
        >>> with (
        ...     edge.root(asked, log=tempfile.mkdtemp(), children=["hall"]) as top,
        ...     edge.merge("hall", asked, parent=top, log=tempfile.mkdtemp()) as hall,
        ... ):
        ...     hall.address != top.address
        True
    """
    return Node(
        NodeConfig(
            name=name,
            role="merge",
            question=question,
            columns=question.source,
            log=Path(log),
            parent=_parent(parent),
            listen=listen,
            children=tuple(children),
            patience=patience,
            keys=_folder(keys),
        )
    )


def child(
    name: str,
    question: Question,
    *,
    parent: Node | Parent | str,
    log: str | Path,
    listen: str = FREE_PORT,
    sources: int = NodeConfig.sources,
    idle: float | None = None,
    keys: str | Path | None = None,
) -> Node:
    """A child node: takes the events of sensors, and reports their slices.

    Args:
        name: Its name, unique in the tree.
        question: What is asked; the same for all nodes of a tree.
        parent: The node above, or its address; with keys a `Parent`, with its address and name.
        log: The folder of its durable log.
        listen: Where sensors connect.
        sources: How many sensors must have been heard before a window closes.
        idle: After how many seconds a silent sensor is not waited for; None: never.
        keys: The folder of keys; needed if others than this machine can connect.

    Returns:
        The node. It runs inside `with`, or from `start` to `stop`; `leave` ends it for good.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import paneflow as pf
        >>> from paneflow import aggregates as A, edge, windows as W
        >>> query = pf.Query(W.tumbling(5), {"peak": A.max("load")}, time="t")
        >>> asked = edge.Question(query, pa.schema({"t": pa.int64(), "load": pa.int64()}))
        >>> top = edge.root(asked, log=tempfile.mkdtemp(), children=["kitchen"], on_rows=(
        ...     lambda rows, number: print(rows["peak"].to_pylist())))
        >>> kitchen = edge.child("kitchen", asked, parent=top, log=tempfile.mkdtemp())
        >>> with top, kitchen:
        ...     with edge.sensor(kitchen, "oven") as oven:
        ...         oven.push([{"t": 1, "load": 20}, {"t": 4, "load": 30}])
        ...     kitchen.leave()
        ...     top.leave()
        ...     top.join()
        [30]
    """
    return Node(
        NodeConfig(
            name=name,
            role="child",
            question=question,
            columns=question.source,
            log=Path(log),
            parent=_parent(parent),
            sources=sources,
            idle=idle,
            keys=_folder(keys),
            inputs=(ZmqInputConfig(listen),),
        )
    )


def sensor(child: Node, name: str) -> Sensor:
    """A sensor that sends events to a child node of this program, or of this machine.

    Args:
        child: The child node.
        name: The name of the source. Each sensor has its own.

    Returns:
        The sensor, connected.

    Example:
        >>> from paneflow import edge
        >>> oven = edge.sensor(kitchen, "oven")  # doctest: +SKIP
        >>> oven.push([{"t": 1, "load": 20}])  # doctest: +SKIP
    """
    for given in child.inputs:
        if isinstance(given, ZmqInput):
            return Sensor(given.address, name)
    raise QueryError(
        f"node {child.config.name!r} has the role {child.config.role!r} and does not listen for "
        f"sensors: give a child node that does"
    )


def _parent(given: Node | Parent | str) -> Parent:
    """Where a parent is reached, and its name if it is known."""
    if isinstance(given, Parent):
        return given
    if isinstance(given, str):
        return Parent(given)
    if given.address is None:
        raise QueryError(
            f"node {given.config.name!r} is a child node, which has no nodes below it: give a "
            f"merging node or the root as the parent"
        )
    return Parent(given.address, given.config.name)


def _folder(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)
