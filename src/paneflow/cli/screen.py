"""The picture of a tree as a table: one line for each node, indented by its depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from paneflow.engines.edge.watching.picture import NodeLine

COLUMNS = (
    *("role", "events/s", "in/s", "out/s", "events"),
    *("latency", "lag", "children", "waiting", "heard"),
)
LEFT_OUT = ("waiting", "events", "in/s", "role", "latency", "out/s", "children")
"""Columns that a narrow terminal does without, the first of them first."""
BETWEEN = 2
"""Blanks between columns."""
SHORTEST, LONGEST = 8, 30
"""Characters of a name and its guide: always shown, and shown rather than more columns."""
NOTHING = "·"


def picture_of(lines: Sequence[NodeLine], width: int) -> Table:
    """A table of all nodes, as wide as the terminal allows, with those that are dead in red."""
    dead = sum(not line.alive for line in lines)
    table = Table(
        title=f"{len(lines)} nodes, {f'{dead} dead' if dead else 'all alive'}",
        title_justify="left",
        title_style="bold red" if dead else "bold green",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        padding=(0, BETWEEN - 1, 0, 0),  # and a line of the box, which is blank
    )
    nodes = _named(lines)
    cells = [_cells(line) for line in lines]
    chosen = _fitting(cells, min(LONGEST, max(map(len, nodes), default=0)), width)
    table.add_column("node", no_wrap=True)
    for name in chosen:
        justify: JustifyMethod = "left" if name == "role" else "right"
        table.add_column(name, justify=justify, no_wrap=True)
    room = max(SHORTEST, width - sum(chosen.values()) - BETWEEN * len(chosen))
    for line, node, row in zip(lines, nodes, cells, strict=True):
        node.stylize("bold" if line.alive else "red", len(node) - len(line.node))
        node.truncate(room, overflow="ellipsis")
        shown = [row[name] for name in chosen]
        table.add_row(node, *shown, style="" if line.alive else "red")
    return table


def _named(lines: Sequence[NodeLine]) -> list[Text]:
    """The names of nodes, indented."""
    depths = guides([line.depth for line in lines])
    return [
        Text(guide, style="dim").append(line.node)
        for line, guide in zip(lines, depths, strict=True)
    ]


def _fitting(rows: Sequence[Mapping[str, str]], first: int, width: int) -> dict[str, int]:
    """The columns that fit beside a first one of some width, and their own widths."""
    needed = {name: max(len(name), *(len(row[name]) for row in rows), 0) for name in COLUMNS}
    for name in LEFT_OUT:
        if first + sum(needed.values()) + BETWEEN * len(needed) <= width:
            break
        del needed[name]
    return needed


def guides(depths: Sequence[int]) -> list[str]:
    """What stands before the names of nodes, so that one sees which is below which.

    >>> for guide in guides([0, 1, 2, 1]):
    ...     print(f"{guide}node")
    node
    ├─ node
    │  └─ node
    └─ node
    """
    found = []
    for at, depth in enumerate(depths):
        guide = ""
        for level in range(1, depth + 1):
            more = _goes_on(depths, at, level)
            if level == depth:
                guide += "├─ " if more else "└─ "
            else:
                guide += "│  " if more else "   "
        found.append(guide)
    return found


def _goes_on(depths: Sequence[int], at: int, level: int) -> bool:
    """Whether another node of a level follows before its parent's nodes end."""
    for depth in depths[at + 1 :]:
        if depth <= level:
            return depth == level
    return False


def _cells(line: NodeLine) -> dict[str, str]:
    """What is shown of a node; of a dead one only what does not pass."""
    told = line.metrics
    cells = dict.fromkeys(COLUMNS, NOTHING)
    cells |= {
        "role": line.role,
        "events": counted(told.get("events", 0)),
        "heard": _heard(line),
    }
    if line.alive:
        children = (
            f"{told.get('alive', 0)} of {told['children']}" if "children" in told else NOTHING
        )
        cells |= {
            "events/s": counted(line.events_per_second),
            "in/s": sized(line.in_per_second),
            "out/s": sized(line.out_per_second),
            "latency": lasting(told.get("latency")),
            "lag": lasting(told.get("lag")),
            "children": children,
            "waiting": sized(told.get("queued_bytes", 0)),
        }
    return cells


def _heard(line: NodeLine) -> str:
    if line.age is None:
        return "never"
    return "now" if line.alive else f"{lasting(line.age)} ago"


def counted(number: float) -> str:
    """A number of things, in at most six characters.

    >>> counted(0), counted(999), counted(20_400_000), counted(0.25)
    ('·', '999', '20.4M', '0.2')
    """
    return _scaled(number, ("", "k", "M", "G", "T"))


def sized(number: float) -> str:
    """A number of bytes.

    >>> sized(69.8), sized(1_300), sized(0)
    ('70B', '1.3kB', '·')
    """
    return _scaled(round(number), ("B", "kB", "MB", "GB", "TB"))


def lasting(seconds: float | None) -> str:
    """A length of time, to about two digits.

    >>> lasting(0.0042), lasting(2.51), lasting(90), lasting(7_300), lasting(None)
    ('4.2ms', '2.5s', '1.5min', '2.0h', '·')
    """
    if seconds is None:
        return NOTHING
    for most, size, unit in ((1, 1e-3, "ms"), (60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if abs(seconds) < most:
            return _number(seconds / size, unit)
    return _number(seconds / 86400, "d")


def _scaled(number: float, units: Sequence[str]) -> str:
    if not number:
        return NOTHING
    place = 0
    while abs(number) >= 999.5 and place < len(units) - 1:
        number, place = number / 1000, place + 1
    return _number(number, units[place])


def _number(value: float, unit: str) -> str:
    whole = abs(value) >= 99.95 or value == int(value)
    return f"{value:.0f}{unit}" if whole else f"{value:.1f}{unit}"
