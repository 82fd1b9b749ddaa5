"""Grid (iv): the latency of every single slide.

The clock ticks about every 10 ns, and an interrupt hits one slide in every few thousand, even in an
empty loop. So the same slides are timed several times, and the smallest time of each counts: an
interrupt does not hit the same slide every time, but the algorithm does the same work at it every
time. The floor, the clock around a single max, is treated the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.merging import pictures
from bench.merging.clock import floor, nanoseconds_per_cycle
from bench.merging.operators import maximum, moments
from bench.merging.quiet import wait_for_quiet
from bench.merging.windows import cycles_of_slides
from bench.report import Sheet
from paneflow.aggregates.operator import Array

NAMES = ("two_stacks", "two_stacks_lite", "slick_deque", "daba", "daba_lite", "sba", "pba")
LABELS = ("min", "lower", "median", "upper", "p99.99", "max")
SHOWN = f"max {1 << 14}"
Figures = dict[str, Any]


def least(run: Callable[[], Array], rounds: int) -> Array:
    """The smallest time of each slide in several runs."""
    spent = run()
    for _ in range(rounds - 1):
        wait_for_quiet()
        np.minimum(spent, run(), out=spent)
    return spent


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Nanoseconds of each slide, after the window has filled twice."""
    scale = nanoseconds_per_cycle()
    rng = np.random.default_rng(6)
    rounds = 3 if quick else 27
    figures: Figures = {"slides": {}, "curves": {}}
    for what, operator, size in (
        ("max", maximum(), 1 << 13),
        ("max", maximum(), 1 << 14),
        ("moments", moments(), 3600),
        ("moments", moments(), 7200),
    ):
        count = 2 * size + (100_000 if quick else 1_000_000 if what == "max" else 200_000)
        values = rng.normal(size=count) if what == "max" else rng.random((count, 22))
        for name in ("floor", *NAMES):
            if what == "moments" and name in ("floor", "slick_deque"):
                continue

            def once(name: str = name, values: Array = values, size: int = size) -> Array:
                if name == "floor":
                    return floor(values)
                return cycles_of_slides(name, operator, size, values)  # noqa: B023

            spent = least(once, rounds)[2 * size :] * scale
            points = map(float, np.percentile(spent, [0, 25, 50, 75, 99.99, 100]))
            row = dict(zip(LABELS, points, strict=True))
            figures["slides"][f"{what} {size} {name}"] = row | {"std": float(spent.std())}
            if f"{what} {size}" == SHOWN:
                figures["curves"][name] = _curve(spent)
    rows = [
        [[case, *(f"{v:,.0f}" for v in row.values())]] for case, row in figures["slides"].items()
    ]
    title = f"(iv) nanoseconds of a slide, each the least of {rounds} runs"
    return figures, [Sheet(title, ("aggregate, range, algorithm", *LABELS, "std"), rows)]


def _curve(spent: Array) -> list[tuple[float, float]]:
    """Points of the share of slides that take at least that long, dense where slides are few."""
    ordered = np.sort(spent)[::-1]
    ranks = np.unique(np.geomspace(1, len(spent), 400).astype(int))
    return [(float(ordered[rank - 1]), float(rank / len(spent))) for rank in ranks]


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """Constant latency where it is promised, and a spike where it is not."""
    for name in ("daba", "daba_lite", "pba"):
        row = figures["slides"][f"{SHOWN} {name}"]
        ratio = row["p99.99"] / row["median"]
        text = f"{name}: p99.99 of a slide at range 2^14 is {ratio:.1f} medians (5)"
        yield ratio <= 5, text
    for size in (1 << 13, 1 << 14):
        row = figures["slides"][f"max {size} two_stacks"]
        ratio, worst = row["p99.99"] / row["median"], row["max"] / row["median"]
        text = (
            f"two_stacks at range {size:,}: p99.99 is {ratio:,.0f} medians, the worst {worst:,.0f}"
        )
        yield worst > 100, text


def draw(figures: Figures) -> None:
    """The share of slides that take at least that long."""
    pictures.draw_latency(figures["curves"])
