"""Bytes between the nodes for 100 million events, by the height of the tree and by query.

Eight child nodes take the events of 100 seconds; on every level above them are eight merging nodes,
each with one node below it, and then the root. A height of two is child nodes and the root. Nodes,
messages and compression are the real ones, in one process. What is counted is all that goes over a
connection, up and down, acknowledgements and the heads of ZeroMQ's frames included; not counted are
heartbeats, which do not depend on the events, and TCP.

*Centralised* is a tree of the same nodes with a query that sends all events to the root, a delta
window. These bytes grow with the events and nothing else, so they are measured over a tenth of
them, and multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import paneflow as pf
from bench.edge import pictures
from bench.edge.counted import CountedTree, levels
from bench.edge.stream import AGGREGATES, Feed, asked
from bench.report import Sheet
from paneflow import windows as W
from paneflow.engines.edge.question import Question

Figures = dict[str, Any]
CHILDREN = 8
HEIGHTS = (2, 3, 4, 5)
SECONDS = 100
EVENTS = 100_000_000
BATCHES = 5
"""Batches of a child in a second."""
EVENT_BYTES = 16
COUNTS = (10_000, 100_000)
CENTRALISED = asked("max", windows=W.delta("ts", "1 second", "1 second"))


def queries() -> dict[str, pf.Query]:
    """What is asked, by name."""
    found = {name: asked(name) for name in AGGREGATES}
    return found | {counting(size): asked("max", windows=W.count(size)) for size in COUNTS}


def counting(size: int) -> str:
    """What a query of count windows is called."""
    return f"max of count({size:,})"


def by_level(question: Question, events: int, seconds: int) -> list[int]:
    """Bytes that go up and down beyond the nodes of each level, the child nodes first."""
    rate = events // CHILDREN // seconds
    feeds = [Feed(rate // BATCHES, rate, seed=seed) for seed in range(CHILDREN)]
    tree = CountedTree(question, levels(HEIGHTS[-1], CHILDREN))
    for number in range(seconds * BATCHES):
        for leaf, feed in zip(tree.leaves, feeds, strict=True):
            tree.push(leaf, feed.batch(number))
        tree.settle()
    tree.close()
    found = [0] * (HEIGHTS[-1] - 1)
    for name in tree.above:
        found[tree.level(name)] += tree.up[name] + tree.down[name]
    return found


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Bytes of every query, distributed and centralised."""
    events, seconds = (EVENTS // 50, SECONDS // 50) if quick else (EVENTS, SECONDS)
    schema = Feed(1, 1).schema
    figures: Figures = {"events": events, "seconds": seconds, "distributed": {}}
    for name, query in queries().items():
        figures["distributed"][name] = by_level(Question(query, schema), events, seconds)
    tenth = max(seconds // 10, 1)
    part = by_level(Question(CENTRALISED, schema), events * tenth // seconds, tenth)
    figures["centralised"] = [size * seconds // tenth for size in part]
    return figures, [sheet(figures)]


def sheet(figures: Figures) -> Sheet:
    """Megabytes by height."""
    raw = figures["events"] * EVENT_BYTES
    curves = figures["distributed"] | {"centralised": figures["centralised"]}
    rows = [
        [
            name,
            f"{found[0] / 1e3:,.0f}",
            f"{found[0] / raw:.3%}",
            *(f"{sum(found[: height - 1]) / 1e6:,.2f}" for height in HEIGHTS),
        ]
        for name, found in curves.items()
    ]
    headings = ("contestant", "KB a level", "of the events", *(f"height {h}, MB" for h in HEIGHTS))
    title = f"bytes beyond {CHILDREN} child nodes: {figures['events']:,} events of 16 bytes"
    return Sheet(title, headings, [rows])


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """Few bytes beyond the child nodes."""
    raw = figures["events"] * EVENT_BYTES
    most = max(figures["distributed"]["max"])
    per_level = most * SECONDS / figures["seconds"]
    yield per_level < 200_000, f"max: {per_level / 1e3:.0f} KB a level of eight nodes (200)"
    for name, share in (("median", 0.05), *((counting(size), 0.02) for size in COUNTS)):
        found = figures["distributed"][name][0] / raw
        yield found < share, f"{name}: {found:.2%} of the events' bytes ({share:.0%})"


def draw(figures: Figures) -> None:
    """Bytes by height."""
    pictures.draw_traffic(figures)
