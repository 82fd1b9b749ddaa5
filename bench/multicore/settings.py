"""The settings of table 16 with every topology: events a second, and latency at full load."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.multicore import pictures
from bench.multicore.streams import HASH, PANE_BASED, RR, RRCP, TOPOLOGIES, Setting, drive
from bench.report import Sheet

Figures = dict[str, Any]

# Events and the length of batches, without panes and with them: enough events for a run of about a
# second, in batches that outweigh the cost of a message, and many more batches than PUs.
SIZES: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
    HASH.name: ((40_000, 1000), (40_000, 1000)),
    RRCP.name: ((2000, 100), (500_000, 5000)),
    RR.name: ((20_000, 1000), (100_000, 1000)),
}


def events_of(setting: Setting, topology: str, quick: bool) -> tuple[int, int]:
    """How many events, and how many in a batch: topologies without panes have more to do."""
    events, length = SIZES[setting.name][topology in PANE_BASED]
    return max(length, events // 10) if quick else events, length


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Events a second and latency, by setting, topology and number of PUs."""
    figures: Figures = {}
    sheets = []
    for setting in (HASH, RRCP, RR):
        figures[setting.name] = {}
        sections = []
        for topology in TOPOLOGIES:
            found: dict[int, dict[str, float]] = {}
            for workers in (1, 2) if quick else (1, 2, 4):
                batches = setting.batches(*events_of(setting, topology, quick))
                drive(topology, setting, workers, batches[:2])  # compiles
                driven = drive(topology, setting, workers, batches)
                events = sum(map(len, batches))
                found[workers] = {
                    "events/s": events / driven.seconds,
                    "latency": float(np.median(driven.latencies)),
                }
            figures[setting.name][topology] = found
            cells = [f"{row['events/s']:,.0f}" for row in found.values()]
            cells += [f"{row['latency'] * 1e3:,.1f}" for row in found.values()]
            sections.append([topology, *cells])
        asked = list(found)
        headings = ("contestant", *(f"{p} PU: events/s" for p in asked))
        headings += tuple(f"{p} PU: ms" for p in asked)
        sheets.append(Sheet(setting.name, headings, [sections]))
    return figures, sheets


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """Panes pay off where windows overlap a lot."""
    found = figures[RRCP.name]
    for workers in found["pane_line"]:
        others = max(
            row[workers]["events/s"] for name, row in found.items() if name not in PANE_BASED
        )
        for name in PANE_BASED:
            ratio = found[name][workers]["events/s"] / others
            yield (
                ratio >= 50,
                f"{name}, {workers} PU: {ratio:.0f} times the best without panes (50)",
            )


def draw(figures: Figures) -> None:
    """Events a second by PUs."""
    pictures.draw_settings(figures)
