"""`paneflow node`: runs a node of a tree, or shows the tree that runs."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from paneflow.cli.files import ConfigFile, tree_of
from paneflow.cli.top import show
from paneflow.engines.edge.config import Role
from paneflow.engines.edge.watching.logs import log_to

node = typer.Typer(help="Run a node of a tree, or look at one.", no_args_is_help=True)

TREE = Path("tree.toml")
Name = Annotated[
    str | None,
    typer.Option("--name", "-n", help="Which node; not needed if only one has the role."),
]


class LogFormat(StrEnum):
    """What lines of the log look like."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


Log = Annotated[LogFormat, typer.Option("--log", help="Log as text or JSON; auto: see who looks.")]


@node.command()
def child(config: ConfigFile = TREE, name: Name = None, log: Log = LogFormat.AUTO) -> None:
    """Take the events of sensors, and report their slices."""
    _run("child", config, name, log)


@node.command()
def merge(config: ConfigFile = TREE, name: Name = None, log: Log = LogFormat.AUTO) -> None:
    """Merge what the nodes below report."""
    _run("merge", config, name, log)


@node.command()
def root(config: ConfigFile = TREE, name: Name = None, log: Log = LogFormat.AUTO) -> None:
    """Turn what the nodes below report into rows."""
    _run("root", config, name, log)


@node.command()
def top(
    of: Annotated[str, typer.Option(help="The `status` address of a node, usually of the root.")],
    once: Annotated[bool, typer.Option(help="Show one picture and end.")] = False,
    every: Annotated[str, typer.Option(help="How often to look.")] = "1 second",
    keys: Annotated[
        Path | None, typer.Option(help="The folder of keys, to look from afar.")
    ] = None,
    me: Annotated[str | None, typer.Option("--as", help="Whose keys to use.")] = None,
    whom: Annotated[str | None, typer.Option("--node", help="The name of the node.")] = None,
) -> None:
    """Show the live tree: what each node does, and which are dead."""
    show(of, once=once, every=every, keys=keys, me=me, whom=whom)


def _run(role: Role, file: Path, name: str | None, log: LogFormat) -> None:
    config = tree_of(file).node(role, name)
    as_json = None if log is LogFormat.AUTO else log is LogFormat.JSON
    log_to(sys.stderr, config.name, as_json=as_json)
    from paneflow.engines.edge.running.node import run  # needs pyzmq

    raise typer.Exit(run(config))
