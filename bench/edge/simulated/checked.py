"""Real trees of a few processes next to the same trees in the simulation.

All processes share this machine, and the root and the sensors are threads of one of them. Events
are few, so that processes do not wait for each other's cores.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.edge.pacing import Paced
from bench.edge.processes import RunningTree
from bench.edge.simulated.costs import Costs
from bench.edge.simulated.links import SAME_MACHINE
from bench.edge.simulated.logic import Fitted, random_of
from bench.edge.simulated.scenario import Scenario, name
from bench.edge.simulated.world import World
from bench.edge.stream import SECOND, Feed, asked
from paneflow.engines.edge.running.pace import Pace

CHUNK = 0.05
IN_A_CHUNK = 50
SETTLED = 3
"""Windows after which bytes are counted: nodes greet each other during the first."""
QUIET = 60.0
"""Seconds between heartbeats, so that none comes into the count of bytes."""


@dataclass(frozen=True)
class Seen:
    """What one tree did."""

    latency: float
    """Seconds from the end of a window to its row: the median."""
    to_root: float
    """Bytes a second that reach the root."""


def scenario(children: int, fan_out: int) -> Scenario:
    """A tree on this machine."""
    links = (SAME_MACHINE, SAME_MACHINE)
    return Scenario(children, fan_out, links, windows=100, chunk=CHUNK, skew=0.0, even=True)


def simulated(tree: Scenario, costs: Costs) -> Seen:
    """What the simulation says."""
    outcome = World(tree, Fitted(tree, costs), costs, random_of(1)).run()
    return Seen(float(np.median(outcome.latencies)), outcome.to_root)


def real(tree: Scenario, seconds: int) -> Seen:
    """What the processes do in some seconds."""
    feeds = [Feed(IN_A_CHUNK, round(IN_A_CHUNK / CHUNK), seed=k) for k in range(tree.children)]
    pace = Pace(linger=tree.linger, heartbeat=QUIET, show=QUIET, progress=QUIET)
    with RunningTree(asked("max"), feeds[0].schema, shape(tree), pace=pace) as running:
        sensors = [running.sensor(name(0, k), f"sensor-{k}") for k in range(tree.children)]
        begin = (int(time.time()) + 2) * SECOND
        # Each begins at its own time, so that they do not all show at once that a window is over.
        step = round(CHUNK * SECOND) // tree.children
        threads = [
            threading.Thread(
                target=Paced(feed, sensor, seconds, CHUNK).run, args=(begin + k * step,)
            )
            for k, (feed, sensor) in enumerate(zip(feeds, sensors, strict=True))
        ]
        for thread in threads:
            thread.start()
        running.wait(begin + SETTLED * SECOND - 1)
        before = _received(running), len(running.rows.seen)
        for thread in threads:
            thread.join()
        after = _received(running), len(running.rows.seen)
        for sensor in sensors:
            sensor.end()
            sensor.close()
        seen = running.rows.seen[before[1] : after[1]]
    latencies = [
        when - end / SECOND
        for when, rows in seen
        for end in rows["end"].cast(pa.int64()).to_pylist()
    ]
    return Seen(float(np.median(latencies)), (after[0] - before[0]) / len(latencies))


def shape(tree: Scenario) -> dict[str, list[str]]:
    """The same tree, by the names of its nodes."""
    found = {}
    for level, count in enumerate(tree.levels[1:], 1):
        for index in range(count):
            here = "root" if level == tree.height - 1 else name(level, index)
            found[here] = [name(level - 1, child) for child in tree.below(level, index)]
    return found


def _received(running: RunningTree) -> int:
    return sum(one.received_bytes for one in running.root.metrics().traffic.values())
