"""Merge algorithms: throughput, the latency of every slide, and rolling maxima against peers.

The grids are those of Zhang, Akbarinia and Toumani (KDD 2021): max over ranges of 8 to a million
slices; the time of each single slide; and the moment sketch, whose partials are large.
"""

from __future__ import annotations

import argparse
import json
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
from llvmlite import ir
from matplotlib.figure import Figure as Picture
from numba import njit, types
from numba.extending import intrinsic

from bench.report import Sheet, console, verdict
from paneflow.aggregates import extremes, sketches
from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Array, Component, Input, Operator
from paneflow.aggregates.values import Kind
from paneflow.merging.contract import Algorithm, Fifo
from paneflow.merging.daba import DABA, DABA_LITE
from paneflow.merging.flat_fat import FLAT_FAT
from paneflow.merging.flat_fit import FLAT_FIT
from paneflow.merging.linked import LinkedFifo
from paneflow.merging.pba import Pba
from paneflow.merging.recalculate import RECALCULATE
from paneflow.merging.sba import SBA, Sba
from paneflow.merging.slick_deque import slick_deque
from paneflow.merging.two_stacks import TWO_STACKS, TWO_STACKS_LITE

HERE = Path(__file__).resolve().parent
PICTURES = HERE.parent / "docs" / "img"
MILLION = 1_000_000

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


@intrinsic
def cycles(typing_context):  # type: ignore[no-untyped-def]
    """The processor's cycle counter."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        counter = builder.module.declare_intrinsic(
            "llvm.readcyclecounter", fnty=ir.FunctionType(ir.IntType(64), [])
        )
        return builder.call(counter, [])

    return types.int64(), generate


@njit(nogil=True)
def read_cycles():  # type: ignore[no-untyped-def]
    """The counter, for Python."""
    return cycles()


def nanoseconds_per_cycle() -> float:
    """How long a cycle of the counter lasts."""
    read_cycles()
    before, counted = time.perf_counter_ns(), read_cycles()
    time.sleep(0.2)
    return float((time.perf_counter_ns() - before) / (read_cycles() - counted))


@dataclass(frozen=True)
class Timed:
    """Writes the loop that times every slide of a full window."""

    algorithm: Algorithm

    def __call__(self, shape: Shape) -> str:
        state = self.algorithm.state(shape)
        return f"""
            def timed({state}, size, {shape.names("p")}, {shape.names("o")}, spent):
                for i in range(len(p0)):
                    before = cycles()
                    if m[1] - m[0] == size:
                        evict({state})
                    insert({state}, {shape.load("p", "i")})
                    r = query({state})
                    spent[i] = cycles() - before
                    {shape.store("o", "i & 1023", "r")}
            """


@dataclass(frozen=True)
class Run:
    """Writes the same loop without the clock."""

    algorithm: Algorithm

    def __call__(self, shape: Shape) -> str:
        state = self.algorithm.state(shape)
        return f"""
            def run({state}, size, {shape.names("p")}, {shape.names("o")}):
                for i in range(len(p0)):
                    if m[1] - m[0] == size:
                        evict({state})
                    insert({state}, {shape.load("p", "i")})
                    r = query({state})
                    {shape.store("o", "i & 1023", "r")}
            """


def clocked(algorithm: Algorithm) -> Callable[[Shape], str]:
    """The algorithm's functions, and the clock."""

    def text(shape: Shape) -> str:
        return "\nfrom bench.merging import cycles\n" + textwrap.dedent(algorithm.helpers(shape))

    return text


def slide_all(name: str, operator: Operator, size: int, values: Array, clock: bool) -> Any:
    """Seconds for all slides, or the cycles of each."""
    window = OPEN[name](operator, size)
    algorithm = window.algorithm
    out = operator.empty(1024)
    try:
        if clock:
            spent = np.zeros(len(values), np.int64)
            run = kernel(operator, "timed", Timed(algorithm), clocked(algorithm))
            run(*window.state, size, values, *out, spent)
            return spent
        run = kernel(operator, "run", Run(algorithm), algorithm.helpers)
        # Fill the window first, so that only full windows are measured.
        run(*window.state, size, values[:size], *out)
        before = time.perf_counter()
        run(*window.state, size, values[size:], *out)
        return time.perf_counter() - before
    finally:
        if isinstance(window, Pba):
            window.close()


def maximum() -> Operator:
    """max over floats."""
    (operator,) = extremes.max("v").operators({"v": Kind.FLOAT})
    return operator


def moments() -> Operator:
    """The moment sketch: a row of 22 numbers."""
    (operator,) = sketches.moment_sketch("v").operators({"v": Kind.FLOAT})
    return operator


def throughput(quick: bool) -> dict[str, dict[int, float]]:
    """Grid (i): million slides a second for max, by range."""
    powers = range(3, 15, 3) if quick else range(3, 21)
    values = np.random.default_rng(0).normal(size=3 * MILLION)
    figures: dict[str, dict[int, float]] = {}
    for name in OPEN:
        figures[name] = {}
        for power in powers:
            size = 1 << power
            if name == "recalculate" and power > 7:
                continue
            mine = values[: size + (200_000 if quick else MILLION)]
            slide_all(name, maximum(), size, mine[: size + 1000], clock=False)
            seconds = min(slide_all(name, maximum(), size, mine, clock=False) for _ in range(2))
            figures[name][size] = (len(mine) - size) / seconds / 1e6
    sizes = sorted({size for row in figures.values() for size in row})
    rows = [
        [[name, *(f"{row[s]:.1f}" if s in row else "" for s in sizes)]]
        for name, row in figures.items()
    ]
    Sheet("max: million slides a second, by range", ("algorithm", *map(str, sizes)), rows).show()
    return figures


def latency(quick: bool) -> dict[str, dict[str, float]]:
    """Grid (iv): nanoseconds of each slide."""
    scale = nanoseconds_per_cycle()
    figures: dict[str, dict[str, float]] = {}
    curves: dict[str, Array] = {}
    cases = [("max", maximum(), 1 << 13), ("max", maximum(), 1 << 14)]
    cases += [("moments", moments(), 3600), ("moments", moments(), 7200)]
    names = ("two_stacks", "two_stacks_lite", "slick_deque", "daba", "daba_lite", "sba", "pba")
    for what, operator, size in cases:
        count = (100_000 if quick else MILLION) if what == "max" else 20_000 if quick else 100_000
        rng = np.random.default_rng(1)
        values = rng.normal(size=count) if what == "max" else rng.random((count, 22))
        for name in names:
            if name == "slick_deque" and what == "moments":
                continue
            slide_all(name, operator, size, values[: size + 1000], clock=True)
            spent = slide_all(name, operator, size, values, clock=True)[2 * size :] * scale
            case = f"{what} {size} {name}"
            points = np.percentile(spent, [0, 25, 50, 75, 99.99, 100])
            labels = ("min", "lower", "median", "upper", "p99.99", "max")
            figures[case] = dict(zip(labels, map(float, points), strict=True))
            figures[case] |= {"mean": float(spent.mean()), "std": float(spent.std())}
            if what == "max" and size == 1 << 14:
                curves[name] = np.sort(spent)
    headings = ("case", *next(iter(figures.values())))
    rows = [[[case, *(f"{v:,.0f}" for v in row.values())]] for case, row in figures.items()]
    Sheet("nanoseconds of a slide", headings, rows).show()
    for name in ("daba", "daba_lite", "pba", "two_stacks"):
        row = figures[f"max {1 << 14} {name}"]
        ratio = row["p99.99"] / row["median"]
        if name == "two_stacks":
            console.print(
                f"two_stacks: p99.99 is {ratio:,.1f} medians, its worst {row['max']:,.0f} ns"
            )
        else:
            verdict(
                ratio <= 5, f"{name}: p99.99 of a slide at range 2^14 is {ratio:.1f} medians (5)"
            )
    draw_latency(curves)
    return figures


def draw_latency(curves: dict[str, Array]) -> None:
    """The share of slides that take longer, by nanoseconds."""
    matplotlib.rcParams["svg.hashsalt"] = "paneflow"
    picture = Picture(figsize=(7.5, 4.2), layout="constrained")
    panel = picture.subplots()
    for name, spent in curves.items():
        share = 1 - np.arange(len(spent)) / len(spent)
        keep = np.unique(np.geomspace(1, len(spent), 400).astype(int)) - 1
        keep = len(spent) - 1 - keep
        panel.plot(spent[keep], share[keep], label=name)
    panel.set(xscale="log", yscale="log", xlabel="nanoseconds", ylabel="share of slides as slow")
    panel.set_title("max over 16,384 slices: latency of a slide", loc="left")
    panel.legend(frameon=False)
    PICTURES.mkdir(parents=True, exist_ok=True)
    picture.savefig(PICTURES / "merging-latency.svg", metadata={"Date": None})


def large_partials(quick: bool) -> dict[int, dict[str, float]]:
    """PBA against SBA where combining is dear."""
    figures: dict[int, dict[str, float]] = {}
    for power in (13, 15) if quick else (13, 14, 15, 16, 17):
        size = 1 << power
        values = np.random.default_rng(2).random((size + (1 << 17), 22))
        figures[size] = {}
        for name in ("two_stacks_lite", "daba_lite", "sba", "pba"):
            slide_all(name, moments(), 256, values[:2000], clock=False)
            seconds = min(slide_all(name, moments(), size, values, clock=False) for _ in range(3))
            figures[size][name] = (1 << 17) / seconds / 1e6
    rows = [[[f"{s:,}", *(f"{v:.2f}" for v in row.values())]] for s, row in figures.items()]
    names = next(iter(figures.values()))
    Sheet("moment sketch: million slides a second", ("range", *names), rows).show()
    for size, row in figures.items():
        if size >= 1 << 15:
            faster = row["pba"] / row["sba"]
            verdict(faster > 1, f"range {size:,}: PBA is {faster:.2f} times as fast as SBA (1)")
    return figures


def rolling(quick: bool) -> dict[str, dict[str, float]]:
    """A rolling maximum over an int32 column, one core, against peers and memcpy."""
    n = 2 * MILLION if quick else 20 * MILLION
    values = np.random.default_rng(3).integers(0, 1 << 30, n, dtype=np.int32)
    least = int(np.iinfo(np.int32).min)
    operator = Operator(
        "max",
        (Input("v"),),
        (Component("value", "int32"),),
        (least,),
        maximum().combine,
        maximum().lift,
        selective=True,
    )
    merger = Sba(operator, (values,))
    series, frame = pl.Series(values), pd.Series(values)
    target = np.empty_like(values)
    figures: dict[str, dict[str, float]] = {}
    for size in (1024, 131_072):
        contestants: dict[str, Callable[[], Any]] = {
            "memcpy": lambda: np.copyto(target, values),
            "paneflow": lambda size=size: merger.slide(size),  # type: ignore[misc]
            "polars": lambda size=size: series.rolling_max(size),  # type: ignore[misc]
            "pandas": lambda size=size: frame.rolling(size).max(),  # type: ignore[misc]
        }
        mine = merger.slide(size)[0]
        assert np.array_equal(mine, series.rolling_max(size).to_numpy()[size - 1 :])
        row = {}
        for name, run in contestants.items():
            run()
            best = float("inf")
            for _ in range(5 if name != "pandas" else 2):
                before = time.perf_counter()
                run()
                best = min(best, time.perf_counter() - before)
            row[name] = n / best / 1e6
        figures[str(size)] = row
        ours = row["paneflow"]
        verdict(ours >= 8 * row["polars"], f"{size:,}: {ours / row['polars']:.1f} times polars (8)")
        verdict(
            ours >= 40 * row["pandas"], f"{size:,}: {ours / row['pandas']:.0f} times pandas (40)"
        )
        share = ours / row["memcpy"]
        verdict(share >= 0.12, f"{size:,}: {share:.2f} of memcpy (0.12)")
    rows = [[[s, *(f"{v:,.0f}" for v in row.values())]] for s, row in figures.items()]
    Sheet("rolling max: million items a second", ("range", *figures["1024"]), rows).show()
    return figures


def main(arguments: list[str] | None = None) -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, for daily use")
    quick = parser.parse_args(arguments).quick
    figures = {
        "rolling": rolling(quick),
        "large_partials": large_partials(quick),
        "latency": latency(quick),
        "throughput": throughput(quick),
    }
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    (results / "merging.json").write_text(json.dumps(figures, indent=1, default=str))


if __name__ == "__main__":
    main()
