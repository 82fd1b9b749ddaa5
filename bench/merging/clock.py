"""A clock fine enough for single slides: the processor's cycle counter."""

from __future__ import annotations

import time

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from paneflow.aggregates.operator import Array


@intrinsic
def cycles(typing_context):  # type: ignore[no-untyped-def]
    """The counter, for compiled code."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        counter = builder.module.declare_intrinsic(
            "llvm.readcyclecounter", fnty=ir.FunctionType(ir.IntType(64), [])
        )
        return builder.call(counter, [])

    return types.int64(), generate


@njit(nogil=True)
def read_cycles():  # type: ignore[no-untyped-def]
    """The counter, for Python."""
    return cycles()  # type: ignore[call-arg]


def nanoseconds_per_cycle() -> float:
    """How long a cycle of the counter lasts."""
    read_cycles()
    before, counted = time.perf_counter_ns(), read_cycles()
    time.sleep(0.2)
    return float((time.perf_counter_ns() - before) / (read_cycles() - counted))


@njit(nogil=True)
def _floor(values, kept, spent):  # type: ignore[no-untyped-def]
    r = values[0]
    for i in range(len(values)):
        before: int = cycles()  # type: ignore[call-arg]
        r = max(r, values[i])
        kept[i & 1023] = r
        spent[i] = cycles() - before


def floor(values: Array) -> Array:
    """The cycles that the clock shows for a single max: nothing can be faster."""
    spent = np.zeros(len(values), np.int64)
    _floor(values, np.empty(1024), spent)
    return spent
