"""Draws what the benches measured, from the figures they wrote."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib.figure import Figure as Picture

COLOURS = {
    "paneflow": "#d1495b",
    "polars": "#30638e",
    "polars, keys sorted": "#5b8fb9",
    "polars, seconds first": "#a4c3dc",
    "duckdb": "#c9b458",
    "duckdb, all rows": "#8f7a1e",
}


def draw_tables(figures: list[dict[str, Any]], complete: Iterable[str], path: Path) -> None:
    """Seconds by overlap, both logarithmic, one panel for each size."""
    sizes = sorted({(f["case"]["events"], f["case"]["keys"]) for f in figures})
    across = 2 if len(sizes) > 1 else 1
    down = -(-len(sizes) // across)
    matplotlib.rcParams["svg.hashsalt"] = "paneflow"
    picture = Picture(figsize=(5.2 * across, 3.6 * down + 0.6), layout="constrained")
    panels = picture.subplots(down, across, squeeze=False, sharex=True)
    for panel, (count, keys) in zip(panels.flat, sizes, strict=True):
        mine = [f for f in figures if (f["case"]["events"], f["case"]["keys"]) == (count, keys)]
        for name, colour in COLOURS.items():
            points = sorted(
                (f["case"]["overlap"], f["measured"]["seconds"], f["measured"]["over"])
                for f in mine
                if f["contestant"] == name
            )
            _curve(panel, name, colour, points, name in complete)
        panel.set(xscale="log", yscale="log")
        panel.set_title(f"{count / 1e6:g} million events, {keys:,} keys", loc="left", fontsize=10)
        overlaps = sorted({f["case"]["overlap"] for f in mine})
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
    picture.savefig(path, metadata={"Date": None})


def _curve(
    panel: Any, name: str, colour: str, points: list[tuple[int, float, bool]], complete: bool
) -> None:
    ours = name == "paneflow"
    panel.plot(
        [overlap for overlap, _, _ in points],
        [seconds for _, seconds, _ in points],
        color=colour,
        linewidth=2.4 if ours else 1.4,
        linestyle="-" if complete else ":",
        zorder=3 if ours else 2,
    )
    # A hollow mark is an estimate of a run that was given up.
    for over in (False, True):
        chosen = [(overlap, seconds) for overlap, seconds, o in points if o is over]
        panel.plot(
            [overlap for overlap, _ in chosen],
            [seconds for _, seconds in chosen],
            linestyle="",
            marker="o",
            markersize=5.5 if ours else 4.5,
            color=colour,
            markerfacecolor="white" if over else colour,
            zorder=4,
            label=None if over else name,
        )
