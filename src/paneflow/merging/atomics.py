"""Reads and writes of shared counters that keep their order between threads.

A counter is a cell of an int64 array. What a thread wrote before a `publish` is seen by every
thread that `observe`s the new value: that is all PBA needs to hand chunks over without a lock.
`breathe` lets another thread run: waiting threads sleep a little, so that an idle stream costs
next to nothing.

In plain Python, where the interpreter lock already orders everything, the same names are
ordinary functions.
"""

from __future__ import annotations

import time
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from paneflow.aggregates.operator import Array

WORD = 8


def observe(cells: Array, index: int) -> int:
    """The value of a counter, with everything that was written before it was published."""
    return int(cells[index])


def publish(cells: Array, index: int, value: int) -> None:
    """Set a counter, after everything written so far."""
    cells[index] = value


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


@overload(breathe, inline="always")
def _breathe(microseconds):  # type: ignore[no-untyped-def]
    return lambda microseconds: _sleep(microseconds)  # type: ignore[call-arg]
