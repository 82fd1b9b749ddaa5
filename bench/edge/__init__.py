"""The edge tree: one child node, several, bytes, latency, the root, and a simulation.

The experiments are those of chapter 5 of "Disco: Efficient Distributed Window Aggregation" in its
longer form, a thesis; each part has its own file.
"""

from __future__ import annotations

from bench.edge import child, children, latency, root, simulation, traffic
from bench.parts import run_parts

PARTS = {
    "child": child,
    "children": children,
    "traffic": traffic,
    "latency": latency,
    "root": root,
    "simulation": simulation,
}


def main(arguments: list[str] | None = None) -> None:
    """Run all of it, or some parts."""
    run_parts("edge", __doc__, PARTS, arguments)
