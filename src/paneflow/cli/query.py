"""`paneflow query`: what a tree is asked, before it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from paneflow.cli.files import tree_of
from paneflow.engines.edge.config import NodeConfig, TreeConfig
from paneflow.schemas import write_schema

query = typer.Typer(help="What a tree is asked.", no_args_is_help=True)


@query.callback()
def about() -> None:
    """What a tree is asked."""


@query.command()
def check(
    file: Annotated[Path, typer.Argument(help="The file that describes the tree.")] = Path(
        "tree.toml"
    ),
) -> None:
    """Check a file, and say how each window of its query is answered."""
    typer.echo("\n".join(told(tree_of(file))))


def told(tree: TreeConfig) -> Iterator[str]:
    """A tree in words, line by line."""
    asked = tree.question.query
    columns = write_schema(tree.columns).items()
    yield f"columns: {', '.join(f'{name} {type_}' for name, type_ in columns)}"
    yield f"time: {asked.time}, up to {asked.lateness} out of order"
    yield f"key: {', '.join(asked.key) or 'none'}"
    yield "aggregates:"
    yield from (f"  {name} = {aggregate}" for name, aggregate in asked.aggregates.items())
    yield "windows:"
    for label, window in asked.windows.items():
        way = tree.question.ways[label]
        yield f"  {label}{'' if label == str(window) else f' = {window}'}"
        yield f"    {way.name}: {way.reason}"
    yield "nodes:"
    yield from _below(None, tree.nodes, 1)


def _below(parent: str | None, nodes: Mapping[str, NodeConfig], depth: int) -> Iterator[str]:
    """The nodes that report to one, or whose parents are not in the file, and those below them."""
    for name, node in nodes.items():
        above = node.parent.name if node.parent and node.parent.name in nodes else None
        if above == parent:
            to = f", reports to {node.parent.address}" if node.parent else ""
            at = f", listens at {node.listen}" if node.listen else ""
            yield f"{'  ' * depth}{name}: {node.role}{at}{to}"
            yield from _below(name, nodes, depth + 1)
