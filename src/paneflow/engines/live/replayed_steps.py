"""Custom windows over an unbounded stream: each final event is shown to `step` once.

What `step` answered is kept beside the event for as long as a window needs it, and the state it
came to is kept for each key. Windows are then found by playing the answers again, so that nothing
but marks decides over them, and no event is stepped through twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.aggregates.values import Kind
from paneflow.errors import InputError
from paneflow.slicing.columns import Column, read_column
from paneflow.slicing.steps import one_step, run_steps, typed
from paneflow.windows import CLOSE_AFTER, CLOSE_BEFORE, OPEN, Custom, WindowClass

TYPES = {bool: np.bool_, int: np.int64, float: np.float64}


@dataclass(frozen=True)
class Replay(Custom):
    """Opens and closes as the marks in a column say."""

    window_class: ClassVar[WindowClass] = WindowClass.FCA
    initial: ClassVar[tuple[Any, ...]] = (0,)

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @staticmethod
    def step(state: tuple[Any, ...], t: int, mark: int) -> tuple[tuple[Any, ...], int]:
        return state, mark


def first_states(window: Custom, keys: int) -> list[Array]:
    """The state before the first event, for each key."""
    return [np.full(keys, value, TYPES[type(value)]) for value in window.initial]


def step_through(
    window: Custom, events: pa.Table, t: Array, offsets: Array, states: list[Array]
) -> Array:
    """The marks that `step` gives for events in total order; states go on to where it comes.

    `offsets` say where the events of each key begin.
    """
    read = [read_column(events, name) for name in window.columns]
    for column in read:
        if column.kind is Kind.TEMPORAL:
            raise InputError(
                f"{window} reads {column.name!r}, a time: a custom window's step gets the event's "
                f"time as its second argument; cast other times to integers first"
            )
    shown = np.ones(len(t), np.bool_)
    for column in read:
        if column.valid is not None:
            shown &= column.valid
    marks = np.zeros(len(t), np.int64)
    after = [state.copy() for state in states]
    text = any(column.kind is Kind.TEXT for column in read)

    def numbers() -> list[Any]:
        return [t, offsets, shown, marks, *after, *map(_numbers, read)]

    def objects() -> list[Any]:
        values = [column.objects for column in read]
        return [t.tolist(), offsets, shown, marks, *after, *values]

    body = _loop(window.initial, len(read))
    run_steps(window, body, None if text else numbers, objects)
    for state, reached in zip(states, after, strict=True):
        state[:] = reached
    return marks


def still_wanted(marks: Array, code: Array, windows: Array) -> tuple[Array, Array]:
    """For each key, how many events no open window needs, and the marks without what is done.

    `windows` says how many windows of each key have closed. The next one to open is the oldest
    that is still open, and every close behind its first event was for a window before it.
    """
    starts = np.searchsorted(code, np.arange(len(windows) + 1))
    opened = np.cumsum((marks & OPEN) != 0)
    before = np.append(0, opened)[starts[:-1]]
    needed = opened - before[code] > windows[code]
    ends = np.searchsorted(code[needed], np.arange(len(windows) + 1))
    gone = np.diff(starts) - np.diff(ends)
    return gone, np.where(needed, marks & ~(CLOSE_BEFORE | CLOSE_AFTER), marks)


def _loop(initial: tuple[Any, ...], columns: int) -> str:
    """Step through each key's events from where its state stands."""

    places = range(len(initial))
    names = "".join(f", v{k}" for k in range(columns))
    stored = "\n                ".join(f"s{k}[key] = state[{k}]" for k in places) or "pass"
    return f"""
        def steps(t, offsets, shown, marks{"".join(f", s{k}" for k in places)}{names}):
            for key in range(len(offsets) - 1):
                state = {typed(initial, [f"s{k}[key]" for k in places])}
                for i in range(offsets[key], offsets[key + 1]):
                    if not shown[i]:
                        continue
                    {one_step(initial, columns, 20)}
                    marks[i] = mark & 7
                {stored}
            return 0
        """


def _numbers(column: Column) -> Array:
    return column.values != 0 if column.kind is Kind.BOOLEAN else column.values
