"""All commands of `paneflow`, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from paneflow import __version__
from paneflow.cli.keys import keys
from paneflow.cli.node import node
from paneflow.cli.query import query

app = typer.Typer(
    help="Window queries over trees of nodes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(node, name="node")
app.add_typer(keys, name="keys")
app.add_typer(query, name="query")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"paneflow {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Window queries over trees of nodes."""
