"""The demo: a day of smart plugs, asked one question, answered, checked and drawn.

`make demo` runs it. It shows what a query looks like, what its plan says, how fast the answer
comes, and that it is right: rows of the real answer are compared with the oracle's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

import paneflow as pf
from paneflow import aggregates as A, windows as W

Floats = npt.NDArray[np.float64]
Row = dict[str, Any]

OUTPUT = Path("demo-output")
DAY = np.datetime64("2026-01-15T00:00:00", "us")
HOUSES = 8
SHOWN = (1, "desk")
"""The plug that is drawn."""
CHECKED = ((2, "kettle"), (5, "television"), (7, "oven"))
"""The plugs whose rows are compared with the oracle's, which takes its time over every event."""

swing = A.define(
    lift=lambda watts: (watts, watts),
    combine=lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
    lower=lambda bounds: bounds[1] - bounds[0],
    identity=(math.inf, -math.inf),
    commutative=True,
    idempotent=True,
    name="swing",
)
QUERY = pf.Query(
    windows={
        "hour": W.sliding("1 hour", "1 minute"),
        "use": W.session("5 minutes"),
        "500 readings": W.count(500),
    },
    aggregates={
        "energy": A.sum("work"),
        "mean": A.mean("load"),
        "p95": A.quantile("load", 0.95),
        "peak": A.max("load"),
        "peak_at": A.arg_max("ts", by="load"),
        "swing": swing("load"),
        "readings": A.count(),
    },
    key=["house", "plug"],
    time="ts",
)


@dataclass(frozen=True)
class Appliance:
    """What a plug is for: how much it draws, when, and how often it says so.

    A plug that draws nothing is silent: its uses are sessions.
    """

    load: Callable[[Floats], Floats]
    """Watts, by the seconds since it was switched on."""
    hours: Sequence[float]
    minutes: tuple[float, float]
    every: float
    noise: float = 0.02
    habit: float = 0.8
    """How likely it is used at each of its hours."""
    onset: float = 0
    """How many seconds into its pattern it may begin."""


APPLIANCES = {
    "desk": Appliance(
        lambda s: (
            70
            + 110 * np.sin(s / 2100) ** 2
            + 90 * np.sin(s / 410) ** 4
            + np.where(s % 4700 > 4680, 330, 0)
        ),
        hours=(8.6, 13.2, 16.2, 20.6),
        minutes=(95, 190),
        every=1,
        noise=0.12,
        habit=1.0,
        onset=9000,
    ),
    "fridge": Appliance(
        lambda s: 85 + 240 * np.exp(-s / 6),
        hours=np.arange(0.1, 24, 0.9).tolist(),
        minutes=(17, 23),
        every=5,
        habit=1.0,
    ),
    "heater": Appliance(
        lambda s: np.where(s % 540 < 540 * (0.25 + 0.65 * np.exp(-s / 3000)), 1500, 35),
        hours=(5.5, 17, 20),
        minutes=(60, 150),
        every=2,
    ),
    "kettle": Appliance(
        lambda s: np.full_like(s, 2050),
        hours=(6.5, 7.2, 10, 13, 15.5, 19, 21),
        minutes=(2, 4),
        every=1,
    ),
    "oven": Appliance(
        lambda s: np.where((s < 600) | (s % 150 < 60), 2350, 60),
        hours=(12, 18.2),
        minutes=(35, 60),
        every=2,
    ),
    "television": Appliance(
        lambda s: 110 + 18 * np.sin(s / 240),
        hours=(7, 18.8),
        minutes=(60, 200),
        every=10,
    ),
    "washer": Appliance(
        lambda s: np.where(s < 900, 2000, np.where(s < 4200, 190 + 70 * np.sin(s / 25), 450)),
        hours=(8.5, 14.5),
        minutes=(84, 92),
        every=1,
    ),
}


def plugs(houses: int, seed: int = 4) -> pa.Table:
    """A day of loads: skewed, with losses, in the order in which they arrived.

    >>> plugs(1).column_names
    ['house', 'plug', 'ts', 'load', 'work']
    """
    random = np.random.default_rng(seed)
    parts = [_day(random, house, name) for house in range(1, houses + 1) for name in APPLIANCES]
    table = pa.concat_tables(parts)
    # Readings travel for a while, some for long: the table is not in order of time.
    travel = random.exponential(4e6, table.num_rows).astype("timedelta64[us]")
    arrived = np.argsort(table.column("ts").to_numpy() + travel, kind="stable")
    return table.take(pa.array(arrived))


def _day(random: np.random.Generator, house: int, name: str) -> pa.Table:
    """The readings of one plug; one in 250 has lost its load."""
    it = APPLIANCES[name]
    rating = random.lognormal(0, 0.2)
    used = [hour for hour in it.hours if random.random() < it.habit]
    begins = 3600 * np.array(used) + random.normal(0, 60 + 200 * (it.every < 5), len(used))
    at, load = [np.empty(0)], [np.empty(0)]
    for begin in np.clip(begins, 0, 86_400 - 60 * it.minutes[1]):
        elapsed = np.arange(0, 60 * random.uniform(*it.minutes), it.every)
        at.append(begin + elapsed + random.uniform(0, it.every / 2, len(elapsed)))
        watts = it.load(elapsed + random.uniform(0, it.onset))
        load.append(watts * rating * random.normal(1, it.noise, len(elapsed)))
    watts = np.concatenate(load).round(1)
    stamps = DAY + (np.concatenate(at) * 1e6).astype("timedelta64[us]")
    return pa.table(
        {
            "house": np.full(len(watts), house),
            "plug": pa.array([name] * len(watts), pa.string()),
            "ts": stamps,
            "load": pa.array(watts, mask=random.random(len(watts)) < 0.004),
            "work": watts * it.every / 3600,
        }
    )


def of_plug(rows: pa.Table, house: int, plug: str, window: str | None = None) -> pa.Table:
    """The rows of one plug, and of one window if it is named."""
    mine = pc.and_(pc.equal(rows["house"], house), pc.equal(rows["plug"], plug))
    if window is not None:
        mine = pc.and_(mine, pc.equal(pc.cast(rows["window"], pa.string()), window))
    return rows.filter(mine)


def compare_with_oracle(table: pa.Table, rows: pa.Table) -> int:
    """How many rows of the answer were compared with the oracle's; an error if one differs."""
    compared = 0
    for house, plug in CHECKED:
        mine: list[Row] = of_plug(rows, house, plug).to_pylist()
        right: list[Row] = QUERY.over(of_plug(table, house, plug), engine="oracle").to_pylist()
        nothing: Row = {}
        for one, other in zip_longest(mine, right, fillvalue=nothing):
            if one.keys() != other.keys() or not all(_same(one[k], other[k]) for k in one):
                raise SystemExit(f"the answer has the row {one}, the oracle {other}")
        compared += len(mine)
    return compared


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        # Sums of floats depend on their order in the last bits.
        return math.isclose(one, other, rel_tol=1e-12)
    return bool(one == other)


def hottest(rows: pa.Table, count: int = 8) -> Table:
    """The plugs with the hours of the most energy."""
    hours = rows.filter(pc.equal(pc.cast(rows["window"], pa.string()), "hour"))
    best: dict[tuple[int, str], Row] = {}
    for row in hours.sort_by([("energy", "descending")]).to_pylist():
        best.setdefault((row["house"], row["plug"]), row)
        if len(best) == count:
            break
    shown = Table(title="The hottest plugs, by the hour in which they used the most energy")
    shown.add_column("house", justify="right")
    shown.add_column("plug")
    for name in ("from", "Wh", "mean W", "p95 W", "peak W", "peak at", "uses"):
        shown.add_column(name, justify="right")
    for (house, plug), row in best.items():
        shown.add_row(
            str(house),
            plug,
            f"{row['start']:%H:%M}",
            *(f"{row[name]:,.0f}" for name in ("energy", "mean", "p95", "peak")),
            f"{row['peak_at']:%H:%M}",
            str(of_plug(rows, house, plug, "use").num_rows),
        )
    return shown


LINES = {"peak": ("#d1495b", 1.4), "p95": ("#edae49", 1.8), "mean": ("#30638e", 2.2)}
READING, SESSION = "#9aa5b1", "#eef1f5"


def draw(table: pa.Table, rows: pa.Table, path: Path) -> None:
    """One plug's readings under its windows, and when every plug of its house was in use."""
    house, plug = SHOWN
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1.3])
    uses = of_plug(rows, house, plug, "use")
    for begin, end in zip(_hours(uses["start"]), _hours(uses["end"]), strict=True):
        above.axvspan(begin, end, color=SESSION, zorder=0)
    above.fill_between([], [], color=SESSION, label="a session: readings at most 5 min apart")
    readings = of_plug(table, house, plug)
    above.plot(_hours(readings["ts"]), readings["load"], ".", ms=1.2, color=READING, zorder=1)
    above.plot([], [], ".", color=READING, label="a reading")
    hour = of_plug(rows, house, plug, "hour")
    for name, (colour, width) in LINES.items():
        above.plot(*_line(hour, name), color=colour, lw=width, label=f"{name} of the last hour")
    above.set_title(f"The {plug} of house {house}: an hour that slides by a minute", loc="left")
    above.set(ylabel="watts", ylim=(0, None))
    above.legend(loc="upper left", frameon=False)
    for k, name in enumerate(reversed(APPLIANCES)):
        uses = of_plug(rows, house, name, "use")
        begin, end = _hours(uses["start"]), _hours(uses["end"])
        shade = matplotlib.colormaps["YlOrRd"](0.2 + 0.35 * uses["mean"].to_numpy() / 1000)
        below.barh(np.full(len(begin), k), end - begin, left=begin, height=0.7, color=shade)
    below.set_yticks(range(len(APPLIANCES)), list(reversed(APPLIANCES)))
    below.set_title(f"Sessions of every plug of house {house}, darker for more load", loc="left")
    below.set_xlim(0, 24)
    below.set_xticks(range(0, 25, 2), [f"{hour:02}:00" for hour in range(0, 25, 2)])
    for panel in (above, below):
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=140)


def _hours(times: pa.ChunkedArray) -> Floats:
    """Hours since midnight."""
    hours: Floats = (times.to_numpy() - DAY) / np.timedelta64(1, "h")
    return hours


def _line(rows: pa.Table, name: str) -> tuple[Floats, Floats]:
    """Values by the ends of windows, broken where there is no window."""
    hours, values = _hours(rows["end"]), rows[name].to_numpy()
    gaps = np.flatnonzero(np.diff(hours) > 1.5 / 60) + 1
    return np.insert(hours, gaps, hours[gaps - 1]), np.insert(values, gaps, np.nan)


def main() -> None:
    """Generate, explain, answer, check, draw."""
    console = Console()
    table = plugs(HOUSES)
    console.print(f"[bold]{table.num_rows:,} readings[/] of {HOUSES * len(APPLIANCES)} smart plugs")
    console.rule("the plan")
    console.print(str(QUERY.explain(table)), highlight=False)
    console.rule("the answer")
    first, rows = _timed(lambda: QUERY.over(table))
    again = min(_timed(lambda: QUERY.over(table))[0] for _ in range(3))
    console.print(
        f"{rows.num_rows:,} rows in {again * 1000:.0f} ms: {table.num_rows / again / 1e6:.1f} "
        f"million readings a second, each in up to 62 windows.\n"
        f"The first time it took {first:.1f} s: kernels are compiled once and kept."
    )
    console.print(hottest(rows))
    compared = compare_with_oracle(table, rows)
    console.print(f"[green]{compared:,} rows of {len(CHECKED)} plugs equal the oracle's.[/]")
    OUTPUT.mkdir(exist_ok=True)
    pq.write_table(rows, OUTPUT / "rows.parquet")
    draw(table, rows, OUTPUT / "plugs.png")
    console.print(
        f"All rows are in {OUTPUT / 'rows.parquet'}, a picture in {OUTPUT / 'plugs.png'}."
    )


def _timed(call: Callable[[], pa.Table]) -> tuple[float, pa.Table]:
    begun = time.perf_counter()
    result = call()
    return time.perf_counter() - begun, result


if __name__ == "__main__":
    main()
