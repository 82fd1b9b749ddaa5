"""A user-defined aggregate against the built-in one: the geometric mean, with `define`.

python -m bench.defined [--quick]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import paneflow as pf
from bench.data import events
from bench.measuring import side_by_side
from bench.report import Sheet, publish, verdict, write
from paneflow import aggregates as A, windows as W

SIZES = (2_000_000, 20_000_000)
KEYS = 100
TARGET = 1.3

geometric = A.define(
    lift=lambda x: (math.log(x), 1),
    combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    lower=lambda p: math.exp(p[0] / p[1]),
    identity=(0.0, 0),
    commutative=True,
    name="geometric",
)


def query(aggregate: A.Aggregate) -> pf.Query:
    """The same query for either aggregate."""
    return pf.Query(W.sliding("60 s", "1 s"), {"g": aggregate}, key="key", time="ts")


def compare(table: pa.Table) -> dict[str, Any]:
    """Seconds of both over one table, after checking that they agree."""
    ours, users = query(A.geometric_mean("v")), query(geometric("v"))
    one, other = (q.over(table).column("g").to_numpy() for q in (ours, users))
    if not (abs(one - other) <= 1e-9 * one).all():
        raise SystemExit("the two geometric means differ")
    built_in, defined = side_by_side(lambda: ours.over(table), lambda: users.over(table))
    return {
        "events": table.num_rows,
        "built-in": built_in,
        "defined": defined,
        "ratio": defined / built_in,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, show, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.defined", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 million events only")
    options = parser.parse_args(arguments)
    figures = [compare(events(n, KEYS)) for n in (SIZES[:1] if options.quick else SIZES)]
    sheet = Sheet(
        "Geometric mean of an hour of 100 keys, 60 s sliding by 1 s",
        ("million events", "built-in, s", "defined, s", "ratio"),
        [[_cells(f) for f in figures]],
    )
    sheet.show()
    worst = max(f["ratio"] for f in figures)
    verdict(worst <= TARGET, f"defined takes {worst:.2f} times as long ({TARGET})")
    write("defined", figures)
    if not options.quick:
        publish("defined", [sheet])


def _cells(figure: dict[str, Any]) -> list[str]:
    seconds = [f"{figure[name]:.3f}" for name in ("built-in", "defined")]
    return [f"{figure['events'] / 1e6:g}", *seconds, f"{figure['ratio']:.2f}"]


if __name__ == "__main__":
    main()
