"""Loops over FiBA: sliding in order, inserting at a distance, and dropping many at once."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator
from paneflow.merging.fiba import Fiba
from paneflow.merging.fiba_tree import layout
from paneflow.merging.fiba_tree.bulk import cut
from paneflow.merging.fiba_tree.layout import state, weave

SPREAD = 1 << 32
"""The distance between the times of a window, so that many more fit between two of them."""


def slides_loop(shape: Shape) -> str:
    """At each step evict the oldest, insert one `behind` before the newest, and query."""
    return weave(
        f"""
        def slides({state(shape)}, cuts, times, {shape.names("p")}, {shape.names("o")}):
            for i in range(len(times)):
                for half in range(2):
                    if half == 0:
                        t = cuts[i]
                        <cut>
                    else:
                        t = times[i]
                        p = {shape.load("p", "i")}
                        <insert>
                    <finish>
                <query>
                {shape.store("o", "i & 1023", "r")}
        """,
        cut=cut(shape),
        insert=layout.insert(shape),
        finish=layout.finish(shape),
        query=layout.query(shape),
    )


def evictions_loop(shape: Shape) -> str:
    """Drop `count` at once and query, timed; fill up again, untimed."""
    return weave(
        f"""
        def evictions({state(shape)}, count, size, {shape.names("p")}, {shape.names("o")}, spent):
            now = size
            for j in range(len(spent)):
                before = cycles()
                for step in range(count + 1):
                    if step == 0:
                        t = now - size + count - 1
                        <cut>
                    else:
                        t = now
                        p = {shape.load("p", "step - 1")}
                        now += 1
                        <append>
                    <finish>
                    if step == 0:
                        <query>
                        {shape.store("o", "j & 1023", "r")}
                        spent[j] = cycles() - before
        """,
        cut=cut(shape),
        append=layout.append(shape),
        finish=layout.finish(shape),
        query=layout.query(shape),
    )


def _clock(shape: Shape) -> str:
    return "\nfrom bench.merging.clock import cycles\n"


def _run(operator: Operator, window: Fiba, cuts: Array, times: Array, values: Array) -> float:
    loop: Any = kernel(operator, "slides", slides_loop)
    out = operator.empty(1024)
    none: Array = np.empty(0, np.int64)
    loop(*window.state, none, none, values, *out)
    before = time.perf_counter()
    loop(*window.state, cuts, times, values, *out)
    return time.perf_counter() - before


def seconds_in_fiba(operator: Operator, size: int, values: Array) -> float:
    """Seconds to slide a full window in order."""
    window = Fiba(operator, size + 1)
    window.bulk_insert(np.arange(size), values[:size])
    times = np.arange(size, len(values))
    return _run(operator, window, times - size, times, values[size:])


def seconds_at_distance(operator: Operator, size: int, distance: int, values: Array) -> float:
    """Seconds for slides that each insert `distance` entries before the newest.

    The newest entries were inserted ahead of time; later ones go one after another before them.
    """
    window = Fiba(operator, size + 1)
    first = np.arange(size) * SPREAD
    window.bulk_insert(first, values[:size])
    times = first[size - 1 - distance] + 1 + np.arange(len(values) - size)
    return _run(operator, window, first[: len(times)], times, values[size:])


def cycles_of_fiba_evictions(
    operator: Operator, size: int, count: int, rounds: int, values: Array
) -> Array:
    """The cycles to drop `count` entries of a full window at once and query, round by round."""
    window = Fiba(operator, size + 1)
    window.bulk_insert(np.arange(size), values[:size])
    spent = np.zeros(rounds, np.int64)
    loop: Any = kernel(operator, "evictions", evictions_loop, _clock)
    loop(*window.state, count, size, values, *operator.empty(1024), spent)
    return spent
