"""Sorting by a T-Gate: many sorted inputs, each pushed by a thread of its own, and one reader.

Next to it, the same inputs merged by a binary heap that is compiled in the same way and has all of
them at hand in one thread, and by `heapq.merge`. Figure 7 of Gulisano et al., "Efficient Data
Streaming Multiway Aggregation Through Concurrent Algorithmic Designs and New Abstract Data Types",
has about 2.2 million tuples a second for 20 inputs, in Java on 24 hardware threads.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.multicore import pictures
from bench.multicore.heap_merge import heap_merge
from bench.report import Sheet
from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.multiway.tuple_gate import TupleGate

INPUTS = (1, 2, 5, 10, 15, 20)
BATCH, CAPACITY = 4096, 2**16
PROMISED, KEPT = 8e6, 0.8
ROUNDS = 8
Figures = dict[str, Any]


def inputs(sources: int, tuples: int) -> list[Array]:
    """Sorted times, as many for each source, with some ties."""
    rng = np.random.default_rng(7)
    each = tuples // sources
    return [np.sort(rng.integers(0, 5 * tuples, each)) for _ in range(sources)]


def through_gate(given: list[Array]) -> float:
    """Seconds from the first insert until the reader has all tuples."""
    gate = TupleGate(len(given), 1, CAPACITY)
    begin = threading.Event()

    def write(source: int) -> None:
        begin.wait()
        for at in range(0, len(given[source]), BATCH):
            gate.insert(source, given[source][at : at + BATCH])
        gate.close(source)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(len(given))]
    for thread in threads:
        thread.start()
    left = sum(map(len, given))
    start = time.perf_counter()
    begin.set()
    while left:
        found = len(gate.ready(0).times)
        left -= found
        if not found:
            time.sleep(0.0002)
    spent = time.perf_counter() - start
    for thread in threads:
        thread.join()
    return spent


def alone(given: list[Array]) -> tuple[float, float]:
    """Seconds of processor time for all inserts and for all reads, by one thread in turn."""
    gate = TupleGate(len(given), 1, CAPACITY)
    inserting = reading = 0.0
    for at in range(0, len(given[0]), BATCH):
        start = time.thread_time()
        for source, times in enumerate(given):
            gate.insert(source, times[at : at + BATCH])
        middle = time.thread_time()
        while len(gate.ready(0).times):
            pass
        inserting += middle - start
        reading += time.thread_time() - middle
    return inserting, reading


def by_heap(given: list[Array]) -> float:
    """Seconds of one thread with a compiled heap."""
    times, ends = np.concatenate(given), np.cumsum([len(each) for each in given])
    found = [np.empty(len(times), np.int64) for _ in range(3)]
    start = time.perf_counter()
    heap_merge(times, ends, *found)
    spent = time.perf_counter() - start
    assert np.array_equal(found[0], np.sort(times))
    return spent


def by_heapq(given: list[Array]) -> float:
    """Seconds of `heapq.merge`, over tuples of time, source and position."""
    lists = [
        [(t, source, i) for i, t in enumerate(times.tolist())] for source, times in enumerate(given)
    ]
    start = time.perf_counter()
    for _ in heapq.merge(*lists):
        pass
    return time.perf_counter() - start


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """Tuples a second by the number of inputs; the best of some rounds."""
    tuples = 100_000 if quick else 8_000_000
    ways: dict[str, tuple[Callable[[list[Array]], float], int]] = {
        "T-Gate": (through_gate, 1),
        "compiled heap": (by_heap, 1),
        "heapq.merge": (by_heapq, 40),
    }
    figures: Figures = {str(sources): dict.fromkeys(ways, 0.0) for sources in INPUTS}
    for name, (way, fraction) in ways.items():
        given = {sources: inputs(sources, tuples // fraction) for sources in INPUTS}
        way(given[INPUTS[-1]])
        # All inputs in turn, so that what else the machine does meets all of them.
        for _, sources in itertools.product(range(1 if quick else ROUNDS), INPUTS):
            rate = sum(map(len, given[sources])) / way(given[sources])
            figures[str(sources)][name] = max(rate, figures[str(sources)][name])
    rows = []
    for sources in INPUTS:
        row, given_all = figures[str(sources)], inputs(sources, tuples)
        nanoseconds = [1e9 * spent / sum(map(len, given_all)) for spent in alone(given_all)]
        row["insert"], row["read"] = nanoseconds
        cells = [f"{row[name] / 1e6:.1f}" for name in ways]
        rows.append([str(sources), *cells, *(f"{each:.1f}" for each in nanoseconds)])
    headings = ("inputs", *(f"{name}: million/s" for name in ways), "insert: ns", "read: ns")
    return figures, [Sheet("tuples sorted a second, by inputs", headings, [rows])]


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """Fast with many inputs, hardly slower than with few, and faster than heaps."""
    many, few = figures["20"], figures["5"]
    gate = many["T-Gate"]
    yield (
        gate >= PROMISED,
        f"20 inputs: {gate / 1e6:.1f} million tuples a second ({PROMISED / 1e6:g})",
    )
    ratio = gate / few["T-Gate"]
    yield ratio >= KEPT, f"20 inputs: {ratio:.2f} of the speed with 5 inputs ({KEPT:g})"
    for name in ("compiled heap", "heapq.merge"):
        ratio = gate / many[name]
        yield ratio > 1, f"20 inputs: {ratio:.1f} times as fast as a {name} (1)"


def draw(figures: Figures) -> None:
    """Tuples a second by inputs."""
    pictures.draw_gate(figures)
