"""`paneflow keys`: the keys by which nodes know each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

keys = typer.Typer(help="Keys by which nodes know each other.", no_args_is_help=True)


@keys.callback()
def about() -> None:
    """Keys by which nodes know each other."""


@keys.command()
def make(
    folder: Annotated[Path, typer.Argument(help="Where the keys are written.")],
    names: Annotated[list[str], typer.Argument(help="The nodes that get keys.")],
) -> None:
    """Make a pair of keys for each node.

    A secret key stays on the machine of its node. The public one is copied to the folders of the
    nodes it talks to.
    """
    from paneflow.engines.edge.network.keys import PUBLIC, SECRET, make_keys  # needs pyzmq

    for name in names:
        make_keys(folder, name)
        typer.echo(f"{folder / name}{SECRET}  secret: only for the machine of {name}")
        typer.echo(f"{folder / name}{PUBLIC}  public: copy it to the nodes that {name} talks to")
