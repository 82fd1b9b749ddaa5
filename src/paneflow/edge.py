"""A tree of nodes: events are aggregated where they arise, and only partials travel.

`read_tree` reads the file that describes a tree, and a `Node` runs one node of it, as the command
`paneflow node` does. `root`, `merge`, `child` and `sensor` make a tree inside a program, without a
file. `Sensor` sends events to a child node, from wherever they are measured.

This needs the extra `edge`: pip install "paneflow[edge]".
"""

from __future__ import annotations

from pathlib import Path

from paneflow.errors import UnsupportedError
from paneflow.written import query_of

NEEDED = ("paho", "prometheus_client", "zmq")
"""Packages of the extra `edge` that nodes import."""


class MissingPackages(UnsupportedError, ImportError):
    """The packages that nodes of a tree need are not installed."""


try:
    from paneflow.engines.edge import config
    from paneflow.engines.edge.config import NodeConfig, Parent, TreeConfig
    from paneflow.engines.edge.embedding import child, merge, root, sensor
    from paneflow.engines.edge.inputs.sensor import Sensor
    from paneflow.engines.edge.network.keys import Keys, make_keys, read_keys, read_public
    from paneflow.engines.edge.outputs.parquet import read_rows
    from paneflow.engines.edge.outputs.slices import read_slices
    from paneflow.engines.edge.question import Question
    from paneflow.engines.edge.running.node import Node
except ModuleNotFoundError as error:
    missing = (error.name or "").partition(".")[0]
    if missing not in NEEDED:
        raise
    raise MissingPackages(
        f"a tree of nodes needs {missing}, which is not installed: install paneflow with its "
        f'extra, pip install "paneflow[edge]"'
    ) from None

__all__ = [
    "Keys",
    "Node",
    "NodeConfig",
    "Parent",
    "Question",
    "Sensor",
    "TreeConfig",
    "child",
    "make_keys",
    "merge",
    "read_keys",
    "read_public",
    "read_rows",
    "read_slices",
    "read_tree",
    "root",
    "sensor",
]


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


def read_tree(file: str | Path) -> TreeConfig:
    """Read and check a file that describes a tree, or nodes of one.

    Args:
        file: The file, usually called `tree.toml`. A query that it names in a Python module is
            looked for beside it.

    Returns:
        The tree. Its `node(role, name)` is what `Node` runs.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from paneflow import edge
        >>> file = Path(tempfile.mkdtemp(), "tree.toml")
        >>> written = file.write_text('''
        ... columns = { t = "int64", load = "int64" }
        ... query = { windows = "tumbling(5)", aggregates = { peak = "max('load')" }, time = "t" }
        ... [node.root]
        ... role = "root"
        ... listen = "tcp://127.0.0.1:7001"
        ... log = "logs/root"
        ... output = { kind = "stdout" }
        ... ''')
        >>> edge.read_tree(file).node("root").listen
        'tcp://127.0.0.1:7001'
    """
    return config.read_tree(file, query_of)
