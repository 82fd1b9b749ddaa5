"""A thousand windows in one query, compared with one: events are sliced once for all of them.

    python -m bench.many_windows [--quick]

The windows are tumbling, of random lengths from one minute to one hour, in whole seconds or in
milliseconds. More windows emit more rows, and rows have a cost of their own. That cost is measured
in two ways, and scaled to the same number of rows:

- *finely*: one window slides so finely over the same events that it emits as many rows; what
  that takes beyond a single long window is the cost of the rows. Its rows are cheap to order.
- *thinly*: the same thousand windows over one event per minute and key. They emit the same rows,
  from hardly any events. This includes the fixed cost of each window.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import paneflow as pf
from bench.data import BEGIN, SPAN, events
from bench.measuring import side_by_side
from bench.report import Sheet, publish, verdict, write
from paneflow import aggregates as A, windows as W

EVENTS, KEYS, WINDOWS = 2_000_000, 100, 1000
SHORTEST, LONGEST = 60, 3600
SINGLE = 5
"""How many of the windows run alone, to find out what one costs."""
TARGET = 3
UNITS = {"s": 1, "ms": 1000}


def lengths(windows: int, unit: str, seed: int = 7) -> list[W.Window]:
    """Tumbling windows of different random lengths."""
    random = np.random.default_rng(seed)
    choice = np.arange(SHORTEST * UNITS[unit], LONGEST * UNITS[unit] + 1)
    picked = random.choice(choice, windows, replace=False)
    return [W.tumbling(f"{length} {unit}") for length in picked]


def thin(keys: int) -> pa.Table:
    """One event per minute and key: every window of the benchmark contains one."""
    times = np.repeat(BEGIN + np.arange(0, SPAN, SHORTEST), keys) * 1_000_000
    key = np.tile(np.arange(keys), SPAN // SHORTEST)
    stamps = pa.array(times).view(pa.timestamp("us"))
    return pa.table({"key": key, "ts": stamps, "v": np.ones(len(key))})


def query(windows: Sequence[W.Window]) -> pf.Query:
    """The same aggregates for any windows."""
    wanted = {"peak": A.max("v"), "mean": A.mean("v"), "events": A.count()}
    return pf.Query(windows, wanted, key="key", time="ts")


def compare(table: pa.Table, keys: int, windows: int, unit: str) -> dict[str, Any]:
    """Seconds of one window, of many, and of the rows that many emit."""
    chosen = lengths(windows, unit)
    many, sparse = query(chosen), thin(keys)
    rows, thin_rows = many.over(table).num_rows, many.over(sparse).num_rows
    # A window of an hour reaches the events an hour before they start: twice the span.
    step = 2 * SPAN * 1_000_000 * keys // rows
    fine = query([W.sliding("1 hour", f"{step} us")])
    fine_rows = fine.over(table).num_rows
    alone = [query([w]) for w in chosen[:SINGLE]]
    alone_rows = statistics.median(q.over(table).num_rows for q in alone)
    every, thinly, finely, *singles = side_by_side(
        partial(many.over, table),
        partial(many.over, sparse),
        partial(fine.over, table),
        *(partial(q.over, table) for q in alone),
    )
    one = statistics.median(singles)
    by_fine = max(0.0, finely - one) * rows / fine_rows
    by_thin = thinly * rows / thin_rows
    return {
        "unit": unit,
        "windows": windows,
        "one": one,
        "one rows": alone_rows,
        "many": every,
        "many rows": rows,
        "rows finely": by_fine,
        "rows thinly": by_thin,
        "ratio": every / one,
        "ratio without rows finely": (every - by_fine) / one,
        "ratio without rows thinly": (every - by_thin) / one,
    }


HEADINGS = (
    "lengths in",
    "one, s",
    "its rows",
    "1,000, s",
    "their rows",
    "1,000 / one",
    "rows finely, s",
    "rows thinly, s",
    "ratio without",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, show, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.many_windows", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave the docs as they are")
    options = parser.parse_args(arguments)
    table = events(EVENTS, KEYS)
    figures = [compare(table, KEYS, WINDOWS, unit) for unit in UNITS]
    sheet = Sheet(
        "1,000 windows in one query, 2 million events, 100 keys",
        HEADINGS,
        [[_cells(f) for f in figures]],
    )
    sheet.show()
    for f in figures:
        for way in ("finely", "thinly"):
            ratio = f[f"ratio without rows {way}"]
            text = f"lengths in {f['unit']}: without rows ({way}), 1,000 windows take {ratio:.1f}"
            verdict(ratio <= TARGET, f"{text} times as long as one ({TARGET})")
    write("many-windows", figures)
    if not options.quick:
        publish("many-windows", [sheet])


def _cells(figure: dict[str, Any]) -> list[str]:
    ways = [f"{figure[f'ratio without rows {way}']:.1f}" for way in ("finely", "thinly")]
    return [
        figure["unit"],
        f"{figure['one']:.3f}",
        f"{figure['one rows']:,.0f}",
        f"{figure['many']:.3f}",
        f"{figure['many rows']:,}",
        f"{figure['ratio']:.1f}",
        f"{figure['rows finely']:.3f}",
        f"{figure['rows thinly']:.3f}",
        " / ".join(ways),
    ]


if __name__ == "__main__":
    main()
