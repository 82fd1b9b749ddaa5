"""Whether a user-defined function may take so long that it is worth a second thread.

A stopwatch would tell, but what it says must not decide in which order floats are added. So the
function itself is read: one that loops, or calls one that does, may take long; any other takes a
few nanoseconds once it is compiled.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

LOOPING = ("FOR_ITER", "JUMP_BACKWARD")
"""How the names of instructions begin that only loops have."""


def may_take_long(function: Callable[..., Any]) -> bool:
    """Whether a function loops, or a function that it calls by its name.

    >>> may_take_long(lambda x: x + 1), may_take_long(lambda x: sum(x for _ in range(9)))
    (False, True)
    """
    return any(_loops(each.__code__) for each in _reached(function, set()))


def _reached(function: Any, seen: set[int]) -> Iterator[FunctionType]:
    """A function and those that it calls by their names, each once."""
    function = getattr(function, "py_func", function)  # a function compiled by Numba
    if not isinstance(function, FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    yield function
    cells = (cell.cell_contents for cell in function.__closure__ or ())
    named = (function.__globals__.get(name) for name in function.__code__.co_names)
    for each in (*cells, *named):
        yield from _reached(each, seen)


def _loops(code: CodeType) -> bool:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return any(each.opname.startswith(LOOPING) for each in dis.get_instructions(code)) or any(
        map(_loops, inner)
    )
