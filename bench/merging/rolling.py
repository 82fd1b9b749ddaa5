"""A rolling maximum over a column of int32, one core, against peers and memcpy.

The system has to clear new memory first. Merges avoid that by reusing a block that is no longer in
use (`machine/spare.py`), just as memcpy writes to an existing array. The fresh copy, into a new
array, and a merge that finds no such block show what is lost otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from bench.merging.operators import maximum_of_int32
from bench.merging.throughput import best
from bench.report import Sheet
from paneflow.merging.machine import spare
from paneflow.merging.sba import Sba

SIZES = (1024, 131_072)
Figures = dict[int, dict[str, float]]


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Million items a second, with the result materialised."""
    n = 2_000_000 if quick else 20_000_000
    values = np.random.default_rng(3).integers(0, 1 << 30, n, dtype=np.int32)
    merger = Sba(maximum_of_int32(), (values,))
    series, frame = pl.Series(values), pd.Series(values)
    target = np.empty_like(values)
    figures: Figures = {}
    for size in SIZES:
        contestants: dict[str, Callable[[], Any]] = {
            "memcpy": lambda: np.copyto(target, values),
            "fresh copy": lambda: values.copy(),
            "paneflow": lambda size=size: merger.slide(size),  # type: ignore[misc]
            "paneflow, new memory": lambda size=size: _anew(merger, size),  # type: ignore[misc]
            "polars": lambda size=size: series.rolling_max(size),  # type: ignore[misc]
            "pandas": lambda size=size: frame.rolling(size).max(),  # type: ignore[misc]
        }
        mine = merger.slide(size)[0]
        assert np.array_equal(mine, series.rolling_max(size).to_numpy()[size - 1 :])
        figures[size] = {
            name: n / best(contestant, 3 if name == "pandas" else 7) / 1e6
            for name, contestant in contestants.items()
        }
    rows = [[[f"{s:,}", *(f"{v:,.0f}" for v in row.values())]] for s, row in figures.items()]
    title = f"rolling max of {n // 1_000_000} million int32: million items a second, by range"
    return figures, [Sheet(title, ("range", *contestants), rows)]


def _anew(merger: Sba, size: int) -> None:
    spare.forget()
    merger.slide(size)


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """How it compares with peers and with memcpy."""
    for size, row in figures.items():
        ours = row["paneflow"]
        yield ours >= 8 * row["polars"], f"{size:,}: {ours / row['polars']:.1f} times polars (8)"
        yield ours >= 40 * row["pandas"], f"{size:,}: {ours / row['pandas']:.0f} times pandas (40)"
        share = ours / row["memcpy"]
        yield share >= 0.12, f"{size:,}: {share:.2f} of memcpy (0.12)"


def draw(figures: Figures) -> None:
    """No picture: the table is enough."""
