"""What a combine costs on this machine, since only that says whether it is worth sharing.

A user's combine may be anything from a max to a matrix product, and its text does not tell. So a
few thousand combines are run once, each waiting for the one before, as they do in a window.
"""

from __future__ import annotations

import time

from paneflow.aggregates.kernels import Shape, kernel
from paneflow.aggregates.operator import Code, Operator
from paneflow.merging.contract import filled

COMBINES = 2000
CELLS = 8
ROUNDS = 5


def nanoseconds(operator: Operator) -> float:
    """How long one combine takes, at least; measured once in a process.

    >>> from paneflow.aggregates.extremes import max
    >>> from paneflow.aggregates.values import Kind
    >>> (operator,) = max("v").operators({"v": Kind.FLOAT})
    >>> 0 < nanoseconds(operator) < 1000
    True
    """
    code = operator.code
    if code not in _MEASURED:
        _MEASURED[code] = _measured(operator)
    return _MEASURED[code]


_MEASURED: dict[Code, float] = {}


def _measured(operator: Operator) -> float:
    cells = filled(operator, CELLS)
    run = kernel(operator, "chain", chain_loop, chain_helper)
    run(1, *cells)
    best = float("inf")
    for _ in range(ROUNDS):
        before = time.perf_counter()
        run(COMBINES, *cells)
        best = min(best, time.perf_counter() - before)
    return best / COMBINES * 1e9


def chain_helper(shape: Shape) -> str:
    """Fold some cells into the first, over and over."""
    return f"""

        @in_place
        def fold(times, {shape.names("p")}):
            r = {shape.load("p", "0")}
            for i in range(times):
                {shape.merge_at("p", "0", "r", shape.load("p", f"1 + i % {CELLS - 1}"))}
        """


def chain_loop(shape: Shape) -> str:
    """What Python calls."""
    return f"""
        def chain(times, {shape.names("p")}):
            fold(times, {shape.names("p")})
        """
