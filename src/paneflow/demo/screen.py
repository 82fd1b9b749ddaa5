"""What is seen while the job runs: a table that changes, or lines where nothing can change."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from paneflow.demo.feed import Feed
from paneflow.demo.live import Seen

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

HOTTEST = 10
BAR = 14
EVERY = 2.0
"""Seconds between lines."""


@contextmanager
def screen() -> Iterator[Callable[[Seen, Feed], None]]:
    """A function that shows how far the job is, as well as the terminal can."""
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        yield lines()
        return
    console = Console()
    if not console.is_terminal:
        yield lines()
        return
    with live_table(console) as show:
        yield show


@contextmanager
def live_table(console: Console) -> Iterator[Callable[[Seen, Feed], None]]:
    """A table of the hottest plugs that changes in its place."""
    from rich.live import Live

    with Live(console=console, refresh_per_second=8) as live:
        yield lambda seen, feed: live.update(hottest(seen, feed))


def hottest(seen: Seen, feed: Feed) -> Table:
    """The plugs that used the most energy in the last hour."""
    from rich.table import Table

    table = Table(title="The hottest plugs of the last hour", caption=progress(seen, feed))
    table.add_column("house", justify="right")
    table.add_column("plug", min_width=10)
    for name in ("Wh", "mean W", "peak W", "peak at", "uses"):
        table.add_column(name, justify="right")
    table.add_column("", min_width=BAR)
    most = seen.hours[0]["energy"] if seen.hours else 1
    for row in seen.hours[:HOTTEST]:
        table.add_row(
            str(row["house"]),
            row["plug"],
            *(_number(row[name]) for name in ("energy", "mean", "peak")),
            f"{row['peak_at']:%H:%M}" if row["peak_at"] else "",
            str(seen.uses[row["house"], row["plug"]]),
            f"[red]{'█' * max(1, round(BAR * row['energy'] / most))}[/]",
        )
    return table


def lines() -> Callable[[Seen, Feed], None]:
    """A function that prints a line now and then."""
    last = -EVERY

    def show(seen: Seen, feed: Feed) -> None:
        nonlocal last
        if time.monotonic() - last < EVERY:
            return
        last = time.monotonic()
        hot = (f"{row['plug']} {row['house']} {_number(row['energy'])} Wh" for row in seen.hours)
        top = ", ".join(item for item, _ in zip(hot, range(3), strict=False))
        print(f"{progress(seen, feed)} · hottest: {top or '-'}")
        sys.stdout.flush()

    return show


def progress(seen: Seen, feed: Feed) -> str:
    """How far the job is."""
    until = f"{seen.until:%H:%M:%S}" if seen.until else "-"
    return f"until {until} · {feed.sent:,} readings sent · {seen.rows:,} rows"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
