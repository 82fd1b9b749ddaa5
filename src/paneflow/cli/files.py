"""The file that commands read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paneflow.engines.edge.config import TreeConfig, read_tree
from paneflow.written import query_of

ConfigFile = Annotated[
    Path, typer.Option("--config", "-c", help="The file that describes the tree.")
]


def tree_of(file: Path) -> TreeConfig:
    """The tree that a file describes, its query in words or in a module beside it."""
    return read_tree(file, query_of)
