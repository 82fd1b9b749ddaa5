"""Windows whose bounds are events: count, slide_by_tuple, delta."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import overload

from paneflow.aggregates.operator import Array
from paneflow.aggregates.values import Kind
from paneflow.errors import InputError
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.columns import Column
from paneflow.slicing.events import Part
from paneflow.windows import Count, Delta, Duration, SlideByTuple

compiled = numba.njit(nogil=True, cache=True)
MICROSECONDS = {"us": 1, "ms": 1_000, "s": 1_000_000, "D": 86_400_000_000}


def count(window: Count, part: Part, columns: Arranged) -> Ranges:
    """Every `slide` positions, the next `size` events."""
    room = Ranges.room(len(part.t) // window.slide + len(part.offsets))
    found = _count(
        part.offsets,
        window.size,
        window.slide,
        window.partial,
        room.key,
        room.seq,
        room.lo,
        room.hi,
    )
    return room.first(found)


def slide_by_tuple(window: SlideByTuple, part: Part, columns: Arranged) -> Ranges:
    """Every so many events, those of the last `range` of time."""
    room = Ranges.room(len(part.t) // window.every + len(part.offsets))
    bounds = (window.range.value, window.every, window.partial)
    found = _slide_by_tuple(part.t, part.offsets, *bounds, room.key, room.seq, room.lo, room.hi)
    return room.first(found)


def delta(window: Delta, part: Part, columns: Arranged) -> Ranges:
    """Whenever the column has grown by more than `slide`, the last `range` of it."""
    column = columns.columns[window.column]
    if column.kind not in (Kind.INTEGER, Kind.FLOAT, Kind.TEMPORAL):
        raise InputError(
            f"{window} needs a column of numbers or times, but {window.column!r} has type "
            f"{column.type}: cast it"
        )
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
    d, reach, slide = _measured(window, column, part.mine(columns.form(column.name, "value")))
    room = Ranges.room(len(d) + len(part.offsets))
    found = _delta(d, part.offsets, reach, slide, window.partial, *vars(room).values())
    if found < 0:
        at = -found - 1
        rows = part.mine(part.events.arrange(np.arange(len(column.values))))[at - 1 : at + 1]
        shown = column.decode(column.values[rows]).to_pylist()
        raise InputError(
            f"{window}: column {window.column!r} must not decrease, but it goes from {shown[0]} "
            f"in row {rows[0]} to {shown[1]} in row {rows[1]} of the same key: choose a column "
            f"that grows with time, or correct the data"
        )
    return room.first(found)


def _measured(window: Delta, column: Column, d: Array) -> tuple[Array, Any, Any]:
    """The column, range and slide in one unit: the column's own, or that of the durations.

    Integers are counted from the least of them, without a sign, so that no difference overflows.
    """
    amounts: list[Any] = [window.range, window.slide]
    if isinstance(window.range, Duration) and isinstance(window.slide, Duration):
        if column.kind is not Kind.TEMPORAL:
            raise InputError(
                f"{window} measures {window.column!r} by a duration, but its type is "
                f"{column.type}: give range and slide as plain numbers"
            )
        unit = getattr(column.type, "unit", "D" if column.type.bit_width == 32 else "ms")
        finer = 1000 if unit == "ns" else 1
        amounts = [window.range.value * finer, window.slide.value * finer]
        d = d if unit == "ns" else d * MICROSECONDS[unit]
    if column.kind is Kind.FLOAT or any(isinstance(amount, float) for amount in amounts):
        return d.astype(np.float64, copy=False), float(amounts[0]), float(amounts[1])
    least = d.min() if len(d) else 0
    reach, slide = (np.uint64(min(int(amount), 2**64 - 1)) for amount in amounts)
    return d.view(np.uint64) - np.int64(least).view(np.uint64), reach, slide


@compiled
def _count(offsets, size, slide, partial, key, seq, lo, hi):  # type: ignore[no-untyped-def]
    found = 0
    for k in range(len(offsets) - 1):
        w = 0
        start = offsets[k]
        while start + size <= offsets[k + 1] or (partial and start < offsets[k + 1]):
            key[found] = k
            seq[found] = w
            lo[found] = start
            hi[found] = min(start + size, offsets[k + 1])
            found += 1
            if start + size > offsets[k + 1]:
                break
            w += 1
            start += slide
    return found


@compiled
def _slide_by_tuple(t, offsets, reach, every, partial, key, seq, lo, hi):  # type: ignore[no-untyped-def]
    found = 0
    for k in range(len(offsets) - 1):
        a = offsets[k]
        end = offsets[k + 1]
        w = 0
        trigger = a + every - 1
        while trigger < end or (partial and trigger - every < end - 1):
            at = min(trigger, end - 1)
            while t[a] <= t[at] - reach:
                a += 1
            key[found] = k
            seq[found] = w
            lo[found] = a
            hi[found] = at + 1
            found += 1
            if trigger >= end:
                break
            w += 1
            trigger += every
    return found


def _beyond(d: Any, trigger: Any, reach: Any) -> Any:
    """d < trigger - reach, for d <= trigger."""


def _within(d: Any, last: Any, reach: Any) -> Any:
    """d > last - reach, for d <= last."""


@overload(_beyond)
def _typed_beyond(d, trigger, reach):  # type: ignore[no-untyped-def]
    # Floats are rounded, so the form matters; without a sign a difference must not be negative.
    if isinstance(d, types.Float):
        return lambda d, trigger, reach: d < trigger - reach
    return lambda d, trigger, reach: trigger - d > reach


@overload(_within)
def _typed_within(d, last, reach):  # type: ignore[no-untyped-def]
    if isinstance(d, types.Float):
        return lambda d, last, reach: d > last - reach
    return lambda d, last, reach: last - d < reach


@compiled
def _delta(d, offsets, reach, slide, partial, key, seq, lo, hi):  # type: ignore[no-untyped-def]
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
                while a < b and _beyond(d[a], trigger, reach):
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
            while a < end and not _within(d[a], d[end - 1], reach):
                a += 1
            if a < end:
                key[found] = k
                seq[found] = w
                lo[found] = a
                hi[found] = end
                found += 1
    return found
