"""A whole tree on this machine: events a second with 1 to 8 child nodes.

Every child node is a process with a sensor of its own, which pushes as fast as the child takes it.
*Centralised*: all sensors push to a single child node, so that all events are sent to one process
and cut there.

All processes share the cores of this machine, the sensors too, so rates stop growing where the
cores are busy. What more machines would do is told by the processor's time of the nodes: it says
how many events a second one core of a child sustains, and whether that changes with their number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from bench.edge import pictures
from bench.edge.processes import Through, pushed_through
from bench.edge.stream import AGGREGATES, GOALS, Feed, asked
from bench.report import Sheet

Figures = dict[str, Any]
CHILDREN = (1, 2, 4, 8)
LENGTH = 100_000
SECONDS = 4
"""Seconds of event time, at the rate that one child is to reach, for all child nodes together."""


def measure(aggregate: str, children: int, central: bool, share: float) -> Through:
    """A run of a tree."""
    rate = GOALS[aggregate] // children
    feeds = [Feed(LENGTH, rate, seed=seed) for seed in range(children)]
    batches = max(2, int(SECONDS * rate * share) // LENGTH)
    return pushed_through(asked(aggregate), feeds, batches, 1 if central else None)


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Rates of all trees."""
    figures: Figures = {}
    for aggregate in AGGREGATES:
        for title, central in (("distributed", False), ("centralised", True)):
            found = figures.setdefault(aggregate, {})[title] = {}
            for children in CHILDREN[:2] if quick else CHILDREN:
                through = measure(aggregate, children, central, 0.2 if quick else 1.0)
                found[children] = {
                    "events/s": through.events_per_second,
                    "events/s of a core": through.events / max(through.processor, 1e-3),
                }
    return figures, [sheet(figures)]


def sheet(figures: Figures) -> Sheet:
    """Millions of events a second."""
    counts = list(next(iter(figures.values()))["distributed"])
    sections = [
        [
            [f"{aggregate}, {title}"]
            + [f"{row['events/s'] / 1e6:,.1f}" for row in found.values()]
            + [f"{row['events/s of a core'] / 1e6:,.1f}" for row in found.values()]
            for title, found in kinds.items()
        ]
        for aggregate, kinds in figures.items()
    ]
    headings = ["contestant", *(f"{count} children" for count in counts)]
    headings += [f"a core's, {count}" for count in counts]
    title = f"a tree on {os.cpu_count()} cores: million events/s, and those of one core of a child"
    return Sheet(title, headings, sections)


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """A child costs the same, however many there are."""
    for aggregate, kinds in figures.items():
        found = list(kinds["distributed"].values())
        one, most = found[0]["events/s of a core"], found[-1]["events/s of a core"]
        share = most / one
        text = f"{aggregate}: a core takes {share:.2f} of the events with {CHILDREN[-1]} children"
        yield share >= 0.7, f"{text} (0.7)"


def draw(figures: Figures) -> None:
    """Rates by the number of child nodes."""
    pictures.draw_children(figures)
