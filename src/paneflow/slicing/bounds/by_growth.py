"""Windows whose bounds are values of a growing column: delta.

Whole numbers and times are measured exactly, whatever the range and the slide are given as. Floats
are measured in float64, in the form that docs/semantics.md gives, since rounding depends on it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numba import types
from numba.extending import overload

from paneflow.aggregates.operator import Array
from paneflow.aggregates.values import Kind
from paneflow.compiling import compiled
from paneflow.errors import InputError
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.columns import Column
from paneflow.slicing.events import Part
from paneflow.windows import Delta, Duration

MICROSECONDS = {
    "ns": Fraction(1, 1_000),
    "us": Fraction(1),
    "ms": Fraction(1_000),
    "s": Fraction(1_000_000),
    "D": Fraction(86_400_000_000),
}
LEAST = np.int64(np.iinfo(np.int64).min)
Bounds = tuple[Any, Any, Any]
"""The range of a trigger's window, the range of the last, incomplete one, and the slide."""


def delta(window: Delta, part: Part, columns: Arranged) -> Ranges:
    """Whenever the column has grown by more than `slide`, the last `range` of it."""
    column = columns.columns[window.column]
    d, bounds = measured(window, column, part.mine(columns.form(column.name, "value")))
    room = Ranges.room(len(d) + len(part.offsets))
    found = _delta(d, part.offsets, *bounds, window.partial, *room.columns)
    if found < 0:
        at = -found - 1
        rows = part.mine(part.events.arrange(np.arange(len(column.values))))[at - 1 : at + 1]
        raise decreasing(window, column, column.values[rows], rows)
    return room.first(found)


def measured(window: Delta, column: Column, values: Array) -> tuple[Array, Bounds]:
    """Values of the column as they are compared, and the bounds that they are compared with."""
    if column.valid is not None:
        raise InputError(
            f"{window}: column {window.column!r} is null in row {int(np.argmin(column.valid))}: "
            f"a delta window needs a value in every event; drop those rows or fill them in"
        )
    if column.kind is Kind.FLOAT and np.isnan(column.values).any():
        raise InputError(
            f"{window}: column {window.column!r} is NaN in row "
            f"{int(np.argmax(np.isnan(column.values)))}: drop those rows or fill them in"
        )
    if column.kind is Kind.FLOAT:
        return _floats(window, values)
    return _whole(window, column.type, values)


def given(d: list[Any], dtype: Any) -> Array:
    """The original values, from measured ones."""
    values: Array = np.array(d, dtype)
    return values if dtype == np.float64 else (values + LEAST.view(np.uint64)).view(np.int64)


def decreasing(
    window: Delta, column: Column, values: Array, rows: Array | None = None
) -> InputError:
    """The error for two values that decrease, with their rows if known."""
    places = ["", ""] if rows is None else [f" in row {row}" for row in rows]
    before, after = (f"{v}{place}" for v, place in zip(_shown(column, values), places, strict=True))
    return InputError(
        f"{window}: column {window.column!r} must not decrease, but it goes from {before} "
        f"to {after} of the same key: choose a column that grows with time, or correct the data"
    )


def _shown(column: Column, values: Array) -> list[Any]:
    """Values as text, including times that Python's own types cannot hold."""
    if column.kind is not Kind.TEMPORAL:
        return list(values.tolist())
    plain = pa.timestamp(column.type.unit) if pa.types.is_timestamp(column.type) else column.type
    return list(column.decode(values).view(plain).cast(pa.string()).to_pylist())


def _floats(window: Delta, d: Array) -> tuple[Array, Bounds]:
    """The column as it is, and bounds in float64."""
    reach, slide = float(window.range), float(window.slide)  # type: ignore[arg-type]
    return d, (reach, reach, slide)


def _whole(window: Delta, type_: pa.DataType, d: Array) -> tuple[Array, Bounds]:
    """The column in its own unit, counted from the least integer, and what becomes of the bounds.

    Without a sign no difference overflows. Differences are whole numbers, so bounds can be made
    whole without a loss: d <= 2.5 is d <= 2, and d < 2.5 is d <= 2 as well.
    """
    unit = Fraction(1)
    if isinstance(window.range, Duration):
        unit = MICROSECONDS[getattr(type_, "unit", "D" if type_.bit_width == 32 else "ms")]
    reach, slide = (
        Fraction(amount.value if isinstance(amount, Duration) else amount) / unit
        for amount in (window.range, window.slide)
    )
    whole = (math.floor(reach), math.ceil(reach) - 1, math.floor(slide))
    within, below, step = (np.uint64(min(amount, 2**64 - 1)) for amount in whole)
    return d.view(np.uint64) - LEAST.view(np.uint64), (within, below, step)


def beyond(d: Any, trigger: Any, reach: Any) -> Any:
    """d < trigger - reach, for d <= trigger."""


def _within(d: Any, last: Any, below: Any) -> Any:
    """d > last - reach, for d <= last; of whole numbers `below` is the greatest below the reach."""


@overload(beyond)
def _typed_beyond(d, trigger, reach):  # type: ignore[no-untyped-def]
    # Floats are rounded, so the form matters; without a sign a difference must not be negative.
    if isinstance(d, types.Float):
        return lambda d, trigger, reach: d < trigger - reach
    return lambda d, trigger, reach: trigger - d > reach


@overload(_within)
def _typed_within(d, last, below):  # type: ignore[no-untyped-def]
    if isinstance(d, types.Float):
        return lambda d, last, below: d > last - below
    return lambda d, last, below: last - d <= below


@compiled
def _delta(d, offsets, reach, below, slide, partial, key, seq, lo, hi):  # type: ignore[no-untyped-def]
    found = 0
    for k in range(len(offsets) - 1):
        start = offsets[k]
        end = offsets[k + 1]
        if start == end:
            continue
        a = start
        b = start
        w = 0
        trigger = d[start]
        for i in range(start, end):
            if i > start and d[i] < d[i - 1]:
                return -i - 1
            if i == start or d[i] - trigger > slide:
                trigger = d[i]
                while d[b] < trigger:
                    b += 1
                while a < b and beyond(d[a], trigger, reach):
                    a += 1
                if a < b:
                    key[found] = k
                    seq[found] = w
                    lo[found] = a
                    hi[found] = b
                    found += 1
                w += 1
        if partial:
            # Rounding may swallow the range of floats, and leave no event at all.
            while a < end and not _within(d[a], d[end - 1], below):
                a += 1
            if a < end:
                key[found] = k
                seq[found] = w
                lo[found] = a
                hi[found] = end
                found += 1
    return found
