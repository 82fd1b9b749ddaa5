"""Windows over a column that grows with the events, such as a distance or an energy counter."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

import numpy as np

from paneflow._faces import Call
from paneflow.errors import QueryError
from paneflow.windows._checks import column_name, flag, settle
from paneflow.windows.duration import Duration, duration
from paneflow.windows.window import Ticks, Window, WindowClass


@dataclass(frozen=True, repr=False)
class Delta(Window):
    """A trigger with value d asks for the events before it with `d - range <= value < d`.

    The first event is a trigger; the next trigger is the first event whose column exceeds the last
    trigger's by more than `slide`. The column must not decrease.
    """

    window_class: ClassVar[WindowClass] = WindowClass.FCA

    column: str
    range: int | float | Duration
    slide: int | float | Duration
    partial: bool

    def __post_init__(self) -> None:
        column_name(self.column, "delta")
        flag(self.partial, "partial")
        settle(self, range=_amount(self.range, "range"), slide=_amount(self.slide, "slide"))
        if isinstance(self.range, Duration) != isinstance(self.slide, Duration):
            raise QueryError(
                f"The range {self.range} and the slide {self.slide} of delta({self.column}) are "
                f"not of one kind: give two numbers, or two durations for a timestamp column."
            )
        if _size(self.range) <= 0:
            raise QueryError(
                f"The range of delta({self.column}) was given as {self.range}, but it has to be "
                f"more than 0: no event would be in the window."
            )
        if _size(self.slide) < 0:
            raise QueryError(
                f"The slide of delta({self.column}) was given as {self.slide}, but it has to be "
                f"at least 0: the column does not decrease."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def needs_timestamps(self) -> bool:
        """False: a delta's durations measure its own column, not the time column."""
        return False

    @property
    def without_unit(self) -> dict[str, int]:
        """None: a delta's durations measure its own column, not the time column."""
        return {}

    def extent(self, seq: Ticks, first_t: Ticks, last_t: Ticks) -> tuple[Ticks, Ticks]:
        """The extent: the times of the first and the last event in the window."""
        return first_t, last_t

    def _call(self) -> Call:
        options = {"partial": True} if self.partial else {}
        return Call("delta", (self.column, self.range, self.slide), options)


def delta(column: str, range: object, slide: object, partial: bool = False) -> Delta:
    """The last `range` of a growing column, asked for whenever it has grown by more than `slide`.

    Range and slide are numbers, or durations if the column holds timestamps. `partial=True` also
    asks at the last event of a finite input.

    >>> str(delta("odometer", 100.0, 5.0)), str(delta("sent_at", "1 hour", "1 minute"))
    ('delta(odometer, 100.0, 5.0)', 'delta(sent_at, 1h, 1m)')
    """
    return Delta(
        column=column_name(column, "delta"),
        range=_amount(range, "range"),
        slide=_amount(slide, "slide"),
        partial=partial,
    )


def _amount(given: object, what: str) -> int | float | Duration:
    if isinstance(given, (str, timedelta, np.timedelta64, Duration)):
        return duration(given, what, least=None)
    if isinstance(given, float) and math.isfinite(given):
        return float(given)
    if not isinstance(given, (bool, float)):
        try:
            return operator.index(given)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise QueryError(
        f"The {what} of a delta window was given as {given!r}: give a finite number in the unit "
        f"of the column, or a duration for a timestamp column."
    )


def _size(amount: int | float | Duration) -> int | float:
    return amount.value if isinstance(amount, Duration) else amount
