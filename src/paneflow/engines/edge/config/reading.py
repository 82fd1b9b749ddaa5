"""Reads `tree.toml`.

A file has `[columns]`, a `[query]` (or `query = "my_module:my_query"`), perhaps
`[interpretations]` of its windows, and a table `[node.NAME]` for each node. All nodes of a tree may
stand in one file, which is then the same on every machine, or each in its own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.engines.edge.config.model import ConfigError, NodeConfig, TreeConfig
from paneflow.engines.edge.config.nodes import read_node, read_place
from paneflow.engines.edge.config.section import Section
from paneflow.engines.edge.question import Question
from paneflow.schemas import read_schema

if TYPE_CHECKING:
    from paneflow.query import Query

QueryOf = Callable[[Any, Path], "Query"]
"""Gives the query for what a file says, a table or text; modules are looked for in the folder."""


def read_tree(file: str | Path, query_of: QueryOf) -> TreeConfig:
    """Read and check a file; the first mistake is an error that names its place."""
    path = Path(file)
    top = Section(path, "", _parsed(path))
    columns, question = _question(top, query_of)
    tables = top.table("node")
    top.finish()
    if tables is None or not tables.names:
        raise top.error("no node is described: add a [node.NAME] with a role")
    places = {}
    for name in tables.names:
        section = tables.table(name)
        assert section is not None
        places[name] = read_place(name, section)
    nodes = {name: read_node(name, places, question, columns) for name in places}
    _check_tree(top, nodes)
    return TreeConfig(path, question, columns, _with_children(nodes))


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror}): name a file that describes a tree"
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} is not a text in UTF-8 ({error.reason}): save it as one"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None


def _question(top: Section, query_of: QueryOf) -> tuple[pa.Schema, Question]:
    """What is asked, and of which columns."""
    top.require("query", '"my_module:my_query", or a [query] with windows and aggregates')
    top.require("columns", '{ ts = "timestamp[us, UTC]", load = "float64" }')
    columns = top.guarded("[columns]", lambda: read_schema(top.raw("columns")))
    query = top.guarded("[query]", lambda: query_of(top.raw("query"), top.file.parent))
    meant = top.table("interpretations")
    asked = {} if meant is None else {label: meant.text(label) or "" for label in meant.names}
    return columns, top.guarded("[query]", lambda: Question(query, columns, asked))


def _check_tree(top: Section, nodes: Mapping[str, NodeConfig]) -> None:
    """Refuse two roots, circles, and two parents of one node."""
    roots = [name for name, node in nodes.items() if node.role == "root"]
    if len(roots) > 1:
        raise top.error(f"{' and '.join(roots)} are both roots, but a tree has one: choose one")
    for name, node in nodes.items():
        for child in node.children:
            if child in nodes and _above(nodes[child]) != name:
                raise top.error(
                    f"[node.{name}] counts {child!r} among its children, but the parent of "
                    f"{child!r} is {_above(nodes[child])!r}: write one of them in both places"
                )
        seen = [name]
        while (above := _above(nodes[seen[-1]])) in nodes:
            if above in seen:
                raise top.error(
                    f"nodes report to each other in a circle ({' -> '.join([*seen, str(above)])}): "
                    f"every way up must end at the root"
                )
            seen.append(str(above))


def _above(node: NodeConfig) -> str | None:
    return node.parent.name if node.parent else None


def _with_children(nodes: Mapping[str, NodeConfig]) -> dict[str, NodeConfig]:
    """The nodes, each with the names of those in the file that report to it."""
    return {
        name: replace(
            node,
            children=tuple(
                dict.fromkeys(
                    [*node.children, *(n for n, below in nodes.items() if _above(below) == name)]
                )
            ),
        )
        for name, node in nodes.items()
    }
