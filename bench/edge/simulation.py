"""Trees of up to 100,000 nodes, simulated: latency, bytes and the load of the root.

Child nodes report the maximum of every second, and rows are final when the slowest of them has
been heard. The simulation is of single events; what it assumes stands in `bench/edge/simulated`:

- Nodes have a core of their own and work in turns, as the real loop does. What their work takes
  was measured on this machine just before: state machine, log and sockets of real nodes.
- Links are TCP connections: latency by a lognormal distribution, a bandwidth, and packets that get
  lost, are sent again after 0.2 s, and hold up what comes behind them. *Mobile* has 30 ms, 250 kB/s
  and 1 % of losses below the first merging nodes, and leased lines of 5 ms above; *one building*
  has 0.3 ms and no losses.
- Sensors send every 10 ms; clocks of child nodes differ by 2 ms; no node dies. Cutting events
  costs a child no time: it has the rest of the second for that.
- Heartbeats are not among the events that are simulated. Their bytes and the time to read them
  were measured on heartbeats of real metrics, and are shown next to the rest.

What nodes say, and how long it is, was measured on the real machines as well. With the real
machines in the place of these figures, the same simulation must come to the same result; and so
must real processes, as far as this machine has room for them. Both are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.edge import pictures
from bench.edge.simulated import checked
from bench.edge.simulated.costs import Costs, measure
from bench.edge.simulated.links import LINE, MOBILE, NEARBY, Link
from bench.edge.simulated.logic import Fitted, Logic, Real, random_of
from bench.edge.simulated.scenario import Scenario
from bench.edge.simulated.world import Outcome, World
from bench.report import Sheet

Figures = dict[str, Any]
NODES = (100, 1_000, 10_000, 100_000)
FAN_OUTS = (10, 32, 100, 316, 1_000)
SETTINGS: dict[str, tuple[Link, Link]] = {
    "mobile": (MOBILE, LINE),
    "one building": (NEARBY, NEARBY),
}
KEYS = (1, 100)
MOST_REPORTS = 300_000
REAL = ((30, 5), (100, 10), (1_000, 10))
"""Child nodes and fan-outs of trees of real machines."""
PROCESSES = ((1, 2), (3, 3), (4, 2), (6, 3), (8, 4))
"""The same of trees of real processes: 2, 4, 7, 9 and 11."""


TREES = (
    *("nodes", "fan-out", "height", "keys", "p50 ms", "max ms", "KB a window"),
    *("KB/s to the root", "root busy", "merging node busy"),
    *("heartbeats: KB/s to the root", "heartbeats: root busy"),
)
MACHINES = (
    *("contestant", "p50 ms, real machines", "figures"),
    *("bytes a window, real machines", "figures"),
)
REAL_TREES = (
    *("contestant", "p50 ms, real", "simulated"),
    *("bytes/s to the root, real", "simulated"),
)


def tree(nodes: int, fan_out: int, links: tuple[Link, Link], keys: int) -> Scenario:
    """A tree of about so many nodes."""
    children = max(nodes * (fan_out - 1) // fan_out, 1)
    windows = int(np.clip(MOST_REPORTS // nodes, 5, 100))
    return Scenario(children, fan_out, links, windows, keys)


def simulate(scenario: Scenario, logic: Logic, costs: Costs) -> Outcome:
    """Run a simulation that is the same every time."""
    return World(scenario, logic, costs, random_of(1)).run()


def row(scenario: Scenario, costs: Costs) -> dict[str, float]:
    """What is told of one tree."""
    outcome = simulate(scenario, Fitted(scenario, costs), costs)
    at_root = scenario.levels[-2]
    below = scenario.subtree(scenario.height - 2)
    beats = [
        count * costs.heartbeat(scenario.subtree(level)) / scenario.show
        for level, count in enumerate(scenario.levels[:-1])
    ]
    return {
        "nodes": scenario.nodes,
        "height": scenario.height,
        "p50": float(np.median(outcome.latencies)),
        "max": float(outcome.latencies.max()),
        "bytes": sum(outcome.sizes) / scenario.windows,
        "to root": outcome.to_root,
        "root": outcome.busy[-1],
        "merge": max(outcome.busy[:-1], default=0.0),
        "heartbeats": sum(beats),
        "heartbeats to root": beats[-1],
        "hearing": at_root * costs.hear(below) / scenario.show,
    }


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """All trees, and what there is to check them."""
    costs = measure()
    figures: Figures = {"costs": costs.told(), "trees": {}, "machines": {}, "processes": {}}
    sizes, fans = (NODES[:2], FAN_OUTS[::2]) if quick else (NODES, FAN_OUTS)
    for setting, links in SETTINGS.items():
        for keys in KEYS:
            for nodes in sizes:
                for fan_out in fans:
                    if fan_out <= nodes:
                        found = row(tree(nodes, fan_out, links, keys), costs)
                        place = figures["trees"].setdefault(setting, {}).setdefault(str(keys), {})
                        place.setdefault(str(nodes), {})[fan_out] = found
    for children, fan_out in REAL[:1] if quick else REAL:
        figures["machines"][f"{children} by {fan_out}"] = _with_machines(children, fan_out, costs)
    for children, fan_out in PROCESSES[:2] if quick else PROCESSES:
        scenario = checked.scenario(children, fan_out)
        seen = checked.real(scenario, 6 if quick else 15), checked.simulated(scenario, costs)
        figures["processes"][str(scenario.nodes)] = {
            "shape": " - ".join(map(str, reversed(scenario.levels))),
            "latency": [one.latency for one in seen],
            "to root": [one.to_root for one in seen],
        }
    return figures, sheets(figures)


def _with_machines(children: int, fan_out: int, costs: Costs) -> dict[str, list[float]]:
    """The latency and the bytes of one tree, with real machines and without."""
    scenario = Scenario(children, fan_out, SETTINGS["mobile"], windows=5, slices=10)
    real = Real(scenario)
    both = [simulate(scenario, logic, costs) for logic in (real, Fitted(scenario, costs))]
    assert real.rows == scenario.windows * scenario.slices, "every window of a key has a row"
    return {
        "latency": [float(np.median(outcome.latencies)) for outcome in both],
        "bytes": [float(sum(outcome.sizes)) / scenario.windows for outcome in both],
    }


def sheets(figures: Figures) -> list[Sheet]:
    """Trees by setting, checks, and costs."""
    made = []
    for setting, by_keys in figures["trees"].items():
        sections = [
            [_cells(found, fan_out, keys) for fan_out, found in by_fan.items()]
            for keys, by_nodes in by_keys.items()
            for by_fan in by_nodes.values()
        ]
        made.append(Sheet(f"simulated trees, {setting}", TREES, sections))
    return [*made, *_checks(figures)]


def _checks(figures: Figures) -> list[Sheet]:
    """The simulation next to what is real."""
    machines = [
        [name, *(f"{x * 1e3:,.1f}" for x in found["latency"])]
        + [f"{x:,.0f}" for x in found["bytes"]]
        for name, found in figures["machines"].items()
    ]
    processes = [
        [f"{count} processes: {found['shape']}", *(f"{x * 1e3:,.1f}" for x in found["latency"])]
        + [f"{x:,.0f}" for x in found["to root"]]
        for count, found in figures["processes"].items()
    ]
    costs = [[what, how] for what, how in figures["costs"].items()]
    return [
        Sheet("the simulation with real machines, and without", MACHINES, [machines]),
        Sheet("real processes on this machine, and the simulation", REAL_TREES, [processes]),
        Sheet("what was measured for the simulation", ("contestant", "cost"), [costs]),
    ]


def _cells(found: dict[str, float], fan_out: int, keys: str) -> list[str]:
    return [
        f"{found['nodes']:,.0f}",
        f"{fan_out:,}",
        f"{found['height']:.0f}",
        keys,
        f"{found['p50'] * 1e3:,.0f}",
        f"{found['max'] * 1e3:,.0f}",
        f"{found['bytes'] / 1e3:,.0f}",
        f"{found['to root'] / 1e3:,.1f}",
        f"{found['root']:.1%}",
        f"{found['merge']:.1%}",
        f"{found['heartbeats to root'] / 1e3:,.1f}",
        f"{found['hearing']:.1%}",
    ]


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """The simulation agrees with what is real, and the best tree of the largest size has room."""
    for name, found in figures["machines"].items():
        for what, (real, fitted) in found.items():
            off = abs(fitted / real - 1)
            yield off <= 0.05, f"{name}: {what} is {off:.1%} off that of real machines (5 %)"
    for name, found in figures["processes"].items():
        for what in ("latency", "to root"):
            real, fitted = found[what]
            off = abs(fitted / real - 1)
            yield off <= 0.25, f"{name} processes: {what} is {off:.0%} off (25 %)"
    for setting, by_keys in figures["trees"].items():
        largest = list(by_keys["1"].values())[-1]
        fan_out = min(largest, key=lambda fan: largest[fan]["max"])
        busy = max(largest[fan_out]["root"], largest[fan_out]["merge"])
        text = f"{setting}, {largest[fan_out]['nodes']:,.0f} nodes, fan-out {fan_out}"
        yield busy < 0.5, f"{text}: the busiest node is at work for {busy:.1%} of the time (50 %)"


def draw(figures: Figures) -> None:
    """Latency, bytes and load by fan-out."""
    pictures.draw_simulation(figures)
