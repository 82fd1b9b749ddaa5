"""Pictures of the merging benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from bench.canvas import opened, saved

COLOURS = {
    "recalculate": "#bbbbbb",
    "two_stacks": "#e08e0b",
    "two_stacks_lite": "#f3c677",
    "daba": "#1b7f5c",
    "daba_lite": "#7cc6a4",
    "slick_deque": "#8d6a9f",
    "flat_fit": "#5b8fb9",
    "flat_fat": "#30638e",
    "sba": "#e4929d",
    "pba": "#d1495b",
    "fiba": "#6b4f2c",
    "columns (sba)": "#d1495b",
    "pandas": "#777777",
    "polars": "#444444",
    "duckdb": "#c9b458",
    "memcpy": "#000000",
    "floor": "#999999",
}
DASHED = ("columns (sba)", "pandas", "polars", "duckdb", "memcpy", "floor")
Curves = Mapping[str, Mapping[int, float]]


def _plot(panel: Any, name: str, points: Sequence[tuple[float, float]], **options: Any) -> None:
    panel.plot(
        [x for x, _ in points],
        [y for _, y in points],
        color=COLOURS[name],
        linestyle="--" if name in DASHED else "-",
        linewidth=2.2 if name in ("sba", "pba", "columns (sba)") else 1.4,
        label=name,
        **options,
    )


def _powers(panel: Any) -> None:
    """Powers of two along x."""
    panel.set_xscale("log", base=2)


def _plain(axis: Any) -> None:
    """Plain numbers instead of powers of ten."""
    axis.set_major_locator(LogLocator(base=10))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def draw_throughput(figures: Mapping[str, Curves]) -> None:
    """Grids (i) to (iii)."""
    picture, panels = opened(3, 4.6)
    for panel, grid in zip(panels, ("range", "slide", "minutes"), strict=True):
        for name, row in figures[grid].items():
            _plot(panel, name, [(x, row[x]) for x in sorted(row)])
        panel.set_yscale("log")
        _plain(panel.yaxis)
    _powers(panels[0])
    panels[0].set(xlabel="slices in a window, slide 1", ylabel="million slices a second")
    panels[1].set(xlabel="slide, in slices, range 2^17")
    panels[2].set(xlabel="minutes in a window, slide 10 ms")
    for panel, title in zip(panels, ("by range", "by slide", "time windows"), strict=True):
        panel.set_title(f"max {title}", loc="left", fontsize=10)
    saved(picture, panels, "merging-throughput", 8)


def draw_latency(curves: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """The share of slides that take at least as long, by nanoseconds."""
    picture, (panel,) = opened(1, 8)
    for name in ("two_stacks", "daba", "daba_lite", "sba", "pba", "floor"):
        _plot(panel, name, curves[name])
    panel.set(xscale="log", yscale="log", xlabel="nanoseconds", ylabel="share of slides as slow")
    _plain(panel.xaxis)
    panel.axhline(1e-4, color="#999999", linewidth=0.8, linestyle=":")
    panel.text(panel.get_xlim()[1], 1.15e-4, "99.99th percentile", ha="right", fontsize=8)
    panel.set_title("max over 16,384 slices: latency of a slide", loc="left", fontsize=10)
    saved(picture, [panel], "merging-latency", 6)


def draw_handover(figures: Mapping[str, Any]) -> None:
    """How much PBA gains over SBA, by range and by cost of a combine."""
    picture, panels = opened(2, 5)
    for what, ranges in figures["range"].items():
        points = [(size, row["pba"] / row["sba"]) for size, row in ranges.items()]
        panels[0].plot([x for x, _ in points], [y for _, y in points], marker="o", label=what)
    _powers(panels[0])
    panels[0].set(xlabel="slices in a window", ylabel="PBA / SBA", ylim=(0, 1.5))
    panels[1].plot(
        [point["ns"] for point in figures["cost"]],
        [point["ratio"] for point in figures["cost"]],
        marker="o",
        color="#333333",
        label="square roots, range 2^16",
    )
    panels[1].set(xlabel="nanoseconds of a combine", ylim=(0, 1.5))
    for panel in panels:
        panel.axhline(1, color="#999999", linewidth=0.8)
        panel.axhline(24 / 17, color="#999999", linewidth=0.8, linestyle=":")
    panels[0].set_title("by range", loc="left", fontsize=10)
    panels[1].set_title("by cost of a combine", loc="left", fontsize=10)
    saved(picture, panels, "merging-handover", 3)


def draw_out_of_order(figures: Mapping[str, Curves]) -> None:
    """Grids (v) and (vi)."""
    picture, panels = opened(2, 5)
    for name, row in figures["distance"].items():
        _plot(panels[0], name, list(row.items()), marker="o", markersize=4)
    for name, row in figures["evictions"].items():
        _plot(panels[1], name, list(row.items()), marker="o", markersize=4)
    panels[0].set_xscale("symlog", base=2, linthresh=1)
    distances = (0, 1, 16, 256, 4096, 65_536)
    panels[0].set_xticks(distances, [f"{d:,}" for d in distances])
    panels[0].set(
        xlabel="entries newer than the one that comes",
        ylabel="million slides a second",
        ylim=(0, None),
    )
    _powers(panels[1])
    panels[1].set_yscale("log")
    _plain(panels[1].yaxis)
    panels[1].set(xlabel="entries that leave at once", ylabel="nanoseconds each")
    panels[0].set_title("out of order, 2^17 entries", loc="left", fontsize=10)
    panels[1].set_title("leaving in bulk, 2^18 entries", loc="left", fontsize=10)
    saved(picture, panels, "merging-out-of-order", 6)
