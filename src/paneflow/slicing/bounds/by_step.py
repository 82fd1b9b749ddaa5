"""Custom windows: the loop around the user's `step`."""

from __future__ import annotations

from typing import Any

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.aggregates.values import Kind
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.columns import Column
from paneflow.slicing.events import Part
from paneflow.slicing.steps import one_step, run_steps, typed
from paneflow.windows import Custom


def loop(initial: tuple[Any, ...], columns: int) -> str:
    """Step through each key's events and keep the open windows as a queue in the output."""
    first = typed(initial, [f"initial[{k}]" for k in range(len(initial))])
    names = "".join(f"v{k}, " for k in range(columns))
    return f"""
        def steps(t, offsets, initial, shown, partial, {names}key, seq, lo, hi):
            found = 0
            for k in range(len(offsets) - 1):
                state = {first}
                oldest = found
                opened = found
                for i in range(offsets[k], offsets[k + 1]):
                    if not shown[i]:
                        continue
                    {one_step(initial, columns, 20)}
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
    shown = np.ones(len(part.t), np.bool_)
    for name in window.columns:
        valid = columns.valid(name)
        if valid is not None:
            shown &= part.mine(valid)
    room = Ranges.room(len(part.t))
    text = any(column.kind is Kind.TEXT for column in read)
    common = (part.offsets, window.initial, shown, window.partial)

    def numbers() -> list[Any]:
        values = [_held(column, part, columns) for column in read]
        return [part.t, *common, *values, *room.columns]

    def objects() -> list[Any]:
        values = [part.mine(columns.form(name, "object")).tolist() for name in window.columns]
        return [part.t.tolist(), *common, *values, *room.columns]

    body = loop(window.initial, len(read))
    return room.first(run_steps(window, body, None if text else numbers, objects))


def _held(column: Column, part: Part, columns: Arranged) -> Array:
    values = part.mine(columns.form(column.name, "value"))
    return values != 0 if column.kind is Kind.BOOLEAN else values
