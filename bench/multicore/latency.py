"""Latency at a quarter of the load that a topology sustains: 4 PUs, batches of 100 events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.multicore import pictures
from bench.multicore.streams import CHEAP, TOPOLOGIES, drive
from bench.report import Sheet

WORKERS, LENGTH = 4, 100
PROMISED = ("handshake", "round_robin", "pane_line")
Figures = dict[str, Any]


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Milliseconds from the push of the event that ends a window to the window's row."""
    figures: Figures = {}
    rows = []
    batches = CHEAP.batches(20_000 if quick else 100_000, LENGTH)
    for topology in TOPOLOGIES:
        drive(topology, CHEAP, WORKERS, batches[:20])
        full = drive(topology, CHEAP, WORKERS, batches)
        sustained = sum(map(len, batches)) / full.seconds
        calm = drive(topology, CHEAP, WORKERS, batches, pace=4 * LENGTH / sustained)
        p50, p99, worst = np.percentile(np.array(calm.latencies) * 1e3, [50, 99, 100])
        figures[topology] = {
            "events/s": sustained / 4,
            "p50": float(p50),
            "p99": float(p99),
            "max": float(worst),
        }
        cells = [f"{sustained / 4:,.0f}", f"{p50:.2f}", f"{p99:.2f}", f"{worst:.2f}"]
        rows.append([topology, *cells])
    headings = ("contestant", "events/s", "p50 ms", "p99 ms", "max ms")
    return figures, [Sheet(f"{CHEAP.name}: latency at a quarter of full load", headings, [rows])]


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """Lines answer at once."""
    for name in PROMISED:
        p99 = figures[name]["p99"]
        yield p99 < 5, f"{name}: 99th percentile of latency is {p99:.2f} ms (5)"


def draw(figures: Figures) -> None:
    """Latency by topology."""
    pictures.draw_latency(figures)
