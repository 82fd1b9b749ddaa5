"""What is seen meanwhile: the live tree, or lines where nothing can change in its place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from paneflow.cli.screen import picture_of
from paneflow.engines.edge.watching.picture import NodeLine

Show = Callable[[Sequence[NodeLine], str], None]
"""Shows the tree, and below it a line that says what happens."""
EVERY = 2.0
"""Seconds between lines."""


@contextmanager
def screen(console: Console) -> Iterator[Show]:
    """A function that shows the tree as well as the terminal can."""
    if not console.is_terminal:
        yield lines(console)
        return
    with Live(console=console, auto_refresh=False) as live:

        def show(tree: Sequence[NodeLine], happens: str) -> None:
            live.update(Group(picture_of(tree, console.width), Text(happens)), refresh=True)

        yield show


def lines(console: Console) -> Show:
    """A function that prints a line now and then, and whenever something else happens."""
    last, said = -EVERY, ""

    def show(tree: Sequence[NodeLine], happens: str) -> None:
        nonlocal last, said
        now = time.monotonic()
        if happens == said and now - last < EVERY:
            return
        last, said = now, happens
        dead = [line.node for line in tree if not line.alive]
        events, rows = counted(tree, "events"), counted(tree, "rows")
        console.print(
            f"{len(tree)} nodes, {'dead: ' + ', '.join(dead) if dead else 'all alive'}, "
            f"{events:,} readings, {rows:,} rows; {happens}",
            highlight=False,
            soft_wrap=True,
        )

    return show


def counted(tree: Sequence[NodeLine], what: str) -> int:
    """How many events, or rows, all nodes have counted."""
    return sum(int(line.metrics.get(what, 0)) for line in tree)
