"""Merge algorithms: throughput, the latency of every slide, disorder, and a second thread.

The grids are those of Zhang, Akbarinia and Toumani (KDD 2021) and, for FiBA, of Tangwongsan,
Hirzel and Schneider (VLDB 2019 and 2023); each has a file of its own.
"""

from __future__ import annotations

from bench.merging import handover, latency, out_of_order, rolling, throughput
from bench.parts import run_parts

PARTS = {
    "rolling": rolling,
    "throughput": throughput,
    "latency": latency,
    "handover": handover,
    "out_of_order": out_of_order,
}


def main(arguments: list[str] | None = None) -> None:
    """Run all of it, or some parts."""
    run_parts("merging", __doc__, PARTS, arguments)
