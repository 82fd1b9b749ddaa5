"""The root's windows a second, by the nodes below it.

Reports of child nodes are made beforehand, written as bytes. The root reads them, takes them and
gives the rows, in one thread; its log and its sockets are left out. *Incoming* are the windows in
reports, one for each child node; *rows* are what becomes of them.

In a running tree a report holds the window that has just closed; a root that was away for a while
gets reports of many windows. For median, slices hold 1,000 events each, as in "Disco": child nodes
are asked for the values around the median, and what they answer is part of the root's work.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from bench.edge import pictures
from bench.edge.counted import CountedTree
from bench.edge.processes import flat
from bench.edge.stream import AGGREGATES, Feed, asked
from bench.report import Sheet
from paneflow.engines.edge.question import Question

Figures = dict[str, Any]
CHILDREN = (1, 4, 16, 64)
REPORTS = {1: 40, 100: 8}
"""How many reports of each child there are, by the windows in a report."""
EVENTS = {"max": 10, "avg": 10, "median": 1_000}
"""Events of a child in a window."""


def windows_per_second(aggregate: str, children: int, in_a_report: int, reports: int) -> float:
    """Incoming windows that a root takes in a second of its time, in the median step."""
    each = EVENTS[aggregate]
    feeds = [Feed(each * in_a_report, each, seed=seed) for seed in range(children)]
    tree = CountedTree(Question(asked(aggregate), feeds[0].schema), flat(children))
    steps = []
    for number in range(reports):
        for leaf, feed in zip(tree.leaves, feeds, strict=True):
            tree.push(leaf, feed.batch(number))
        before = tree.seconds["root"]
        tree.settle()
        steps.append(tree.seconds["root"] - before)
    tree.close()
    rows = sum(rows.num_rows for rows in tree.rows)
    assert rows == reports * in_a_report, "every window has a row"
    # In the first step code is compiled, and no window closes before the second.
    return children * in_a_report / statistics.median(steps[2:])


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Windows a second for every aggregate and number of nodes below."""
    figures: Figures = {}
    for many, reports in REPORTS.items():
        for aggregate in AGGREGATES:
            figures.setdefault(str(many), {})[aggregate] = {
                children: windows_per_second(aggregate, children, many, reports)
                for children in (CHILDREN[:2] if quick else CHILDREN)
            }
    return figures, [sheet(figures)]


def sheet(figures: Figures) -> Sheet:
    """Thousands of windows a second."""
    counts = list(figures["1"]["max"])
    sections = [
        [
            [f"{aggregate}, {many} in a report", *(f"{rate / 1e3:,.1f}" for rate in row.values())]
            for aggregate, row in found.items()
        ]
        for many, found in figures.items()
    ]
    headings = ("contestant", *(f"{count} below" for count in counts))
    return Sheet("incoming windows that a root takes: thousands a second", headings, sections)


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """As many as the root of "Disco" with 16 children."""
    for many, found in figures.items():
        rate = max(found["max"].values())
        yield rate >= 200_000, f"max: {rate:,.0f} windows/s, {many} in a report (200,000)"


def draw(figures: Figures) -> None:
    """Windows a second by the nodes below."""
    pictures.draw_root(figures)
