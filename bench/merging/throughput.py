"""Grids (i) to (iii): million slices a second for max, by range, by slide, and for time windows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl

from bench.merging import pictures
from bench.merging.fiba import seconds_in_fiba
from bench.merging.operators import maximum
from bench.merging.windows import (
    LEAST,
    MOST,
    OPEN,
    seconds_by_time,
    seconds_to_slide,
)
from bench.report import Sheet
from paneflow.aggregates.operator import Array
from paneflow.merging.sba import Sba

Figures = dict[str, dict[int, float]]
WIDEST = 1 << 17
TICKS_PER_MINUTE = 6000
"""Slices of 10 ms."""
MINUTES = range(6, 61, 6)
PRESENT = 0.9
"""The share of slices of a time window in which an event fell."""


def best(run: Callable[[], Any], times: int = 2) -> float:
    """The seconds of the fastest of several runs."""
    seconds = []
    for _ in range(times):
        before = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - before)
    return min(seconds)


def by_range(quick: bool) -> Figures:
    """Grid (i): ranges of 2^3 to 2^20 slices, slide 1."""
    powers = range(3, 15, 3) if quick else range(3, 21)
    count = 100_000 if quick else 500_000
    values = np.random.default_rng(0).normal(size=count + (1 << max(powers)))
    figures: Figures = {name: {} for name in (*OPEN, "fiba", *PEERS)}
    for size in (1 << power for power in powers):
        mine = values[: size + count]
        for name in OPEN:
            if LEAST.get(name, 0) <= size <= MOST.get(name, size):
                seconds = min(seconds_to_slide(name, maximum(), size, mine) for _ in range(2))
                figures[name][size] = count / seconds / 1e6
        figures["fiba"][size] = count / seconds_in_fiba(maximum(), size, mine) / 1e6
        if quick or size.bit_length() % 3 == 0:
            for name, peer in PEERS.items():
                times = 1 if name == "duckdb" else 2
                figures[name][size] = len(mine) / best(peer(mine, size, 1), times) / 1e6
    return figures


def by_slide(quick: bool) -> Figures:
    """Grid (ii): a range of 2^17 slices, slides of 1 to 10 of them."""
    size = 1 << 12 if quick else WIDEST
    count = 100_000 if quick else 500_000
    values = np.random.default_rng(1).normal(size=size + count)
    names = [name for name in OPEN if name != "recalculate"]
    figures: Figures = {name: {} for name in (*names, *PEERS)}
    for step in (1, 5) if quick else range(1, 11):
        for name in names:
            seconds = min(seconds_to_slide(name, maximum(), size, values, step) for _ in range(2))
            figures[name][step] = count / seconds / 1e6
        for name, peer in PEERS.items():
            if quick or step in (1, 2, 5, 10):
                times = 1 if name == "duckdb" else 2
                figures[name][step] = len(values) / best(peer(values, size, step), times) / 1e6
    return figures


def by_minutes(quick: bool) -> Figures:
    """Grid (iii): time windows of 6 to 60 minutes, slide 10 ms; a tenth of slices is missing."""
    rng = np.random.default_rng(2)
    count = 50_000 if quick else 300_000
    names = [name for name in OPEN if name != "recalculate"]
    figures: Figures = {name: {} for name in names}
    for minutes in (6, 12) if quick else MINUTES:
        length = minutes * TICKS_PER_MINUTE
        times = np.flatnonzero(rng.random(length + int(count / PRESENT)) < PRESENT)
        values = rng.normal(size=len(times))
        slid = len(times) - int(np.searchsorted(times, length))
        for name in names:
            seconds = min(
                seconds_by_time(name, maximum(), length, length, times, values) for _ in range(2)
            )
            figures[name][minutes] = slid / seconds / 1e6
    return figures


def columns(values: Array, size: int, step: int) -> Callable[[], Any]:
    """paneflow over whole columns, with SBA."""
    merger = Sba(maximum(), (values,))
    lo = np.arange(0, len(values) - size + 1, step)
    merger.merge(lo[:3], lo[:3] + size)
    return lambda: merger.merge(lo, lo + size)


def in_pandas(values: Array, size: int, step: int) -> Callable[[], Any]:
    """The rolling maximum of pandas."""
    series = pd.Series(values)
    return lambda: series.rolling(size, step=step).max()


def in_polars(values: Array, size: int, step: int) -> Callable[[], Any]:
    """The rolling maximum of polars, every `step`-th of it."""
    series = pl.Series(values)
    return lambda: series.rolling_max(size).gather_every(step)


def in_duckdb(values: Array, size: int, step: int) -> Callable[[], Any]:
    """A window function over rows, every `step`-th of it."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET enable_progress_bar = false")
    frame = pd.DataFrame({"i": np.arange(len(values)), "v": values})
    connection.register("given", frame)
    connection.execute("CREATE TABLE events AS SELECT * FROM given")
    query = (
        f"SELECT m FROM (SELECT i, max(v) OVER (ORDER BY i ROWS {size - 1} PRECEDING) AS m "
        f"FROM events) WHERE i % {step} = 0"
    )
    return lambda: connection.execute(query).fetchnumpy()


def copied(values: Array, size: int, step: int) -> Callable[[], Any]:
    """NumPy's copy of the values: the limit that memory sets."""
    target = np.empty_like(values)
    return lambda: np.copyto(target, values)


PEERS = {
    "columns (sba)": columns,
    "pandas": in_pandas,
    "polars": in_polars,
    "duckdb": in_duckdb,
    "memcpy": copied,
}


def run(quick: bool) -> tuple[dict[str, Figures], list[Sheet]]:
    """All three grids."""
    figures = {"range": by_range(quick), "slide": by_slide(quick), "minutes": by_minutes(quick)}
    size = "2^12" if quick else "2^17"
    return figures, [
        _sheet("(i) max, slide 1: million slices a second, by range", figures["range"]),
        _sheet(f"(ii) max, range {size}: million slices a second, by slide", figures["slide"]),
        _sheet(
            "(iii) max, slide 10 ms: million slices a second, by minutes of the time window",
            figures["minutes"],
        ),
    ]


def _sheet(title: str, figures: Figures) -> Sheet:
    points = sorted({point for row in figures.values() for point in row})
    shown = [p for p in points if p < 1 << 11 or p.bit_length() % 3 == 0 or p > 1 << 19]
    rows = [
        [name, *(f"{row[p]:,.1f}" if p in row else "" for p in shown)]
        for name, row in figures.items()
    ]
    return Sheet(title, ("contestant", *(f"{p:,}" for p in shown)), [rows])


def targets(figures: dict[str, Figures]) -> Iterator[tuple[bool, str]]:
    """No targets: these figures are for information."""
    yield from ()


def draw(figures: dict[str, Figures]) -> None:
    """The three grids side by side."""
    pictures.draw_throughput(figures)
