"""The picture: one plug's readings under its windows, and the uses of every plug of its house."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from paneflow.demo.live import of_window
from paneflow.demo.plugs import APPLIANCES, BEGIN, SECONDS, Floats
from paneflow.demo.question import HOUR, PACKET, USE

SHOWN = (1, "desk")
LINES = {"peak": ("#d1495b", 1.4), "mean": ("#30638e", 2.2)}
READING, SESSION, COUNTED = "#9aa5b1", "#eef1f5", "#edae49"
DOTS = 20_000
"""Readings that are drawn, at most."""


def draw(readings: pa.Table, rows: pa.Table, path: Path) -> None:
    """Draw readings and rows."""
    house, plug = SHOWN
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1.3])
    uses = _of_plug(of_window(rows, USE), house, plug)
    for begin, end in zip(_minutes(uses["start"]), _minutes(uses["end"]), strict=True):
        above.axvspan(begin, end, color=SESSION, zorder=0)
    above.fill_between(
        [], [], fc=SESSION, ec=READING, label="a session: readings at most 5 min apart"
    )
    mine = _of_plug(readings, house, plug)
    mine = mine.take(pa.array(np.arange(0, mine.num_rows, mine.num_rows // DOTS + 1)))
    above.plot(_minutes(mine["ts"]), mine["load"], ".", ms=1.2, color=READING, zorder=1)
    above.plot([], [], ".", color=READING, label="a reading")
    counted = _of_plug(of_window(rows, PACKET), house, plug).sort_by("seq")
    above.plot(*_line(counted, "mean", 2), color=COUNTED, lw=1.2, label="mean of 500 readings")
    hour = _of_plug(of_window(rows, HOUR), house, plug).sort_by("end")
    for name, (colour, width) in LINES.items():
        above.plot(*_line(hour, name, 0.1), color=colour, lw=width, label=f"{name} of an hour")
    above.set_title(f"The {plug} of house {house}: an hour that slides by a second", loc="left")
    above.set(ylabel="watts", ylim=(0, 1.2 * pc.max(mine["load"]).as_py()))
    above.legend(loc="upper left", frameon=False, ncols=3)
    for k, name in enumerate(reversed(APPLIANCES)):
        uses = _of_plug(of_window(rows, USE), house, name)
        begin, end = _minutes(uses["start"]), _minutes(uses["end"])
        shade = matplotlib.colormaps["YlOrRd"](0.2 + 0.35 * uses["mean"].to_numpy() / 1000)
        below.barh(np.full(len(begin), k), end - begin, left=begin, height=0.7, color=shade)
    below.set_yticks(range(len(APPLIANCES)), list(reversed(APPLIANCES)))
    below.set_title(f"Sessions of every plug of house {house}, darker for more load", loc="left")
    below.set_xlim(0, SECONDS / 60)
    ticks = range(0, SECONDS // 60 + 1, 15)
    below.set_xticks(ticks, [str(BEGIN + np.timedelta64(m, "m"))[11:16] for m in ticks])
    for panel in (above, below):
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=140)


def _of_plug(rows: pa.Table, house: int, plug: str) -> pa.Table:
    return rows.filter(pc.and_(pc.equal(rows["house"], house), pc.equal(rows["plug"], plug)))


def _minutes(times: pa.ChunkedArray) -> Floats:
    """Minutes since the beginning."""
    plain = times.cast(pa.timestamp("us")).to_numpy()
    minutes: Floats = (plain - BEGIN) / np.timedelta64(1, "m")
    return minutes


def _line(rows: pa.Table, name: str, gap: float) -> tuple[Floats, Floats]:
    """Values by the ends of windows, broken where none ended for `gap` minutes."""
    minutes, values = _minutes(rows["end"]), rows[name].to_numpy()
    breaks = np.flatnonzero(np.diff(minutes) > gap) + 1
    return np.insert(minutes, breaks, minutes[breaks - 1]), np.insert(values, breaks, np.nan)
