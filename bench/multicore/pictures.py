"""Pictures of the multicore benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.canvas import opened, saved

COLOURS = {
    "handshake": "#e08e0b",
    "round_robin": "#30638e",
    "hash_once": "#f3c677",
    "round_robin_cyclic": "#5b8fb9",
    "pane_ring": "#e4929d",
    "pane_line": "#d1495b",
}


def draw_settings(figures: Mapping[str, Any]) -> None:
    """Events a second and latency by PUs: the thesis' figures 21 to 26."""
    picture, panels = opened(2 * len(figures), 3.2)
    for k, (setting, found) in enumerate(figures.items()):
        for name, row in found.items():
            for panel, what, unit in (
                (panels[2 * k], "events/s", 1),
                (panels[2 * k + 1], "latency", 1e3),
            ):
                points = [value[what] * unit for value in row.values()]
                panel.plot(list(row), points, color=COLOURS[name], marker="o", label=name)
                panel.set(yscale="log", xlabel="PUs", xticks=list(row))
        panels[2 * k].set_title(f"{setting}: events/s", loc="left", fontsize=9)
        panels[2 * k + 1].set_title("median latency, ms", loc="left", fontsize=9)
    saved(picture, [panels[0]], "multicore-settings", 6)


def draw_latency(figures: Mapping[str, Any]) -> None:
    """Percentiles of latency at a quarter of full load."""
    picture, (panel,) = opened(1, 8)
    for k, (name, row) in enumerate(figures.items()):
        for shift, what in enumerate(("p50", "p99", "max")):
            panel.bar(
                k + 0.27 * (shift - 1), row[what], 0.25, color=COLOURS[name], alpha=1 - 0.3 * shift
            )
    panel.axhline(5, color="#999999", linewidth=0.8, linestyle=":")
    panel.set_xticks(range(len(figures)), list(figures), fontsize=8)
    panel.set(ylabel="milliseconds: p50, p99, max")
    saved(picture, [panel], "multicore-latency", 6)


def draw_pushes(figures: Mapping[str, Any]) -> None:
    """Events a second by the length of a batch, next to the same events as a table."""
    picture, (panel,) = opened(1, 8)
    lengths = [int(length) for length in figures]
    for what, label, name in (
        ("events/s", "pushed", "pane_line"),
        ("table", "over a table", "round_robin"),
    ):
        points = [row[what] for row in figures.values()]
        panel.plot(lengths, points, color=COLOURS[name], marker="o", label=label)
    panel.set(xscale="log", yscale="log", xlabel="events in a batch", ylabel="events/s")
    saved(picture, [panel], "multicore-pushes", 2)


def draw_makespan(figures: Mapping[str, Any]) -> None:
    """The model's events a second for many PUs, with the measured ones as dots."""
    picture, panels = opened(len(figures["model"]), 4.6)
    for panel, (setting, model) in zip(panels, figures["model"].items(), strict=True):
        for name, row in model.items():
            panel.plot(list(row), list(row.values()), color=COLOURS[name], label=name)
            seen = figures["measured"][setting][name]
            panel.plot(list(seen), list(seen.values()), "o", color=COLOURS[name], markersize=4)
        panel.set_xscale("log", base=2)
        panel.set(yscale="log", xlabel="PUs, each on a core of its own", ylabel="events/s")
        panel.set_title(f"{setting}: model, and measured (dots)", loc="left", fontsize=9)
    saved(picture, [panels[0]], "multicore-makespan", 6)


def draw_trading(figures: Mapping[str, Any]) -> None:
    """Results a second by workers, and what the stream asks for."""
    picture, panels = opened(len(figures), 3.2)
    for panel, (name, row) in zip(panels, figures.items(), strict=True):
        for model, points in row["found"].items():
            colour = COLOURS["pane_line" if model == "agnostic" else "round_robin"]
            panel.plot(list(points), list(points.values()), color=colour, marker="o", label=model)
        panel.axhline(row["ideal"], color="#999999", linewidth=0.8, linestyle=":")
        most = max(row["ideal"], *(max(points.values()) for points in row["found"].values()))
        panel.set(xlabel="workers", ylim=(0, 1.08 * most), xticks=list(points))
        panel.set_title(f"{name}: results/s", loc="left", fontsize=9)
    saved(picture, [panels[0]], "multicore-trading", 6)


def draw_held(figures: Mapping[str, Any]) -> None:
    """Milliseconds of a push by what is held: for each reason to hold, the worst strategy."""
    picture, (panel,) = opened(1, 8)
    worst: dict[str, Any] = {}
    for name, found in figures.items():
        reason = name.partition(":")[0]
        if reason not in worst or found["median"][-1] > worst[reason]["median"][-1]:
            worst[reason] = found
    for number, (reason, found) in enumerate(worst.items()):
        points = [1e3 * seconds for seconds in found["median"]]
        dashes = "-" if number < 10 else "--"  # there are ten colours
        panel.plot(found["held"], points, dashes, marker="o", markersize=3, label=reason)
    panel.set(xscale="log", yscale="log", xlabel="events held", ylabel="milliseconds of a push")
    saved(picture, [panel], "multicore-held", 3)


def draw_gate(figures: Mapping[str, Any]) -> None:
    """Tuples sorted a second by the number of inputs."""
    picture, (panel,) = opened(1, 8)
    inputs = [int(count) for count in figures]
    for what, name in (
        ("T-Gate", "pane_line"),
        ("compiled heap", "round_robin"),
        ("heapq.merge", "handshake"),
    ):
        points = [row[what] for row in figures.values()]
        panel.plot(inputs, points, color=COLOURS[name], marker="o", label=what)
    panel.set(yscale="log", xlabel="inputs", ylabel="tuples a second", xticks=inputs)
    saved(picture, [panel], "multicore-gate", 3)


def draw_workers(figures: Mapping[str, Any]) -> None:
    """How many times as fast two workers are, workload by workload, from the least on."""
    picture, (panel,) = opened(1, 8)
    for shared, label, name in (
        (True, "slices that two workers share", "pane_line"),
        (False, "other workloads", "round_robin"),
    ):
        found = [row for row in figures["workloads"].values() if row["shared"] is shared]
        points = sorted(row["two"] / row["one"] for row in found)
        panel.plot(points, color=COLOURS[name], marker="o", markersize=3, label=label)
    for level in (0.9, 1.6):
        panel.axhline(level, color="#999999", linewidth=0.8, linestyle=":")
    panel.set(ylim=(0, None), xlabel="workloads", ylabel="two workers / one worker")
    saved(picture, [panel], "multicore-workers", 2)


DESIGN_COLOURS = {
    "MQ": "#999999",
    "TuML-SC": "#5b8fb9",
    "TuML-MC": "#30638e",
    "WiML": "#e08e0b",
    "WiML, slices": "#d1495b",
}


def draw_multiway(figures: Mapping[str, Any]) -> None:
    """Events a second and latency by inputs, for each query: figures 13 to 26 of the paper."""
    for what, unit, title in (("events/s", 1e-6, "million/s"), ("latency", 1e3, "latency, ms")):
        picture, panels = opened(len(figures), 2.4, lines=2)
        for panel, (query, found) in zip(panels, figures.items(), strict=True):
            for name, row in found.items():
                known = {n: value[what] for n, value in row.items() if value[what] is not None}
                points = [value * unit for value in known.values()]
                colour = DESIGN_COLOURS[name]
                panel.plot(list(known), points, color=colour, marker="o", markersize=3, label=name)
            panel.set(xlabel="inputs", xticks=list(row))
            panel.set_title(f"{query}: {title}", loc="left", fontsize=8)
            if what == "latency":
                panel.set(yscale="log")
            else:
                panel.set(ylim=(0, None))
        saved(picture, panels, f"multicore-multiway-{what.partition('/')[0]}", 5)
