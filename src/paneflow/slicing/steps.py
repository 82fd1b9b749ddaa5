"""Runs a custom window's `step` over events: compiled if possible, otherwise as Python.

Compiled code can only tell that something is wrong. The same loop, run as Python, then asks
`Custom.checked_step`, which says what is wrong.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from numba.core.errors import NumbaError

from paneflow.aggregates._functions.checking import Unchecked
from paneflow.aggregates.defined import SlowAggregateWarning
from paneflow.aggregates.kernels import compile_loop
from paneflow.errors import InputError
from paneflow.windows import Custom

CASTS = {bool: "bool", int: "np.int64", float: "np.float64"}
WRONG = -1
"""What a loop returns if a state or a mark does not fit."""


def typed(initial: tuple[Any, ...], cells: Sequence[str]) -> str:
    """A state in the types of the initial one."""
    casts = (f"{CASTS[type(s)]}({c})," for s, c in zip(initial, cells, strict=True))
    return f"({' '.join(casts)})"


def one_step(initial: tuple[Any, ...], columns: int, indent: int) -> str:
    """Statements that take a step from `state`, and return if its result is wrong."""
    values = "".join(f", v{k}[i]" for k in range(columns))
    state = typed(initial, [f"after[{k}]" for k in range(len(initial))])
    wrong = ["mark < 0", "mark > 7", f"len(after) != {len(initial)}"]
    # A state that does not fit its type would silently be truncated.
    wrong += [
        f"(state[{k}] != after[{k}] and after[{k}] == after[{k}])" for k in range(len(initial))
    ]
    lines = [
        f"after, mark = user_step(state, t[i]{values})",
        f"state = {state}",
        f"if {' or '.join(wrong)}:",
        f"    return {WRONG}",
    ]
    return ("\n" + " " * indent).join(lines)


def run_steps(
    window: Custom,
    body: str,
    numbers: Callable[[], Sequence[Any]] | None,
    objects: Callable[[], Sequence[Any]],
) -> int:
    """What the loop `steps` in a text returns.

    `numbers` and `objects` give its arguments for compiled code, if there are any, and for Python.
    """

    def as_python() -> int:
        functions = {"user_step": window.checked_step}
        run = compile_loop("steps", functions, body, "steps", compiled=False)
        return int(run(*objects()))

    reason = "it reads text"
    if numbers is not None:
        title, step = f"steps of {type(window).__name__}", type(window).step
        failure: Exception | None = None
        try:
            run = compile_loop(title, {"user_step": step}, body, "steps", checked=True)
            found = int(run(*numbers()))
            if found != WRONG:
                return found
        except (NumbaError, Unchecked) as error:
            reason = str(error) if isinstance(error, Unchecked) else _gist(error)
        except Exception as error:
            failure = error
        else:
            as_python()
            raise InputError(f"{window}: step returned a state or a mark that does not fit")
        if failure is not None:
            as_python()
            raise InputError(
                f"{window}: step raised {type(failure).__name__}: {failure}"
            ) from failure
    warnings.warn(
        f"{window} runs as plain Python, about a hundred times slower: {reason}",
        SlowAggregateWarning,
        stacklevel=3,
    )
    return as_python()


def _gist(error: NumbaError) -> str:
    return f"Numba says: {str(error).strip().splitlines()[0]}"
