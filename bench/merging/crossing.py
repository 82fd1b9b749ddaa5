"""The cost of a row of 22 numbers that another core touched last.

PBA saves its caller 7/8 of a combine per slide. In return, the caller writes a row to a place that
the second thread wrote last, and reads one that the second thread has computed.

Two threads, each pinned to a core of its own, take turns without ever leaving compiled code: one
writes all rows, then the other times itself. The two processors of a virtual machine may for a time
be two threads of one core, between which rows travel for free. So there are trials over several
seconds, and of those between cores, the one in which they were farthest apart counts.
"""

from __future__ import annotations

import os
import threading
import time

import numpy as np
from numba import njit

from bench.merging.clock import cycles, nanoseconds_per_cycle
from paneflow.merging.machine.atomics import observe, publish

ROWS, WIDTH, ROUNDS, TRIALS = 1024, 22, 200, 30


@njit(nogil=True)
def _write(rows, value):  # type: ignore[no-untyped-def]
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            rows[i, j] = value


@njit(nogil=True)
def _read(rows, total):  # type: ignore[no-untyped-def]
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            total[j] += rows[i, j]


@njit(nogil=True)
def _prepare(rows, turns, rounds):  # type: ignore[no-untyped-def]
    """Write the rows when it is this thread's turn."""
    for k in range(rounds):
        while observe(turns, 0) < 2 * k + 1:
            pass
        _write(rows, k)
        publish(turns, 0, 2 * k + 2)


@njit(nogil=True)
def _time(rows, total, turns, elsewhere, spent):  # type: ignore[no-untyped-def]
    """Time this thread's reads and writes, in turn, of rows written elsewhere or just here."""
    for k in range(len(spent)):
        if elsewhere:
            publish(turns, 0, 2 * k + 1)
            while observe(turns, 0) < 2 * k + 2:
                pass
        else:
            _write(rows, k)
        before: int = cycles()  # type: ignore[call-arg]
        if k & 1:
            _write(rows, -k)
        else:
            _read(rows, total)
        spent[k] = cycles() - before


def _trial(cores: list[int], elsewhere: bool, rounds: int) -> tuple[float, float]:
    """Cycles to read a row and to write one."""
    rows, total = np.zeros((ROWS, WIDTH)), np.zeros(WIDTH)
    turns, spent = np.zeros(8, np.int64), np.zeros(rounds, np.int64)

    def keep_to(core: int) -> None:
        if cores:
            os.sched_setaffinity(0, {cores[core]})

    def prepare() -> None:
        keep_to(-1)
        _prepare(rows, turns, rounds if elsewhere else 0)

    def timed() -> None:
        keep_to(0)
        _time(rows, total, turns, elsewhere, spent)

    threads = [threading.Thread(target=prepare), threading.Thread(target=timed)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return float(np.median(spent[::2]) / ROWS), float(np.median(spent[1::2]) / ROWS)


def crossing() -> dict[str, float]:
    """Nanoseconds to read and to write a row last touched on this core, and on another."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    unit = nanoseconds_per_cycle()
    figures: dict[str, float] = {}
    _trial(cores, True, 2)  # compiles
    for where, choose in (("own", min), ("other", max)):
        trials = []
        for _ in range(TRIALS):
            trials.append(_trial(cores, where == "other", ROUNDS))
            time.sleep(0.1)
        for what, spent in zip(("read", "write"), choose(trials, key=sum), strict=True):
            figures[f"{what}, {where} core's"] = spent * unit
    return figures
