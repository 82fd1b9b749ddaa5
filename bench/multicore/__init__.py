"""The multicore engine: the thesis' settings, latency, a model of more cores, the trading query.

The settings are those of table 16 of the thesis that the topologies come from; the trading query
is that of the worker models' paper. Each part has a file of its own.
"""

from __future__ import annotations

import argparse
from typing import Any

from bench import report
from bench.multicore import latency, makespan, settings, trading

PARTS = {"settings": settings, "latency": latency, "makespan": makespan, "trading": trading}


def main(arguments: list[str] | None = None) -> None:
    """Run all of it, or some parts."""
    parser = argparse.ArgumentParser(prog="python -m bench.multicore", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, for daily use")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all if none is named")
    given = parser.parse_args(arguments)
    unknown = set(given.parts) - PARTS.keys()
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    figures: dict[str, Any] = {}
    sheets: dict[str, list[report.Sheet]] = {}
    for name in given.parts or PARTS:
        figures[name], sheets[name] = PARTS[name].run(given.quick)
        for sheet in sheets[name]:
            sheet.show()
        for holds, text in PARTS[name].targets(figures[name]):
            report.verdict(holds, text)
    report.write("multicore-quick" if given.quick or given.parts else "multicore", figures)
    if not given.quick:
        for name in sheets:
            PARTS[name].draw(figures[name])
            report.publish(f"multicore-{name}", sheets[name])
