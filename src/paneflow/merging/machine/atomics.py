"""Reads and writes of shared counters that keep their order between threads.

A counter is a cell of an int64 array. What a thread wrote before a `publish` is seen by every
thread that `observe`s the new value: that is all PBA needs to hand chunks over without a lock.
Counters that several threads write are raised by `add` and changed by `exchange`, each one step
that no other thread can come between. `fence` keeps what a thread wrote before it from being
overtaken by what it reads after it: two threads that each write one counter, and read the other's
behind a fence, cannot both miss what the other wrote. `breathe` lets another thread run: waiting
threads sleep a little, so that an idle stream costs next to nothing.

In plain Python, where the interpreter lock already orders everything, the same names are
ordinary functions; `add` and `exchange` then take a lock, which compiled code does not know of:
a counter that both sides write is written by compiled code alone.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from paneflow.aggregates.operator import Array

WORD = 8

_one_at_a_time = threading.Lock()


def observe(cells: Array, index: int) -> int:
    """The value of a counter, with everything that was written before it was published."""
    return int(cells[index])


def publish(cells: Array, index: int, value: int) -> None:
    """Set a counter, after everything written so far."""
    cells[index] = value


def add(cells: Array, index: int, amount: int) -> int:
    """Raise a counter; what it was before."""
    with _one_at_a_time:
        before = int(cells[index])
        cells[index] = before + amount
    return before


def exchange(cells: Array, index: int, expected: int, new: int) -> bool:
    """Set a counter to a new value if it still has the expected one; whether it had."""
    with _one_at_a_time:
        if cells[index] != expected:
            return False
        cells[index] = new
    return True


def fence() -> None:
    """Let all threads see what was written so far before anything more is read."""


def breathe(microseconds: int) -> None:
    """Sleep for about so long."""
    time.sleep(microseconds / 1e6)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, view, [index])


@intrinsic
def _load(typing_context, cells, index):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, position = arguments
        cell = _pointer(context, builder, signature.args[0], array, position)
        return builder.load_atomic(cell, "acquire", WORD)

    return types.int64(cells, types.int64), generate


@intrinsic
def _store(typing_context, cells, index, value):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, position, new = arguments
        cell = _pointer(context, builder, signature.args[0], array, position)
        builder.store_atomic(new, cell, "release", WORD)
        return context.get_dummy_value()

    return types.void(cells, types.int64, types.int64), generate


@intrinsic
def _add(typing_context, cells, index, amount):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, position, by = arguments
        cell = _pointer(context, builder, signature.args[0], array, position)
        return builder.atomic_rmw("add", cell, by, "acq_rel")

    return types.int64(cells, types.int64, types.int64), generate


@intrinsic
def _exchange(typing_context, cells, index, expected, new):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, position, old, value = arguments
        cell = _pointer(context, builder, signature.args[0], array, position)
        outcome = builder.cmpxchg(cell, old, value, "acq_rel", "acquire")
        return builder.extract_value(outcome, 1)

    return types.boolean(cells, types.int64, types.int64, types.int64), generate


@intrinsic
def _fence(typing_context):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def _sleep(typing_context, microseconds):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        shape = ir.FunctionType(ir.IntType(32), [ir.IntType(32)])
        usleep = cgutils.get_or_insert_function(builder.module, shape, "usleep")
        builder.call(usleep, [builder.trunc(arguments[0], ir.IntType(32))])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@overload(observe, inline="always")
def _observe(cells, index):  # type: ignore[no-untyped-def]
    return lambda cells, index: _load(cells, index)  # type: ignore[call-arg]


@overload(publish, inline="always")
def _publish(cells, index, value):  # type: ignore[no-untyped-def]
    return lambda cells, index, value: _store(cells, index, value)  # type: ignore[call-arg]


@overload(add, inline="always")
def _add_compiled(cells, index, amount):  # type: ignore[no-untyped-def]
    return lambda cells, index, amount: _add(cells, index, amount)  # type: ignore[call-arg]


@overload(exchange, inline="always")
def _exchange_compiled(cells, index, expected, new):  # type: ignore[no-untyped-def]
    return lambda cells, index, expected, new: _exchange(  # type: ignore[call-arg]
        cells, index, expected, new
    )


@overload(fence, inline="always")
def _fence_compiled():  # type: ignore[no-untyped-def]
    return lambda: _fence()  # type: ignore[call-arg]


@overload(breathe, inline="always")
def _breathe(microseconds):  # type: ignore[no-untyped-def]
    return lambda microseconds: _sleep(microseconds)  # type: ignore[call-arg]
