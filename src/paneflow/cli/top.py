"""The live tree in a terminal: asks a node again and again, until somebody presses Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from paneflow.cli.screen import picture_of
from paneflow.engines.edge.watching.picture import NodeLine
from paneflow.errors import QueryError
from paneflow.windows import duration


def show(
    address: str,
    *,
    once: bool,
    every: str,
    keys: Path | None,
    me: str | None,
    whom: str | None,
) -> None:
    """Show the tree of the node at an address, once or until interrupted."""
    from paneflow.engines.edge.watching.status import StatusError, Watcher, ask_status

    watcher = None
    if keys is not None:
        if me is None or whom is None:
            raise QueryError(
                "--keys also needs --as, whose keys to use, and --node, the name of the node that "
                "is asked: both are names of files in the folder of keys"
            )
        watcher = Watcher(keys, me, whom)
    pause = duration(every, "--every", least=1).value / 10**6
    console = Console()
    lines = ask_status(address, watcher)
    if once:
        console.print(picture_of(lines, console.width))
        return

    def look(before: list[NodeLine]) -> tuple[list[NodeLine], str]:
        try:
            return ask_status(address, watcher, patience=2.0), ""
        except StatusError as error:
            return before, str(error)

    with suppress(KeyboardInterrupt):
        _watch(console, lines, look, pause)


def _watch(
    console: Console,
    lines: list[NodeLine],
    look: Callable[[list[NodeLine]], tuple[list[NodeLine], str]],
    pause: float,
) -> None:
    with Live(
        picture_of(lines, console.width), console=console, screen=True, auto_refresh=False
    ) as live:
        while True:
            time.sleep(pause)
            lines, problem = look(lines)
            live.update(_with(lines, problem, console.width), refresh=True)


def _with(lines: list[NodeLine], problem: str, width: int) -> RenderableType:
    picture = picture_of(lines, width)
    return Group(picture, Text(f"\nThis is old: {problem}", style="red")) if problem else picture
