"""The multicore engine: settings of the thesis, latency, a model of more cores, trading, pushes,
and pushes to streams that hold much.

The settings are those of table 16 of the thesis that the topologies come from; the trading query
is that of the worker models' paper. Each part has a file of its own.
"""

from __future__ import annotations

from bench.multicore import held, latency, makespan, pushes, settings, trading
from bench.parts import run_parts

PARTS = {
    "settings": settings,
    "latency": latency,
    "makespan": makespan,
    "trading": trading,
    "pushes": pushes,
    "held": held,
}


def main(arguments: list[str] | None = None) -> None:
    """Run all of it, or some parts."""
    run_parts("multicore", __doc__, PARTS, arguments)
