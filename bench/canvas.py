"""The style of all benchmark pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure as Picture

from bench import report


def opened(panels: int, width: float, lines: int = 1) -> tuple[Picture, list[Any]]:
    """An empty picture with panels in one or more lines, each `width` inches wide."""
    matplotlib.rcParams["svg.hashsalt"] = "paneflow"
    size = width * panels / lines, 4.6 if lines == 1 else 3.2 * lines
    picture = Picture(figsize=size, layout="constrained")
    found = picture.subplots(lines, panels // lines, squeeze=False).ravel()
    for panel in found:
        panel.grid(color="#e6e6e6", linewidth=0.7)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    return picture, list(found)


def saved(picture: Picture, panels: Sequence[Any], name: str, columns: int) -> None:
    """Write a picture, with one legend for all its panels below them."""
    named: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    picture.legend(
        list(named.values()),
        list(named),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=9,
    )
    report.PICTURES.mkdir(parents=True, exist_ok=True)
    picture.savefig(report.PICTURES / f"{name}.svg", metadata={"Date": None})
