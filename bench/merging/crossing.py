"""What it costs that a row of 22 numbers was last touched by another core.

PBA saves its caller 7/8 of a combine at each slide, and has it write a row to a place that the
second thread wrote last, and read one that the second thread has made.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from paneflow.aggregates.operator import Array

ROWS, WIDTH, ROUNDS = 1024, 22, 300


@njit(nogil=True)
def write(rows, value):  # type: ignore[no-untyped-def]
    """Write every number."""
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            rows[i, j] = value


@njit(nogil=True)
def read(rows, total):  # type: ignore[no-untyped-def]
    """Read every number."""
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            total[j] += rows[i, j]


def on_core(core: int, work: Callable[..., Any], *arguments: Any) -> float:
    """Nanoseconds a row that work takes on one core."""
    spent: list[float] = []

    def run() -> None:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {core})
        before = time.perf_counter_ns()
        work(*arguments)
        spent.append((time.perf_counter_ns() - before) / ROWS)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return spent[0]


def crossing() -> dict[str, float]:
    """Nanoseconds to read and to write a row last touched on this core, and on another."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0, 1]
    here, other = cores[0], cores[-1]
    rows: Array = np.zeros((ROWS, WIDTH))
    total: Array = np.zeros(WIDTH)
    write(rows, 0.0)
    read(rows, total)
    figures: dict[str, float] = {}
    for where, core in (("own", here), ("other", other)):
        reads, writes = [], []
        for k in range(ROUNDS):
            on_core(core, write, rows, float(k))
            reads.append(on_core(here, read, rows, total))
            on_core(core, write, rows, float(-k))
            writes.append(on_core(here, write, rows, float(k)))
        figures[f"read, {where} core's"] = min(reads)
        figures[f"write, {where} core's"] = min(writes)
    return figures
