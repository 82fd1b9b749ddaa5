"""Latency of windows in a real tree, from the time of their last event until the root has the row.

Follows section 5.1 of "Disco": events are made at a fixed rate by one thread and sent by another,
with a queue between them, one pair of threads for each child node. A load is sustainable if the
queue does not grow; the highest of a few such loads is 100 %. Windows are one second long, of max.

A row needs more than the window's last event: events are sent every 5 ms, and only the next ones
show that a window is over; and a node waits 20 ms, its linger, for more that may go in the same
message. One line shows trees that wait 1 ms.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bench.edge import pictures
from bench.edge.pacing import CHUNK, Paced
from bench.edge.processes import RunningTree, flat, pushed_through
from bench.edge.stream import GOALS, SECOND, Feed, asked
from bench.report import Sheet
from paneflow.engines.edge.running.pace import Pace

Figures = dict[str, Any]
LOADS = (0.25, 0.5, 0.75, 1.0)
STEPS = (0.9, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1)
"""Shares of the events that were taken as fast as possible: which of them is sustainable?"""
MOST_WAITING = 8 << 20
"""Bytes that a sensor may have sent ahead: whatever waits is to wait in the queue."""
SETTLED = 2
"""Windows at the start of a run are not counted."""


@dataclass(frozen=True)
class Setup:
    """A tree whose latency is measured."""

    children: int
    linger: float = 0.02
    central: bool = False
    """All sensors push to one child node."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        count = "1 child" if self.children == 1 else f"{self.children} children"
        linger = f", {self.linger * 1e3:.0f} ms linger" if self.linger != Pace().linger else ""
        return f"{count}{', centralised' if self.central else ''}{linger}"


SETUPS = (
    Setup(1),
    Setup(1, linger=0.001),
    Setup(2),
    Setup(4),
    Setup(4, central=True),
)


@dataclass(frozen=True)
class Held:
    """A run at a fixed load."""

    latencies: list[float]
    sustainable: bool


def hold(setup: Setup, rate: float, seconds: float) -> Held:
    """Push events at a rate; one second more lets the last windows close."""
    each = max(round(rate / setup.children * CHUNK), 1)
    feeds = [Feed(each, round(each / CHUNK), seed=seed) for seed in range(setup.children)]
    pace = Pace(linger=setup.linger)
    nodes = 1 if setup.central else setup.children
    with RunningTree(asked("max"), feeds[0].schema, flat(nodes), pace=pace) as tree:
        sensors = [
            tree.sensor(tree.leaves[k % nodes], f"sensor-{k}", MOST_WAITING)
            for k in range(len(feeds))
        ]
        begin = (int(time.time()) + 2) * SECOND
        paced = [Paced(feed, sensor, seconds) for feed, sensor in zip(feeds, sensors, strict=True)]
        threads = [threading.Thread(target=one.run, args=(begin,)) for one in paced]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for sensor in sensors:
            sensor.end()
        last = begin + round(seconds * SECOND)
        tree.wait(last - 1)
        for sensor in sensors:
            sensor.close()
    ends = [
        (when, end / SECOND)
        for when, rows in tree.rows.seen
        for end in rows["end"].cast(pa.int64()).to_pylist()
        # The last windows close because the stream ends, not because time goes on.
        if end < last
    ]
    latencies = [when - end for when, end in ends if end > begin / SECOND + SETTLED]
    return Held(latencies, all(one.sustainable for one in paced))


def sustained(setup: Setup, seconds: float, steps: tuple[float, ...] = STEPS) -> float:
    """The highest load among some that is sustainable, in events a second."""
    feeds = [Feed(100_000, GOALS["max"] // setup.children, seed=k) for k in range(setup.children)]
    batches = max(2, GOALS["max"] // setup.children // 100_000)
    through = pushed_through(asked("max"), feeds, batches, 1 if setup.central else None)
    fastest = through.events_per_second
    for share in steps[:-1]:
        if hold(setup, share * fastest, seconds).sustainable:
            return share * fastest
    return steps[-1] * fastest


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Latencies of all trees, by load."""
    figures: Figures = {}
    seconds = 5 if quick else 12
    for setup in SETUPS[:2] if quick else SETUPS:
        # With another linger the same load is held, so that only latencies differ.
        same = figures.get(Setup(setup.children, central=setup.central).name)
        full = (
            same["sustained"] if same else sustained(setup, seconds, STEPS[-2:] if quick else STEPS)
        )
        loads: dict[float, dict[str, float]] = {}
        for load in LOADS[:2] if quick else LOADS:
            found = np.array(hold(setup, load * full, seconds).latencies) * 1e3
            loads[load] = {
                "mean": float(found.mean()),
                "deviation": float(found.std()),
                "max": float(found.max()),
            }
        figures[setup.name] = {"sustained": full, "loads": loads}
    return figures, [sheet(figures)]


def sheet(figures: Figures) -> Sheet:
    """Milliseconds by load."""
    loads = list(next(iter(figures.values()))["loads"])
    rows = [
        [name, f"{found['sustained'] / 1e6:,.1f}"]
        + [f"{at['mean']:,.1f} ± {at['deviation']:,.1f}" for at in found["loads"].values()]
        + [f"{at['max']:,.0f}" for at in found["loads"].values()]
        for name, found in figures.items()
    ]
    headings = ["contestant", "100 %, million events/s"]
    headings += [f"{load:.0%}: ms" for load in loads] + [f"{load:.0%}: most" for load in loads]
    return Sheet("latency of windows of one second, by load", headings, [rows])


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """Latency does not grow before the load is high."""
    for name, found in figures.items():
        means = [at["mean"] for load, at in found["loads"].items() if load <= 0.75]
        most = 10 + 1e3 * (0.001 if "1 ms" in name else Pace().linger)
        mean = statistics.fmean(means)
        yield mean <= most, f"{name}: {mean:.1f} ms up to 75 % of the load (10 and the linger)"


def draw(figures: Figures) -> None:
    """Latency by load."""
    pictures.draw_latency(figures)
