"""Asks for memory before it is needed, so that a loop which comes to it later does not wait.

A processor fetches on its own what a loop reads or writes in a row, but stops when the loop does,
and loops in turn over small tiles stop all the time. In plain Python these names do nothing.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from paneflow.aggregates.operator import Array

LINE = 64
"""Bytes that are fetched at once."""
NEAR = 3
READ, WRITE = 0, 1


def soon_read(column: Array, start: int, count: int) -> None:
    """So many cells from a start on will be read; as far as there are any."""


def soon_written(column: Array, start: int, count: int) -> None:
    """So many cells from a start on will be written; as far as there are any."""


def _asking(purpose: int) -> Any:
    @intrinsic
    def ask(typing_context, column, index):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            array, position = arguments
            view = context.make_array(signature.args[0])(context, builder, array)
            cell = cgutils.get_item_pointer(context, builder, signature.args[0], view, [position])
            byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            shape = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            prefetch = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
            how = [ir.Constant(number, value) for value in (purpose, NEAR, 1)]
            builder.call(prefetch, [builder.bitcast(cell, byte), *how])
            return context.get_dummy_value()

        return types.void(column, types.int64), generate

    return ask


def _line_by_line(ask: Any) -> Any:
    def typed(column, start, count):  # type: ignore[no-untyped-def]
        step = LINE // column.dtype.bitwidth * 8

        def compiled(column, start, count):  # type: ignore[no-untyped-def]
            for i in range(start, min(start + count, len(column)), step):
                ask(column, i)

        return compiled

    return typed


overload(soon_read)(_line_by_line(_asking(READ)))
overload(soon_written)(_line_by_line(_asking(WRITE)))
