"""The functions of a T-Gate, compiled so that threads pause now and then within an operation.

On few cores, threads that run for microseconds hardly ever meet. Here they sleep before some of
their accesses to what is shared; which ones follows from what they read and write, and where.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FunctionType, ModuleType
from typing import Any

from numba import njit

from paneflow.merging.machine.atomics import add, breathe, exchange, observe, publish
from tests.multicore.multiway.interleaving import texts_of


@njit
def _pause(value, index):  # type: ignore[no-untyped-def]
    if ((value * 0x9E3779B1 + index * 0x85EBCA77) >> 12) & 7 == 0:
        breathe(1)


@njit
def _observe(cells, index):  # type: ignore[no-untyped-def]
    _pause(cells[index], index)
    return observe(cells, index)


@njit
def _publish(cells, index, value):  # type: ignore[no-untyped-def]
    _pause(value, index)
    publish(cells, index, value)


@njit
def _exchange(cells, index, expected, new):  # type: ignore[no-untyped-def]
    _pause(expected, index)
    return exchange(cells, index, expected, new)


@njit
def _add(cells, index, amount):  # type: ignore[no-untyped-def]
    _pause(cells[index], index)
    return add(cells, index, amount)


def with_pauses(function: Any, modules: Sequence[ModuleType]) -> Any:
    """A compiled function that calls functions of some modules, compiled anew with all of them."""
    names, texts = texts_of(modules)
    names |= {"observe": _observe, "publish": _publish, "exchange": _exchange, "add": _add}
    for name, tree in texts.items():
        exec(compile(ast.Module([tree], []), f"<{name} with pauses>", "exec"), names)
        names[name] = njit(nogil=True)(names[name])
    plain = function.py_func
    known = plain.__globals__ | {name: names[name] for name in texts}
    return njit(nogil=True)(FunctionType(plain.__code__, known, plain.__name__))
