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

Hand-over is by counters (`machine/atomics.py`): the caller publishes how many partials it has
inserted, the second thread how many chunks it has finished. There is no lock.
"""

from __future__ import annotations

import os
import textwrap
import threading
import weakref
from typing import Any, ClassVar

import numpy as np

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.merging.contract import Algorithm, Fifo, FifoMerger, MergeLoop, power
from paneflow.merging.machine.atomics import publish
from paneflow.merging.machine.cost import nanoseconds
from paneflow.merging.sba import SBA

WORTH_A_THREAD = 2048
"""Slices in a chunk below which handing it over costs more than doing it (bench/merging)."""

WORTH_SHARING = 15.0
"""Nanoseconds of a combine below which two threads lose more than they gain."""

SHORTEST_TAIL = 256
"""Slices that the second thread may lag behind without anybody waiting."""

# Counters that two threads share stand on cache lines of their own.
INSERTED, SUMMED, CUMULATED, STOP = 16, 32, 33, 48


def text(shape: Shape, state: str) -> str:
    """Ring a: as in SBA; g, h: heads and tails of chunks, by number; e: the tail being filled.

    b: all behind the front's chunk, or all there is while none lies behind; and the answer.
    m[2]: chunk size; m[3]: start of the chunk that is being filled; m[4]: end of the chunk in
    which the window starts; m[5]: where b starts; m[6]: number of the front's chunk; m[7]: length
    of a head; m[8]: number of the chunk that is being filled; m[9]: inserts between two signs to
    the second thread, less one.
    """
    rest = shape.load("b", "0")
    front = shape.load("a", "m[0] & mask")
    return f"""
        from paneflow.merging.machine.atomics import breathe, observe, publish


        @in_place
        def await_beyond(m, counter, value):
            patience = 0
            while observe(m, counter) <= value:
                patience += 1
                if patience > 4096:
                    breathe(20)


        @in_place
        def insert({state}, p):
            mask = len(a0) - 1
            if m[1] == m[3]:
                # The cells of the new chunk must not be in use any more.
                await_beyond(m, {CUMULATED}, (m[1] + m[2] - len(a0) - 1) // m[2])
            i = m[1] & mask
            {shape.store("a", "i", "p")}
            if m[5] == m[4] or (m[5] == m[0] and m[0] >= m[3]):
                {shape.merge_at("b", "0", rest, "p")}
            if m[1] - m[3] > m[7]:
                {shape.merge_at("e", "0", shape.load("e", "0"), "p")}
            elif m[1] - m[3] == m[7]:
                {shape.store("e", "0", "p")}
            m[1] += 1
            if m[1] - m[3] == m[2]:
                i = m[8] & (len(h0) - 1)
                {shape.store("h", "i", shape.load("e", "0"))}
                m[8] += 1
                m[3] = m[1]
                publish(m, {INSERTED}, m[1])
            elif m[1] & m[9] == 0:
                publish(m, {INSERTED}, m[1])


        @in_place
        def evict({state}):
            m[0] += 1
            if m[0] == m[4]:
                m[4] += m[2]
                m[6] += 1


        @in_place
        def gather({state}):
            # The front has entered another chunk: the rest begins behind that one.
            mask = len(a0) - 1
            {shape.store("b", "0", "identity")}
            for number in range(m[6] + 1, m[8]):
                await_beyond(m, {SUMMED}, number)
                i = number & (len(h0) - 1)
                if number == m[6] + 1 and m[7] == 0:
                    {shape.store("b", "0", shape.load("h", "i"))}
                elif number == m[6] + 1:
                    {shape.merge_at("b", "0", shape.load("g", "i"), shape.load("h", "i"))}
                else:
                    if m[7] > 0:
                        {shape.merge_at("b", "0", rest, shape.load("g", "i"))}
                    {shape.merge_at("b", "0", rest, shape.load("h", "i"))}
            for k in range(m[3], m[1]):
                {shape.merge_at("b", "0", rest, shape.load("a", "k & mask"))}
            m[5] = m[4]


        @in_place
        def query({state}):
            mask = len(a0) - 1
            if m[0] >= m[3]:
                # Not even a whole chunk, as while the first one fills.
                if m[5] != m[0]:
                    {shape.store("b", "0", "identity")}
                    for k in range(m[0], m[1]):
                        {shape.merge_at("b", "0", rest, shape.load("a", "k & mask"))}
                    m[5] = m[0]
                {shape.store("b", "1", rest)}
                return
            if m[5] != m[4]:
                gather({state})
            await_beyond(m, {CUMULATED}, m[6])
            if m[4] == m[1]:
                {shape.store("b", "1", front)}
            else:
                {shape.merge_at("b", "1", front, rest)}
        """


def chunks(size: int) -> dict[int, int]:
    """Chunks of half a window, with a tail of an eighth, but long enough to be worth a head."""
    length = max(1, size // 2)
    tail = min(length, max(SHORTEST_TAIL, length // 8))
    # A second thread close behind the first would read the very cache lines that are written.
    apart = min(max(power(tail // 4), 64), 1024)
    return {2: length, 4: length, 7: length - tail, 9: apart - 1}


PBA = Algorithm(
    "pba",
    text,
    rings=("a", "g", "h"),
    cells=(("b", 2), ("e", 1)),
    counters=64,
    initial=chunks,
    answer=("b", 1),
)


def work_helpers(shape: Shape) -> str:
    """The window's functions, and the two things that the second thread does."""
    state = PBA.state(shape)
    cumulate = shape.merge_at("a", "k & mask", shape.load("a", "k & mask"), "r")
    return (
        textwrap.dedent(PBA.helpers(shape))
        + f"""

@in_place
def sum_head({state}, cell, start, end, fresh):
    mask = len(a0) - 1
    if fresh:
        {shape.store("g", "cell", "identity")}
    r = {shape.load("g", "cell")}
    for k in range(start, end):
        {shape.merge_at("g", "cell", "r", shape.load("a", "k & mask"))}


@in_place
def cumulate({state}, start, end):
    mask = len(a0) - 1
    r = {shape.load("a", "(end - 1) & mask")}
    for k in range(end - 2, start - 1, -1):
        {cumulate}
"""
    )


def work_loop(shape: Shape) -> str:
    """The second thread: sum the head of each chunk as it fills, then cumulate from the right."""
    state = PBA.state(shape)
    return f"""
        def work({state}):
            # The caller writes to counters beside these all the time: they are read only once.
            size = m[2]
            length = m[7]
            number = observe(m, {CUMULATED})
            position = number * size
            summed = observe(m, {SUMMED}) > number
            patience = 0
            while True:
                inserted = observe(m, {INSERTED})
                start = number * size
                ready = min(inserted, start + length)
                if not summed and (position < ready or length == 0):
                    patience = 0
                    if length > 0:
                        cell = number & (len(g0) - 1)
                        sum_head({state}, cell, position, ready, position == start)
                    position = ready
                    if position >= start + length:
                        publish(m, {SUMMED}, number + 1)
                        summed = True
                elif summed and inserted >= start + size:
                    patience = 0
                    cumulate({state}, start, start + size)
                    number += 1
                    publish(m, {CUMULATED}, number)
                    position = start + size
                    summed = False
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
        for name in ("g", "h"):
            self.rings[name] = operator.empty(power(self._capacity // int(self.counters[2]) + 2))
        self._work = kernel(operator, "work", work_loop, work_helpers)
        self._start()

    @property
    def stored(self) -> int:
        """How many partials are kept now: the window, head and tail of each chunk, three more."""
        parts = 2 if self.counters[7] else 1
        return len(self) + parts * -(-len(self) // int(self.counters[2])) + 3

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
    """Whether a second thread is worth it, by what was measured (docs/merging.md).

    There must be a second core, chunks must be long enough to be handed over, and a combine
    expensive enough to be worth sharing. If every combine allocates an array, two threads slow
    each other down, however expensive it is.

    Two threads group combines in another way. Where that shows in the last bits, neither the
    machine nor a stopwatch may decide, and one thread does it.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if not (operator.compiled and operator.exact) or (cores or 1) < 2:
        return False
    makes_arrays = operator.combine_into is None and any(
        c.width is not None for c in operator.components
    )
    long = size // 2 >= WORTH_A_THREAD
    return long and not makes_arrays and nanoseconds(operator) >= WORTH_SHARING


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
