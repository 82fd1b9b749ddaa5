"""Pictures of the benchmarks of the tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.canvas import opened, saved

COLOURS = {"max": "#d1495b", "avg": "#e08e0b", "median": "#30638e"}
OTHERS = ("#d1495b", "#30638e", "#e08e0b", "#5b8fb9", "#f3c677", "#999999")


def draw_child(figures: Mapping[str, Any]) -> None:
    """Events a second of one child node by keys and by windows: the node, and as a process."""
    picture, panels = opened(2, 5)
    for panel, what in zip(panels, ("keys", "windows"), strict=True):
        for aggregate, found in figures[what].items():
            for name, dashes in (("node", "-"), ("process", ":")):
                points = [row[name] / 1e6 for row in found.values() if name in row]
                if points:
                    label = f"{aggregate}, {name}"
                    panel.plot(
                        list(found),
                        points,
                        dashes,
                        color=COLOURS[aggregate],
                        marker="o",
                        label=label,
                    )
        panel.set(xscale="log", ylim=(0, None), xlabel=what, ylabel="million events/s")
    saved(picture, [panels[0]], "edge-child", 3)


def draw_children(figures: Mapping[str, Any]) -> None:
    """Events a second of a tree, and of one core of its child nodes."""
    picture, panels = opened(2, 5)
    for aggregate, kinds in figures.items():
        for title, dashes in (("distributed", "-"), ("centralised", ":")):
            found = kinds[title]
            for panel, what in zip(panels, ("events/s", "events/s of a core"), strict=True):
                points = [row[what] / 1e6 for row in found.values()]
                label = f"{aggregate}, {title}"
                panel.plot(
                    list(found), points, dashes, color=COLOURS[aggregate], marker="o", label=label
                )
                panel.set(xlabel="child nodes", ylim=(0, None), xticks=list(found))
    panels[0].set(ylabel="million events/s of the tree")
    panels[1].set(ylabel="million events/s of one core")
    saved(picture, [panels[0]], "edge-children", 3)


def draw_traffic(figures: Mapping[str, Any]) -> None:
    """Megabytes by the height of the tree."""
    picture, (panel,) = opened(1, 8)
    curves = figures["distributed"] | {"centralised": figures["centralised"]}
    for (name, found), colour in zip(curves.items(), OTHERS, strict=False):
        heights = range(2, len(found) + 2)
        points = [sum(found[: height - 1]) / 1e6 for height in heights]
        panel.plot(heights, points, color=colour, marker="o", label=name)
    panel.set(yscale="log", xlabel="height of the tree", ylabel="MB", xticks=list(heights))
    saved(picture, [panel], "edge-traffic", 5)


def draw_latency(figures: Mapping[str, Any]) -> None:
    """Mean latency by load, and its deviation."""
    picture, (panel,) = opened(1, 8)
    for (name, found), colour in zip(figures.items(), OTHERS, strict=False):
        loads = [f"{load:.0%}" for load in found["loads"]]
        means = [at["mean"] for at in found["loads"].values()]
        spread = [at["deviation"] for at in found["loads"].values()]
        panel.errorbar(loads, means, spread, color=colour, marker="o", capsize=3, label=name)
    panel.set(yscale="log", xlabel="load", ylabel="milliseconds")
    saved(picture, [panel], "edge-latency", 3)


def draw_root(figures: Mapping[str, Any]) -> None:
    """Incoming windows a second by the nodes below."""
    picture, (panel,) = opened(1, 8)
    for (many, found), dashes in zip(figures.items(), ("-", ":"), strict=True):
        for aggregate, row in found.items():
            label = f"{aggregate}, {many} in a report"
            points = list(row.values())
            panel.plot(list(row), points, dashes, color=COLOURS[aggregate], marker="o", label=label)
    panel.set(xscale="log", yscale="log", xlabel="nodes below", ylabel="windows/s")
    panel.set_xticks(list(row), [str(count) for count in row])
    saved(picture, [panel], "edge-root", 3)


def draw_simulation(figures: Mapping[str, Any]) -> None:
    """Latency, bytes to the root and its load, by nodes and fan-out, in the first setting."""
    picture, panels = opened(3, 4)
    setting, by_keys = next(iter(figures["trees"].items()))
    for (nodes, by_fan), colour in zip(by_keys["1"].items(), OTHERS, strict=False):
        fans = list(by_fan)
        label = f"{int(nodes):,} nodes"
        for panel, what, unit in (
            (panels[0], "p50", 1e3),
            (panels[1], "to root", 1e-3),
            (panels[2], "root", 1e2),
        ):
            points = [found[what] * unit for found in by_fan.values()]
            panel.plot(fans, points, color=colour, marker="o", label=label)
            panel.set(xscale="log", yscale="log", xlabel="fan-out")
    panels[0].set_title(f"{setting}: median latency, ms", loc="left", fontsize=9)
    panels[1].set_title("reports to the root, KB/s", loc="left", fontsize=9)
    panels[2].set_title("root at work, % of the time", loc="left", fontsize=9)
    saved(picture, [panels[0]], "edge-simulation", 4)
