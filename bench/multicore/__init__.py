"""The multicore engine: settings of the thesis, latency, a model of more cores, trading, pushes,
pushes to streams that hold many events, sorting many inputs, one worker against two, and
aggregating many inputs.

The settings are those of table 16 of the master's thesis "Disjoint Parallelization of
Sliding-Window Streaming Aggregation". The trading query is from Mencagli et al., "Harnessing
Sliding-Window Execution Semantics for Parallel Stream Processing". Each part has its own file.
"""

from __future__ import annotations

from bench.multicore import (
    gate,
    held,
    latency,
    makespan,
    multiway,
    pushes,
    settings,
    trading,
    workers,
)
from bench.parts import run_parts

PARTS = {
    "settings": settings,
    "latency": latency,
    "makespan": makespan,
    "trading": trading,
    "pushes": pushes,
    "held": held,
    "gate": gate,
    "workers": workers,
    "multiway": multiway,
}


def main(arguments: list[str] | None = None) -> None:
    """Run all of it, or some parts."""
    run_parts("multicore", __doc__, PARTS, arguments)
