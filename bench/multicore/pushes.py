"""One worker fed in long and short batches: events a second, next to the same query over a table.

A sum, 100 keys, windows that overlap 60 times, and a slide every 33,333 events.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import paneflow as pf
from bench.multicore import pictures
from bench.report import Sheet
from paneflow import aggregates as A, windows as W

PROMISED = {10_000: 20e6, 10: 0.3e6}
QUERY = pf.Query(W.sliding(2_000_000, 33_333), {"sum": A.sum("v")}, key="k", time="t")
ROUNDS = 3
Figures = dict[str, Any]


def events(n: int) -> pa.RecordBatch:
    """One event per tick, with a random key."""
    rng = np.random.default_rng(1)
    return pa.record_batch({"t": np.arange(n), "k": rng.integers(0, 100, n), "v": rng.random(n)})


def seconds_to_push(given: pa.RecordBatch, length: int) -> float:
    """A whole stream in batches of one length, reading rows from time to time."""
    batches = [given.slice(at, length) for at in range(0, given.num_rows, length)]
    rows = 0
    with QUERY.open() as stream:
        start = time.perf_counter()
        for k, batch in enumerate(batches):
            stream.push(batch)
            if k % 100 == 0:
                rows += sum(part.num_rows for part in stream.results())
        stream.finish()
        rows += sum(part.num_rows for part in stream.results())
        spent = time.perf_counter() - start
    assert rows == QUERY.over(given).num_rows
    return spent


def seconds_over(given: pa.RecordBatch) -> float:
    """The same events as a finite table."""
    start = time.perf_counter()
    QUERY.over(given)
    return time.perf_counter() - start


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Events a second by the length of a batch; the best of some rounds."""
    sizes = {10_000: 20_000_000, 1000: 10_000_000, 100: 3_000_000, 10: 1_000_000}
    if quick:
        sizes = {length: n // 50 for length, n in sizes.items()}
    figures: Figures = {}
    rows = []
    for length, n in sizes.items():
        given = events(n)
        pushed = n / min(seconds_to_push(given, length) for _ in range(ROUNDS))
        table = n / min(seconds_over(given) for _ in range(ROUNDS))
        figures[str(length)] = {"events/s": pushed, "table": table}
        cells = [f"{length:,}", f"{n:,}", f"{pushed:,.0f}", f"{table:,.0f}"]
        rows.append([*cells, f"{pushed / table:.3f}"])
    headings = ("events in a batch", "events", "pushed/s", "over a table/s", "ratio")
    return figures, [Sheet("one worker, by the length of a batch", headings, [rows])]


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """Long batches at full speed, short ones fast enough."""
    for length, promised in PROMISED.items():
        rate = figures[str(length)]["events/s"]
        yield (
            rate >= promised,
            f"batches of {length:,}: {rate / 1e6:.2f} million events a second ({promised / 1e6:g})",
        )


def draw(figures: Figures) -> None:
    """Events a second by the length of a batch."""
    pictures.draw_pushes(figures)
