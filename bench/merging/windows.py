"""Streaming windows by name, and the loops that slide them."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator
from paneflow.merging.contract import Algorithm, Fifo
from paneflow.merging.daba import DABA, DABA_LITE
from paneflow.merging.flat_fat import FLAT_FAT
from paneflow.merging.flat_fit import FLAT_FIT
from paneflow.merging.linked import LinkedFifo
from paneflow.merging.pba import Pba
from paneflow.merging.recalculate import RECALCULATE
from paneflow.merging.sba import SBA
from paneflow.merging.slick_deque import slick_deque
from paneflow.merging.two_stacks import TWO_STACKS, TWO_STACKS_LITE

OPEN: dict[str, Callable[[Operator, int], Any]] = {
    "recalculate": lambda operator, size: Fifo(RECALCULATE, operator, size),
    "two_stacks": lambda operator, size: Fifo(TWO_STACKS, operator, size),
    "two_stacks_lite": lambda operator, size: Fifo(TWO_STACKS_LITE, operator, size),
    "daba": lambda operator, size: Fifo(DABA, operator, size),
    "daba_lite": lambda operator, size: Fifo(DABA_LITE, operator, size),
    "slick_deque": slick_deque,
    "flat_fit": lambda operator, size: LinkedFifo(FLAT_FIT, operator, size),
    "flat_fat": lambda operator, size: Fifo(FLAT_FAT, operator, size),
    "sba": lambda operator, size: Fifo(SBA, operator, size),
    "pba": Pba,
}

MOST = {"recalculate": 256}
"""Beyond this many slices an algorithm takes too long to be worth a figure."""
LEAST = {"pba": 1024}
"""Below this many slices two threads only wait for each other."""


@dataclass(frozen=True)
class Slides:
    """Writes the loop that slides a full window by one partial, or by `step` of them."""

    algorithm: Algorithm
    single: bool = True

    def __call__(self, shape: Shape) -> str:
        state = self.algorithm.state(shape)
        if self.single:
            slide = f"""
                    if m[1] - m[0] == size:
                        evict({state})
                    insert({state}, {shape.load("p", "i")})"""
        else:
            slide = f"""
                    while m[1] - m[0] > size - step:
                        evict({state})
                    for k in range(i, i + step):
                        insert({state}, {shape.load("p", "k")})"""
        return f"""
            def slides({state}, size, step, start, end, {shape.names("p")}, {shape.names("o")}):
                for i in range(start, end - step + 1, step):{slide}
                    {self.algorithm.ask(shape)}
                    {shape.store("o", "i & 1023", "r")}
            """


@dataclass(frozen=True)
class TimeSlides:
    """Writes the loop over slices with times: those older than the range leave."""

    algorithm: Algorithm

    def __call__(self, shape: Shape) -> str:
        state = self.algorithm.state(shape)
        return f"""
            def slides({state}, length, t, start, end, {shape.names("p")}, {shape.names("o")}):
                for i in range(start, end):
                    while m[0] < m[1] and t[m[0]] <= t[i] - length:
                        evict({state})
                    insert({state}, {shape.load("p", "i")})
                    {self.algorithm.ask(shape)}
                    {shape.store("o", "i & 1023", "r")}
            """


@dataclass(frozen=True)
class TimedSlides:
    """Writes the loop that reads the clock around every slide."""

    algorithm: Algorithm

    def __call__(self, shape: Shape) -> str:
        state = self.algorithm.state(shape)
        return f"""
            def slides({state}, size, {shape.names("p")}, {shape.names("o")}, spent):
                for i in range(len(p0)):
                    before = cycles()
                    if m[1] - m[0] == size:
                        evict({state})
                    insert({state}, {shape.load("p", "i")})
                    {self.algorithm.ask(shape)}
                    {shape.store("o", "i & 1023", "r")}
                    spent[i] = cycles() - before
            """


@dataclass(frozen=True)
class Evictions:
    """Writes the loop that drops many and queries, timed, then fills up again, untimed."""

    algorithm: Algorithm

    def __call__(self, shape: Shape) -> str:
        state = self.algorithm.state(shape)
        return f"""
            def evictions({state}, count, {shape.names("p")}, {shape.names("o")}, spent):
                for j in range(len(spent)):
                    before = cycles()
                    for k in range(count):
                        evict({state})
                    {self.algorithm.ask(shape)}
                    {shape.store("o", "j & 1023", "r")}
                    spent[j] = cycles() - before
                    for k in range(count):
                        insert({state}, {shape.load("p", "k")})
                    {self.algorithm.ask(shape)}
            """


@dataclass(frozen=True)
class Clocked:
    """The algorithm's functions, and the clock."""

    algorithm: Algorithm

    def __call__(self, shape: Shape) -> str:
        text = textwrap.dedent(self.algorithm.helpers(shape))
        return "\nfrom bench.merging.clock import cycles\n" + text


class Opened:
    """A window of an algorithm, with room for its answers; closed at the end."""

    def __init__(self, name: str, operator: Operator, size: int) -> None:
        self.window = OPEN[name](operator, size)
        self.operator = operator
        self.algorithm: Algorithm = self.window.algorithm
        self.out = operator.empty(1024)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *exception: object) -> None:
        if isinstance(self.window, Pba):
            self.window.close()

    def kernel(self, name: str, loop: Any, clocked: bool = False) -> Any:
        """A compiled loop over the window."""
        before = Clocked(self.algorithm) if clocked else self.algorithm.helpers
        return kernel(self.operator, name, loop, before)


def seconds_to_slide(
    name: str, operator: Operator, size: int, values: Array, step: int = 1
) -> float:
    """Seconds to slide a full window over values, of which the first `size` fill it."""
    with Opened(name, operator, size) as opened:
        state, out = opened.window.state, opened.out
        fill = opened.kernel("slides", Slides(opened.algorithm))
        fill(*state, size, 1, 0, size, values, *out)
        run = fill if step == 1 else opened.kernel("slides", Slides(opened.algorithm, single=False))
        run(*state, size, step, size, size, values, *out)
        before = time.perf_counter()
        run(*state, size, step, size, len(values), values, *out)
        return time.perf_counter() - before


def seconds_by_time(
    name: str, operator: Operator, size: int, length: int, times: Array, values: Array
) -> float:
    """Seconds for a time window, after the slices of its first range."""
    with Opened(name, operator, size) as opened:
        state, out = opened.window.state, opened.out
        run = opened.kernel("slides", TimeSlides(opened.algorithm))
        filled = int(np.searchsorted(times, length))
        run(*state, length, times, 0, filled, values, *out)
        before = time.perf_counter()
        run(*state, length, times, filled, len(values), values, *out)
        return time.perf_counter() - before


def cycles_of_slides(name: str, operator: Operator, size: int, values: Array) -> Array:
    """The cycles of each slide, including those that fill the window."""
    spent = np.zeros(len(values), np.int64)
    with Opened(name, operator, size) as opened:
        run = opened.kernel("slides", TimedSlides(opened.algorithm), clocked=True)
        run(*opened.window.state, size, values, *opened.out, spent)
    return spent


def cycles_of_evictions(
    name: str, operator: Operator, size: int, count: int, rounds: int, values: Array
) -> Array:
    """The cycles to drop `count` of a full window of `size` and query, round by round."""
    spent = np.zeros(rounds, np.int64)
    with Opened(name, operator, size) as opened:
        fill = opened.kernel("slides", Slides(opened.algorithm))
        fill(*opened.window.state, size, 1, 0, size, values, *opened.out)
        run = opened.kernel("evictions", Evictions(opened.algorithm), clocked=True)
        run(*opened.window.state, count, values, *opened.out, spent)
    return spent
