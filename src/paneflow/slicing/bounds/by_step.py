"""Windows of the user's own making: the loop around a custom window's `step`."""

from __future__ import annotations

import warnings
from typing import Any

import numba
import numpy as np

from paneflow.aggregates.defined import SlowAggregateWarning
from paneflow.aggregates.kernels import compile_loop
from paneflow.aggregates.operator import Array
from paneflow.aggregates.values import Kind
from paneflow.errors import InputError
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.columns import Column
from paneflow.slicing.events import Part
from paneflow.windows import Custom

CASTS = {bool: "bool", int: "np.int64", float: "np.float64"}


def loop(initial: tuple[Any, ...], columns: int) -> str:
    """Step through each key's events and keep the open windows as a queue in the output."""

    def typed(state: str) -> str:
        cells = (f"{CASTS[type(s)]}({state}[{k}])," for k, s in enumerate(initial))
        return f"({' '.join(cells)})"

    # A state that does not fit its type would be cut off in silence.
    changed = " or ".join(
        f"(state[{k}] != after[{k}] and after[{k}] == after[{k}])" for k in range(len(initial))
    )
    names = "".join(f"v{k}, " for k in range(columns))
    values = "".join(f", v{k}[i]" for k in range(columns))
    return f"""
        def steps(t, offsets, initial, shown, partial, {names}key, seq, lo, hi):
            found = 0
            for k in range(len(offsets) - 1):
                state = {typed("initial")}
                oldest = found
                opened = found
                for i in range(offsets[k], offsets[k + 1]):
                    if not shown[i]:
                        continue
                    after, mark = user_step(state, t[i]{values})
                    state = {typed("after")}
                    if {changed}:
                        return -1
                    if mark & 1 and oldest < opened:
                        hi[oldest] = i
                        oldest += 1
                    if mark & 2:
                        key[opened] = k
                        seq[opened] = opened - found
                        lo[opened] = i
                        opened += 1
                    if mark & 4 and oldest < opened:
                        hi[oldest] = i + 1
                        oldest += 1
                if partial and oldest < opened:
                    hi[oldest] = offsets[k + 1]
                    oldest += 1
                found = oldest
            return found
        """


def custom(window: Custom, part: Part, columns: Arranged) -> Ranges:
    """What the user's `step` opens and closes."""
    read = [columns.columns[name] for name in window.columns]
    for column in read:
        if column.kind is Kind.TEMPORAL:
            raise InputError(
                f"{window} reads {column.name!r}, a time: a custom window's step gets the event's "
                f"time as its second argument; cast other times to integers first"
            )
    shown = np.ones(len(part.t), np.bool_)
    for name in window.columns:
        valid = columns.valid(name)
        if valid is not None:
            shown &= part.mine(valid)
    room = Ranges.room(len(part.t))
    step = type(window).step
    body = loop(window.initial, len(read))
    text = any(column.kind is Kind.TEXT for column in read)
    arguments = (part.t, part.offsets, window.initial, shown, window.partial)
    if not text:
        values = [_held(column, part, columns) for column in read]
        try:
            run = compile_loop(
                f"steps of {type(window).__name__}", {"user_step": step}, body, "steps"
            )
            return room.first(_checked(window, run(*arguments, *values, *vars(room).values())))
        except numba.core.errors.NumbaError as error:
            reason = f"Numba says: {str(error).strip().splitlines()[0]}"
    else:
        reason = "it reads text"
    warnings.warn(
        f"{window} runs as plain Python, about a hundred times slower: {reason}",
        SlowAggregateWarning,
        stacklevel=2,
    )
    run = compile_loop("steps", {"user_step": step}, body, "steps", compiled=False)
    objects = [part.mine(columns.form(name, "object")).tolist() for name in window.columns]
    times = part.t.tolist()
    return room.first(_checked(window, run(times, *arguments[1:], *objects, *vars(room).values())))


def _checked(window: Custom, found: int) -> int:
    if found < 0:
        raise InputError(
            f"the state of {window} changes its type: `initial` is {window.initial!r}, and step "
            f"gave a number that does not fit; give a float in `initial` where step gives floats"
        )
    return found


def _held(column: Column, part: Part, columns: Arranged) -> Array:
    values = part.mine(columns.form(column.name, "value"))
    return values != 0 if column.kind is Kind.BOOLEAN else values
