"""Latency at a quarter of the load that a topology sustains: 4 PUs, batches of 100 events.

A percentile near the end is that of the machine as much as of the program: on a busy one a thread
that only sleeps wakes up milliseconds late. So every topology runs several times, and the run with
the least 99th percentile counts; the worst is shown beside it. What the machine does on its own is
the first line: how late a thread wakes up that sleeps as long as a feeder between two batches.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.multicore import pictures
from bench.multicore.streams import CHEAP, TOPOLOGIES, drive
from bench.report import Sheet

WORKERS, LENGTH, RUNS = 4, 100, 3
PROMISED = ("handshake", "round_robin", "pane_line")
Figures = dict[str, Any]


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Milliseconds from the push of the event that ends a window to the window's row."""
    figures: Figures = {}
    floor = _percentiles([overslept() for _ in range(200 if quick else 1000)])
    rows = [["asleep", "", *(f"{ms:.2f}" for ms in floor), ""]]
    batches = CHEAP.batches(20_000 if quick else 100_000, LENGTH)
    for topology in TOPOLOGIES:
        drive(topology, CHEAP, WORKERS, batches[:20])
        full = drive(topology, CHEAP, WORKERS, batches)
        sustained = sum(map(len, batches)) / full.seconds
        runs = sorted(
            (
                _percentiles(
                    drive(topology, CHEAP, WORKERS, batches, pace=4 * LENGTH / sustained).latencies
                )
                for _ in range(RUNS)
            ),
            key=lambda run: run[1],
        )
        p50, p99, worst = runs[0]
        figures[topology] = {"events/s": sustained / 4, "p50": p50, "p99": p99, "max": worst}
        cells = [f"{sustained / 4:,.0f}", f"{p50:.2f}", f"{p99:.2f}", f"{worst:.2f}"]
        rows.append([topology, *cells, f"{runs[-1][1]:.2f}"])
    headings = ("contestant", "events/s", "p50 ms", "p99 ms", "max ms", "p99 of the worst run")
    return figures, [Sheet(f"{CHEAP.name}: latency at a quarter of full load", headings, [rows])]


def overslept() -> float:
    """Seconds that a thread is late which sleeps for two milliseconds."""
    before = time.perf_counter()
    time.sleep(0.002)
    return time.perf_counter() - before - 0.002


def _percentiles(seconds: list[float]) -> tuple[float, float, float]:
    p50, p99, worst = np.percentile(np.array(seconds) * 1e3, [50, 99, 100])
    return float(p50), float(p99), float(worst)


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """Lines answer at once."""
    for name in PROMISED:
        p99 = figures[name]["p99"]
        yield p99 < 5, f"{name}: 99th percentile of latency is {p99:.2f} ms (5)"


def draw(figures: Figures) -> None:
    """Latency by topology."""
    pictures.draw_latency(figures)
