"""PBA against SBA: when is a second thread worth it?

By the size of partials (rows merged in place, and the same rows if every combine allocates an
array), and by the cost of a combine. `paneflow.merging.pba.pays` follows from these figures.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from bench.merging import pictures
from bench.merging.crossing import crossing
from bench.merging.operators import bloom, log_sum_exp, maximum, moments, roots
from bench.merging.quiet import wait_for_quiet
from bench.merging.windows import seconds_to_slide
from bench.report import Sheet
from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Operator
from paneflow.merging.machine.cost import nanoseconds

Figures = dict[str, Any]
CASES: dict[str, Callable[[], Operator]] = {
    "moment sketch": moments,
    "moment sketch, arrays made": lambda: replace(moments(), combine_into=None),
    "Bloom filter, 4,096 bits": lambda: bloom(4096),
    "log-sum-exp": log_sum_exp,
}
SWEPT = 1 << 16


def partials(operator: Operator, n: int) -> Array:
    """n arbitrary partials of an operator."""
    rng = np.random.default_rng(7)
    (component,) = operator.components
    if component.width is None:
        return rng.random(n)
    if component.dtype == "uint64":
        return rng.integers(0, 1 << 63, (n, component.width)).astype(np.uint64)
    return rng.random((n, component.width))


def rates(operator: Operator, size: int, count: int, rounds: int) -> dict[str, float]:
    """Million slides a second by SBA and PBA, in turns."""
    values = partials(operator, size + count)
    seconds = {"sba": float("inf"), "pba": float("inf")}
    for _ in range(rounds):
        for name in seconds:
            wait_for_quiet()
            spent = seconds_to_slide(name, operator, size, values)
            seconds[name] = min(seconds[name], spent)
    return {name: count / spent / 1e6 for name, spent in seconds.items()}


def by_range(quick: bool) -> dict[str, dict[int, dict[str, float]]]:
    """Large and expensive partials, for ranges of 2^12 to 2^17."""
    powers = (12, 15) if quick else (12, 13, 15, 16, 17)
    count = 1 << (15 if quick else 17)
    return {
        what: {1 << power: rates(make(), 1 << power, count, 2 if quick else 4) for power in powers}
        for what, make in CASES.items()
    }


def by_cost(quick: bool) -> list[dict[str, float]]:
    """Numbers with more and more expensive combines, at a range of 2^16."""
    figures = []
    for rounds in (0, 4) if quick else (0, 1, 2, 3, 5, 8):
        operator = roots(rounds) if rounds else maximum()
        row = rates(operator, SWEPT, 1 << (15 if quick else 18), 2 if quick else 4)
        figures.append({"ns": nanoseconds(operator), "ratio": row["pba"] / row["sba"]})
    return figures


def fold_loop(shape: Shape) -> str:
    """Fold a column several times over."""
    return f"""
        def fold(times, {shape.names("p")}):
            r = {shape.load("p", "0")}
            for _ in range(times):
                for i in range(len(p0)):
                    r = combine(r, {shape.load("p", "i")})
            return r
        """


def together(operator: Operator) -> dict[str, float]:
    """Nanoseconds of a combine that allocates, on one thread and on two that share nothing."""
    fold = kernel(operator, "fold", fold_loop)
    mine, times = [partials(operator, 1000) for _ in range(2)], 2000
    fold(1, mine[0])

    def spent(threads: int) -> float:
        workers = [threading.Thread(target=fold, args=(times, mine[k])) for k in range(threads)]
        before = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return (time.perf_counter() - before) / (times * 1000) * 1e9

    return {f"{k} thread{'s' * (k > 1)}": min(spent(k) for _ in range(5)) for k in (1, 2)}


def run(quick: bool) -> tuple[Figures, list[Sheet]]:
    """By range, by cost, and what allocating arrays costs two threads."""
    figures: Figures = {
        "range": by_range(quick),
        "cost": by_cost(quick),
        "arrays": together(replace(moments(), combine_into=None)),
        "crossing": crossing(),
    }
    rows = [
        [
            [what if first else "", f"{size:,}", f"{r['sba']:.2f}", f"{r['pba']:.2f}", _ratio(r)]
            for first, (size, r) in zip((True, *[False] * 9), ranges.items(), strict=False)
        ]
        for what, ranges in figures["range"].items()
    ]
    swept = [[[f"{point['ns']:.1f}", f"{point['ratio']:.2f}"]] for point in figures["cost"]]
    crossed = [[[what, f"{ns:.0f}"]] for what, ns in figures["crossing"].items()]
    arrays = [[[threads, f"{ns:.0f}"]] for threads, ns in figures["arrays"].items()]
    return figures, [
        Sheet(
            "a second thread: million slides a second, by range",
            ("contestant", "range", "SBA", "PBA", "PBA / SBA"),
            rows,
        ),
        Sheet(
            f"a second thread at range {SWEPT:,}, by what a combine costs",
            ("nanoseconds of a combine", "PBA / SBA"),
            swept,
        ),
        Sheet("combines that make arrays", ("folding on", "nanoseconds of a combine"), arrays),
        Sheet("a row of 22 numbers, last touched by", ("what", "nanoseconds a row"), crossed),
    ]


def _ratio(row: dict[str, float]) -> str:
    return f"{row['pba'] / row['sba']:.2f}"


def targets(figures: Figures) -> Iterator[tuple[bool, str]]:
    """PBA is faster for large partials and ranges of 2^15 and more."""
    for size, row in figures["range"]["moment sketch"].items():
        if size >= 1 << 15:
            text = f"moment sketch, range {size:,}: PBA is {_ratio(row)} times as fast as SBA (1)"
            yield row["pba"] > row["sba"], text


def draw(figures: Figures) -> None:
    """Gain by range and by cost."""
    pictures.draw_handover(figures)
