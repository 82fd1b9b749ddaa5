"""The trading query with both worker models: results a second, by workers.

Mencagli et al., "Harnessing Sliding-Window Execution Semantics for Parallel Stream Processing",
sections 5.2 and 5.3: 200,000 quotes a second, a polynomial fitted to every window. Time windows of
one second that slide by 50 and by 10 ms are served by active and by agnostic workers; windows that
slide by 4,000 quotes only by agnostic ones. `ideal` is how many windows end in a second of quotes:
a model that gives at least as many results a second keeps up with the stream.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import paneflow as pf
from bench.multicore import pictures
from bench.report import Sheet
from paneflow import aggregates as A, windows as W

RATE = 200_000
CHUNK = 5000
Figures = dict[str, Any]


def fit(times: npt.NDArray[np.int64], prices: npt.NDArray[np.float64]) -> float:
    """The price at the window's last quote, by a parabola fitted to its quotes."""
    seconds = (times - times[-1]) / 1e6
    return float(np.polyfit(seconds, prices, 2)[-1]) if len(prices) > 2 else float(prices[-1])


def quotes(seconds: float) -> pa.Table:
    """Quotes of one stock, evenly spread over time, in microseconds."""
    n = int(RATE * seconds)
    t = np.arange(n) * (1_000_000 // RATE)
    noise = np.random.default_rng(5).normal(0, 0.1, n)
    return pa.table({"t": t, "x": t, "price": 50 + np.sin(t / 3e6) + noise})


def cases(quick: bool) -> dict[str, tuple[W.Window, tuple[str, ...], float]]:
    """Windows, the models that serve them, and how many of them end in a second."""
    both, one = ("active", "agnostic"), ("agnostic",)
    short = 100_000 if quick else 1_000_000
    return {
        "1 s, slide 50 ms": (W.sliding(short, 50_000), both, 20),
        "1 s, slide 10 ms": (W.sliding(short, 10_000), both, 100),
        "1 s, slide 4,000 quotes": (W.slide_by_tuple(short, 4000), one, 50),
        "2 s, slide 4,000 quotes": (W.slide_by_tuple(2 * short, 4000), one, 50),
    }


def results_a_second(window: W.Window, model: str, workers: int, table: pa.Table) -> float:
    """The rows of a whole stream, divided by its time."""
    query = pf.Query(window, {"price": A.apply(fit, "x", "price")}, time="t")
    rows: int = 0
    start = time.perf_counter()
    with query.open(workers=workers, strategy=model) as stream:
        for at in range(0, table.num_rows, CHUNK):
            stream.push(table.slice(at, CHUNK))
            rows += sum(part.num_rows for part in stream.results())
        stream.finish()
        rows += sum(part.num_rows for part in stream.results())
    return float(rows / (time.perf_counter() - start))


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Results a second by window, model and workers."""
    figures: Figures = {}
    sections = []
    asked = (1, 2) if quick else (1, 2, 4)
    table = quotes(0.3 if quick else 4)
    for name, (window, models, ideal) in cases(quick).items():
        found = {
            model: {p: results_a_second(window, model, p, table) for p in asked} for model in models
        }
        figures[name] = {"ideal": ideal, "found": found}
        sections.append(
            [
                [f"{name}, {model}", *(f"{row[p]:,.1f}" for p in asked), f"{ideal:.0f}"]
                for model, row in found.items()
            ]
        )
    headings = ("contestant", *(f"{p} workers" for p in asked), "ideal")
    return figures, [Sheet("The trading query: results a second", headings, sections)]


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """The paper finds the same rate with both models (section 5.2): within a factor of two."""
    for name, row in figures.items():
        if "active" in row["found"]:
            for workers, active in row["found"]["active"].items():
                ratio = row["found"]["agnostic"][workers] / active
                yield (
                    0.5 < ratio < 2,
                    f"{name}, {workers}: agnostic is {ratio:.2f} of active (0.5-2)",
                )


def draw(figures: Figures) -> None:
    """Results a second by workers."""
    pictures.draw_trading(figures)
