"""PBA: the parallel boundary aggregator.

Zhang, Akbarinia, Toumani, "Efficient Incremental Computation of Aggregations over Sliding
Windows", KDD 2021, sections 4.1 to 4.4. As SBA, but a second thread makes
the left-cumulative aggregates of a chunk, while the caller fills the next. The caller never
waits for them, because chunks are half a window long: a chunk is needed again only when another
one has been filled (theorem 1; docs/merging.md derives it).

With two chunks to a window, a window has three parts: the left-cumulative rest of a chunk, a
whole chunk, and the cumulative part of the chunk being filled. The paper's caller merges the
three anew for each slide, three combines in all. Here the caller keeps the last two merged, which
leaves it two combines; what it then lacks is the aggregate of the chunk that it has just filled,
when it starts the next. The second thread makes that for the head of the chunk, and the caller
for its tail, one eighth, so that the second thread has time to finish.

Hand-over is by counters (`atomics.py`): the caller publishes how many partials it has inserted,
the second thread how many chunks it has finished. Nobody takes a lock.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, ClassVar

import numpy as np

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.merging.atomics import publish
from paneflow.merging.contract import Algorithm, Fifo, FifoMerger, MergeLoop
from paneflow.merging.sba import SBA

WORTH_A_THREAD = 2048
"""Slices in a chunk below which handing it over costs more than doing it (bench/merging)."""

SHORTEST_TAIL = 256
"""Slices that the second thread may lag behind without anybody waiting."""

# Counters that two threads share stand on cache lines of their own.
INSERTED, SUMMED, CUMULATED, STOP = 16, 32, 40, 48


def text(shape: Shape, state: str) -> str:
    """Ring a: as in SBA; g, h: heads and tails of chunks; b: all behind the front's chunk; e: tail.

    m[2]: chunk size; m[3]: start of the chunk that is being filled; m[4]: end of the chunk in
    which the window starts; m[5]: where b starts; m[6]: number of the front's chunk; m[7]: length
    of a head; m[8]: number of the chunk that is being filled.
    """
    return f"""
        from paneflow.merging.atomics import breathe, observe, publish


        @helper
        def await_beyond(m, counter, value):
            patience = 0
            while observe(m, counter) <= value:
                patience += 1
                if patience > 4096:
                    breathe(20)


        @helper
        def insert({state}, p):
            mask = len(a0) - 1
            if m[1] == m[3]:
                # The cells of the new chunk must not be in use any more.
                await_beyond(m, {CUMULATED}, (m[1] + m[2] - len(a0) - 1) // m[2])
            i = m[1] & mask
            {shape.store("a", "i", "p")}
            if m[5] == m[4]:
                r = combine({shape.load("b", "0")}, p)
                {shape.store("b", "0", "r")}
            if m[1] - m[3] > m[7]:
                r = combine({shape.load("e", "0")}, p)
                {shape.store("e", "0", "r")}
            elif m[1] - m[3] == m[7]:
                {shape.store("e", "0", "p")}
            m[1] += 1
            if m[1] - m[3] == m[2]:
                i = m[8] & mask
                r = {shape.load("e", "0")}
                {shape.store("h", "i", "r")}
                m[8] += 1
                m[3] = m[1]
                publish(m, {INSERTED}, m[1])
            elif m[1] & 63 == 0:
                publish(m, {INSERTED}, m[1])


        @helper
        def evict({state}):
            m[0] += 1
            if m[0] == m[4]:
                m[4] += m[2]
                m[6] += 1


        @helper
        def chunk({state}, number):
            await_beyond(m, {SUMMED}, number)
            i = number & (len(a0) - 1)
            if m[7] == 0:
                return {shape.fresh(shape.load("h", "i"))}
            return combine({shape.load("g", "i")}, {shape.load("h", "i")})


        @helper
        def query({state}):
            mask = len(a0) - 1
            if m[0] >= m[3]:
                r = identity
                for k in range(m[0], m[1]):
                    r = combine(r, {shape.load("a", "k & mask")})
                return {shape.fresh("r")}
            if m[5] != m[4]:
                # The front has entered another chunk: the rest begins behind that one.
                r = identity
                if m[4] < m[3]:
                    r = chunk({state}, m[6] + 1)
                    for number in range(m[6] + 2, m[8]):
                        r = combine(r, chunk({state}, number))
                for k in range(m[3], m[1]):
                    r = combine(r, {shape.load("a", "k & mask")})
                {shape.store("b", "0", "r")}
                m[5] = m[4]
            await_beyond(m, {CUMULATED}, m[6])
            if m[4] == m[1]:
                return {shape.fresh(shape.load("a", "m[0] & mask"))}
            return combine({shape.load("a", "m[0] & mask")}, {shape.load("b", "0")})
        """


def chunks(size: int) -> dict[int, int]:
    """Chunks of half a window, with a tail of an eighth, but long enough to be worth a head."""
    length = max(1, size // 2)
    tail = min(length, max(SHORTEST_TAIL, length // 8))
    return {2: length, 4: length, 7: length - tail}


PBA = Algorithm(
    "pba",
    text,
    rings=("a", "g", "h"),
    cells=(("b", 1), ("e", 1)),
    counters=64,
    initial=chunks,
)


def work_loop(shape: Shape) -> str:
    """The second thread: sum the head of each chunk as it fills, then cumulate from the right."""
    state = PBA.state(shape)
    return f"""
        def work({state}):
            mask = len(a0) - 1
            number = observe(m, {CUMULATED})
            position = number * m[2]
            summed = observe(m, {SUMMED}) > number
            r = identity
            patience = 0
            while True:
                inserted = observe(m, {INSERTED})
                head = number * m[2] + m[7]
                end = (number + 1) * m[2]
                if not summed and (position < min(inserted, head) or m[7] == 0):
                    patience = 0
                    for k in range(position, min(inserted, head)):
                        r = combine(r, {shape.load("a", "k & mask")})
                    position = min(inserted, head)
                    if position >= head:
                        {shape.store("g", "number & mask", "r")}
                        publish(m, {SUMMED}, number + 1)
                        summed = True
                elif summed and inserted >= end:
                    patience = 0
                    r = {shape.fresh(shape.load("a", "(end - 1) & mask"))}
                    for k in range(end - 2, number * m[2] - 1, -1):
                        r = combine({shape.load("a", "k & mask")}, r)
                        {shape.store("a", "k & mask", "r")}
                    number += 1
                    publish(m, {CUMULATED}, number)
                    position = end
                    summed = False
                    r = identity
                elif observe(m, {STOP}) != 0:
                    return
                else:
                    patience += 1
                    if patience > 4096:
                        breathe(20)
        """


class Pba(Fifo):
    """A FIFO window with a second thread, for windows of about `size` partials.

    Close it when done, or use it in a `with` block; a window that is dropped stops its thread.
    """

    def __init__(self, operator: Operator, size: int) -> None:
        super().__init__(PBA, operator, 2 * max(size, 4))
        for counter, value in chunks(size).items():
            self.counters[counter] = value
        self._work = kernel(operator, "work", work_loop, PBA.helpers)
        self._start()

    @property
    def stored(self) -> int:
        """How many partials are kept now: the window, two for each chunk, and two more."""
        return len(self) + 2 * -(-len(self) // int(self.counters[2])) + 2

    def _live(self, ring: str) -> Array:
        if ring == "a":
            return super()._live(ring)
        return np.arange(self.counters[6], self.counters[8] + 1)

    def _start(self) -> None:
        publish(self.counters, STOP, 0)
        self._thread = threading.Thread(
            target=self._work, args=self.state, name="paneflow-pba", daemon=True
        )
        self._thread.start()
        # The thread holds the arrays, not this object, so a dropped window can stop it.
        self._stop = weakref.finalize(self, publish, self.counters, STOP, 1)

    def close(self) -> None:
        """Stop the second thread."""
        self._stop()
        self._thread.join()

    def __enter__(self) -> Pba:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _grow(self) -> None:
        # The second thread leaves off between two chunks, and goes on from there.
        publish(self.counters, INSERTED, int(self.counters[1]))
        self.close()
        super()._grow()
        self._start()


def pays(operator: Operator, size: int) -> bool:
    """Whether a second thread is worth it: compiled, enough cores, and chunks long enough."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return operator.compiled and (cores or 1) > 1 and size // 2 >= WORTH_A_THREAD


def open_window(operator: Operator, size: int) -> Fifo:
    """PBA where a second thread pays, otherwise SBA."""
    return Pba(operator, size) if pays(operator, size) else Fifo(SBA, operator, size)


class PbaMerger(FifoMerger):
    """Merges by boundaries on two threads."""

    name: ClassVar[str] = "pba"
    algorithm: ClassVar[Algorithm] = PBA

    def merge(self, lo: Array, hi: Array) -> Partials:
        longest = int((hi - lo).max()) if len(lo) else 1
        merged = self._operator.empty(len(lo))
        window: Any = open_window(self._operator, longest)
        loop = MergeLoop(window.algorithm)
        run = kernel(self._operator, "merge", loop, window.algorithm.helpers)
        try:
            run(lo, hi, *window.state, *self._partials, *merged)
        finally:
            if isinstance(window, Pba):
                window.close()
        return merged
