"""Merge algorithms: throughput, the latency of every slide, disorder, and a second thread.

The grids are those of Zhang, Akbarinia and Toumani (KDD 2021) and, for FiBA, of Tangwongsan,
Hirzel and Schneider (VLDB 2019 and 2023); each has a file of its own.
"""

from __future__ import annotations

import argparse
from typing import Any

from bench import report
from bench.merging import handover, latency, out_of_order, rolling, throughput

PARTS = {
    "rolling": rolling,
    "throughput": throughput,
    "latency": latency,
    "handover": handover,
    "out_of_order": out_of_order,
}


def main(arguments: list[str] | None = None) -> None:
    """Run all of it, or some parts."""
    parser = argparse.ArgumentParser(prog="python -m bench.merging", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, for daily use")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all if none is named")
    given = parser.parse_args(arguments)
    unknown = set(given.parts) - PARTS.keys()
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    figures: dict[str, Any] = {}
    for name in given.parts or PARTS:
        figures[name], sheets = PARTS[name].run(given.quick)
        for sheet in sheets:
            sheet.show()
        for holds, text in PARTS[name].targets(figures[name]):
            report.verdict(holds, text)
        if not given.quick:
            PARTS[name].draw(figures[name])
            report.publish(f"merging-{name.replace('_', '-')}", sheets)
    report.write("merging-quick" if given.quick or given.parts else "merging", figures)
