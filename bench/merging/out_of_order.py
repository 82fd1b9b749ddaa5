"""Grids (v) and (vi): inserting at a distance from the newest, and dropping many at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.merging import pictures
from bench.merging.clock import nanoseconds_per_cycle
from bench.merging.fiba import cycles_of_fiba_evictions, seconds_at_distance
from bench.merging.latency import least
from bench.merging.operators import maximum
from bench.merging.windows import cycles_of_evictions
from bench.report import Sheet
from paneflow.aggregates.operator import Array

DISTANCES = (0, 1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536)
BULKS = (1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 131_072)
ONE_BY_ONE = ("two_stacks_lite", "daba_lite", "slick_deque", "sba", "flat_fat")
Figures = dict[str, dict[int, float]]


def at_distances(quick: bool) -> dict[int, float]:
    """Grid (v): million slides a second of FiBA over 2^17 entries, by distance."""
    size = 1 << 17
    count = 20_000 if quick else 60_000
    values = np.random.default_rng(4).normal(size=size + count)
    figures = {}
    for distance in DISTANCES[::3] if quick else DISTANCES:
        seconds = min(seconds_at_distance(maximum(), size, distance, values) for _ in range(3))
        figures[distance] = count / seconds / 1e6
    return figures


def evictions(quick: bool) -> Figures:
    """Grid (vi): nanoseconds per entry, when many leave a window of 2^18 at once."""
    size = 1 << 18
    values = np.random.default_rng(5).normal(size=size)
    scale = nanoseconds_per_cycle()
    figures: Figures = {name: {} for name in ("fiba", *ONE_BY_ONE)}
    for count in BULKS[::3] if quick else BULKS:
        rounds = max(4, min(1000, (1 << (18 if quick else 20)) // count))
        for name in figures:

            def once(name: str = name, count: int = count, rounds: int = rounds) -> Array:
                if name == "fiba":
                    return cycles_of_fiba_evictions(maximum(), size, count, rounds, values)
                return cycles_of_evictions(name, maximum(), size, count, rounds, values)

            spent = least(once, 2 if quick else 5)
            figures[name][count] = float(spent.mean()) * scale / count
    return figures


def run(quick: bool) -> tuple[dict[str, Figures], list[Sheet]]:
    """Both grids."""
    figures = {"distance": {"fiba": at_distances(quick)}, "evictions": evictions(quick)}
    return figures, [
        _sheet("(v) max, 2^17 entries: million slides a second, by distance", figures["distance"]),
        _sheet(
            "(vi) max, 2^18 entries: nanoseconds for each that leaves, by how many leave at once",
            figures["evictions"],
        ),
    ]


def _sheet(title: str, figures: Figures) -> Sheet:
    points = list(next(iter(figures.values())))
    rows = [[name, *(f"{row[p]:,.2f}" for p in points)] for name, row in figures.items()]
    return Sheet(title, ("contestant", *(f"{p:,}" for p in points)), [rows])


def targets(figures: dict[str, Figures]) -> Iterator[tuple[bool, str]]:
    """No targets: these figures are for information."""
    yield from ()


def draw(figures: dict[str, Figures]) -> None:
    """Both grids side by side."""
    pictures.draw_out_of_order(figures)
