"""Which events each window holds: the table of windows in docs/semantics.md, row by row.

Nothing here is fast, and nothing here uses the methods of the window classes: engines use those,
and a mistake in them must not be compared with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pyarrow as pa

from paneflow.engines.oracle.events import Events
from paneflow.errors import InputError
from paneflow.windows import (
    Count,
    Custom,
    Delta,
    Duration,
    Mark,
    Punctuation,
    Session,
    SlideByTime,
    SlideByTuple,
    Sliding,
    Window,
)


@dataclass(frozen=True)
class Found:
    """One window of one key: its number, its bounds, and the rows of its events in order."""

    seq: int
    start: int
    end: int
    rows: list[int]


def windows_of(window: Window, events: Events, rows: list[int]) -> Iterator[Found]:
    """The windows of one key, whose events are `rows` in total order; none of them is empty."""
    for kind, find in _FINDERS.items():
        if isinstance(window, kind):
            yield from (found for found in find(window, events, rows) if found.rows)
            return
    raise TypeError(f"The oracle does not know windows of type {type(window).__name__}.")


def _sliding(window: Sliding, events: Events, rows: list[int]) -> Iterator[Found]:
    length, slide, offset = int(window.range), int(window.slide), int(window.offset)
    members: dict[int, list[int]] = {}
    for row in rows:
        t = events.times[row]
        w = (t - offset) // slide  # the last window that begins at t or before
        while t < offset + w * slide + length:
            members.setdefault(w, []).append(row)
            w -= 1
    for w, inside in members.items():
        start = offset + w * slide
        yield Found(w, start, start + length, inside)


def _count(window: Count, events: Events, rows: list[int]) -> Iterator[Found]:
    w = 0
    while w * window.slide + window.size <= len(rows):
        first = w * window.slide
        yield _from_events(w, events, rows[first : first + window.size])
        w += 1
    if window.partial:
        yield _from_events(w, events, rows[w * window.slide :])


def _session(window: Session, events: Events, rows: list[int]) -> Iterator[Found]:
    gap = int(window.gap)
    runs: list[list[int]] = []
    for row in rows:
        if runs and events.times[row] - events.times[runs[-1][-1]] <= gap:
            runs[-1].append(row)
        else:
            runs.append([row])
    for w, run in enumerate(runs):
        yield Found(w, events.times[run[0]], events.times[run[-1]] + gap, run)


def _slide_by_tuple(window: SlideByTuple, events: Events, rows: list[int]) -> Iterator[Found]:
    triggers = list(range(window.every - 1, len(rows), window.every))
    if window.partial and len(rows) % window.every:
        triggers.append(len(rows) - 1)
    for w, j in enumerate(triggers):
        after = events.times[rows[j]] - int(window.range)
        inside = [row for row in rows[: j + 1] if events.times[row] > after]
        yield _from_events(w, events, inside)


def _slide_by_time(window: SlideByTime, events: Events, rows: list[int]) -> Iterator[Found]:
    slide, offset = int(window.slide), int(window.offset)
    # A boundary has a new event if it is the first boundary after some event.
    with_news = {(events.times[row] - offset) // slide for row in rows}
    for w in sorted(with_news):
        boundary = offset + (w + 1) * slide
        inside = [row for row in rows if events.times[row] < boundary][-window.size :]
        yield Found(w, events.times[inside[0]], boundary, inside)


def _delta(window: Delta, events: Events, rows: list[int]) -> Iterator[Found]:
    unit = _unit(window, events)
    d = {row: value * unit for row, value in _growing(window, events, rows).items()}
    floating = pa.types.is_floating(_type(events, window.column))
    length, slide = (
        _as_float(given, window) if floating else _amount(given, unit)
        for given in (window.range, window.slide)
    )
    triggers: list[Any] = []
    for row in rows:
        if not triggers or d[row] - triggers[-1] > slide:
            triggers.append(d[row])
    for w, at in enumerate(triggers):
        yield _from_events(w, events, [row for row in rows if at - length <= d[row] < at])
    if window.partial:
        last = d[rows[-1]]
        inside = [row for row in rows if d[row] > last - length]
        yield _from_events(len(triggers), events, inside)


def _punctuation(window: Punctuation, events: Events, rows: list[int]) -> Iterator[Found]:
    type_ = _type(events, window.column)
    if not pa.types.is_boolean(type_) and not pa.types.is_null(type_):
        raise InputError(
            f"{window}: the column {window.column!r} has type {type_}: give a boolean column, for "
            f"example the result of a comparison."
        )
    w = 0
    inside: list[int] = []
    for row in rows:
        inside.append(row)
        if events.columns[window.column][row]:  # a null is no mark
            yield _from_events(w, events, inside)
            w += 1
            inside = []
    if window.partial:
        yield _from_events(w, events, inside)


def _custom(window: Custom, events: Events, rows: list[int]) -> Iterator[Found]:
    for name in window.columns:
        if pa.types.is_temporal(events.table.schema.field(name).type):
            raise InputError(
                f"{window}: the column {name!r} holds times: a custom window gets the time of an "
                f"event as `t`; cast other times to integers."
            )
    state = window.initial
    opened = 0
    still_open: list[tuple[int, list[int]]] = []  # oldest first
    for row in rows:
        values = [events.columns[name][row] for name in window.columns]
        mark = int(Mark.KEEP)
        if None not in values:
            state, mark = window.checked_step(state, events.times[row], *values)
        if mark & Mark.CLOSE_BEFORE and still_open:
            yield _from_events(still_open[0][0], events, still_open.pop(0)[1])
        if mark & Mark.OPEN:
            still_open.append((opened, []))
            opened += 1
        for _, inside in still_open:
            inside.append(row)
        if mark & Mark.CLOSE_AFTER and still_open:
            yield _from_events(still_open[0][0], events, still_open.pop(0)[1])
    if window.partial and still_open:
        yield _from_events(still_open[0][0], events, still_open[0][1])


def _from_events(w: int, events: Events, inside: list[int]) -> Found:
    """A window that lasts from its first event to its last."""
    if not inside:
        return Found(w, 0, 0, inside)
    return Found(w, events.times[inside[0]], events.times[inside[-1]], inside)


def _growing(window: Delta, events: Events, rows: list[int]) -> dict[int, Any]:
    """The column of a delta window per row, once it is known to have values that never fall."""
    column = events.columns[window.column]
    for row in rows:
        value = column[row]
        if value is None or value != value:
            raise InputError(
                f"{window}: the column {window.column!r} is {'null' if value is None else 'NaN'} "
                f"in {events.where(row)}, but a delta window needs a value in every event: "
                f"fill it in or drop the row."
            )
    for before, row in pairwise(rows):
        if column[row] < column[before]:
            raise InputError(
                f"{window}: the column {window.column!r} falls from {column[before]} to "
                f"{column[row]} in {events.where(row)}, but a delta window needs a column that "
                f"does not decrease over time within a key: correct it, or use another column."
            )
    return {row: column[row] for row in rows}


def _type(events: Events, column: str) -> pa.DataType:
    """The type of a column's values."""
    type_ = events.table.schema.field(column).type
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _unit(window: Delta, events: Events) -> int:
    """What to multiply a delta's column with: temporal values are compared in nanoseconds."""
    type_ = _type(events, window.column)
    numeric = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    if isinstance(window.range, Duration) if numeric else not pa.types.is_temporal(type_):
        raise InputError(
            f"{window}: the column {window.column!r} has type {type_}: give a column of numbers "
            f"with numbers as range and slide, or one of timestamps with durations."
        )
    if numeric:
        return 1
    if pa.types.is_date32(type_):
        return 86_400_000_000_000
    unit: str = getattr(type_, "unit", "ms")  # a date64 counts milliseconds
    return {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}[unit]


def _amount(given: int | float | Duration, unit: int) -> Fraction:
    """A range or slide in nanoseconds, or as it is for numbers, which have a unit of 1; exactly."""
    if isinstance(given, Duration):
        return Fraction(given.value * 1_000)  # microseconds
    return Fraction(given) * unit


def _as_float(given: Any, window: Delta) -> float:
    """A range or slide of a column of floats."""
    try:
        if Fraction(float(given)) == Fraction(given):
            return float(given)
    except OverflowError:
        pass
    raise InputError(
        f"{window}: {given} is no number that float64 holds exactly, and the column "
        f"{window.column!r} holds floats: give it as a float."
    )


_FINDERS: dict[type[Window], Callable[[Any, Events, list[int]], Iterator[Found]]] = {
    Sliding: _sliding,
    Count: _count,
    Session: _session,
    SlideByTuple: _slide_by_tuple,
    SlideByTime: _slide_by_time,
    Delta: _delta,
    Punctuation: _punctuation,
    Custom: _custom,
}
