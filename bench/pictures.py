"""Pictures of the benchmarks over tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure as Picture

from bench.cases import OURS, Figure
from bench.contestants import ALL, CONTESTANTS

COLOURS = {
    "paneflow": "#d1495b",
    "polars": "#30638e",
    "polars, keys sorted": "#5b8fb9",
    "polars, seconds first": "#a4c3dc",
    "duckdb": "#c9b458",
    "duckdb, all rows": "#8f7a1e",
}


def draw_tables(figures: Sequence[Figure], path: Path) -> None:
    """Seconds by overlap, both logarithmic, one panel for each size."""
    matplotlib.rcParams["svg.hashsalt"] = "paneflow"
    sizes = dict.fromkeys(f.case.size for f in figures)
    across = min(2, len(sizes))
    down = -(-len(sizes) // across)
    picture = Picture(figsize=(5.2 * across, 3.6 * down + 0.6), layout="constrained")
    panels = picture.subplots(down, across, squeeze=False, sharex=True)
    for panel, size in zip(panels.flat, sizes, strict=True):
        mine = [f for f in figures if f.case.size == size]
        for name in COLOURS:
            _curve(panel, name, [f for f in mine if f.contestant == name])
        panel.set(xscale="log", yscale="log")
        panel.set_title(size, loc="left", fontsize=10)
        overlaps = sorted({f.case.overlap for f in mine})
        panel.set_xticks(overlaps, [f"{o:,}" for o in overlaps])
        panel.minorticks_off()
        panel.yaxis.set_major_formatter("{x:g}")
        panel.grid(color="#e6e6e6", linewidth=0.7)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in panels[-1]:
        panel.set_xlabel("windows that hold each event")
    for row in panels:
        row[0].set_ylabel("seconds")
    handles, names = panels.flat[0].get_legend_handles_labels()
    order = [(h, n) for n in COLOURS for h, m in zip(handles, names, strict=True) if m == n]
    picture.legend(
        [h for h, _ in order],
        [n for _, n in order],
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path, metadata={"Date": None})


def _curve(panel: Any, name: str, points: Sequence[Figure]) -> None:
    ours, colour = name == OURS, COLOURS[name]
    panel.plot(
        [f.case.overlap for f in points],
        [f.measured.seconds for f in points],
        color=colour,
        linewidth=2.4 if ours else 1.4,
        linestyle="-" if CONTESTANTS[name].rows == ALL else ":",
        zorder=3 if ours else 2,
    )
    # A hollow mark is an estimate for a run that was given up.
    for over in (False, True):
        chosen = [f for f in points if f.measured.over is over]
        panel.plot(
            [f.case.overlap for f in chosen],
            [f.measured.seconds for f in chosen],
            linestyle="",
            marker="o",
            markersize=5.5 if ours else 4.5,
            color=colour,
            markerfacecolor="white" if over else colour,
            zorder=4,
            label=None if over else name,
        )
