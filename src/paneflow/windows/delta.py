"""Windows over a column that grows with the events, such as a distance or an energy counter."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

import numpy as np

from paneflow._display import Call
from paneflow.errors import QueryError
from paneflow.windows._checks import column_name, flag, settle
from paneflow.windows.duration import Duration, DurationLike, duration
from paneflow.windows.window import Ticks, Window, WindowClass


@dataclass(frozen=True, repr=False)
class Delta(Window):
    """A trigger with value d evaluates the events before it with `d - range <= value < d`.

    The first event is a trigger; the next one is the first event whose value exceeds the last
    trigger's by more than `slide`. The column must not decrease.

    Attributes:
        column: The column whose values are compared.
        range: How far back in the column's values a window reaches.
        slide: How far the column must grow before the next trigger.
        partial: Whether the last event of a finite input is a trigger, too.

    Example:
        >>> from paneflow import windows as W
        >>> W.delta("odometer", 100.0, 5.0).columns
        ('odometer',)
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
                f"of different kinds: give two numbers, or two durations for a timestamp column."
            )
        if _size(self.range) <= 0:
            raise QueryError(
                f"The range of delta({self.column}) was given as {self.range}, but it must be "
                f"more than 0: otherwise no event is in the window."
            )
        if _size(self.slide) < 0:
            raise QueryError(
                f"The slide of delta({self.column}) was given as {self.slide}, but it must be "
                f"at least 0: the column does not decrease."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def needs_timestamps(self) -> bool:
        """False: a delta's durations are measured on its own column, not on the time column."""
        return False

    @property
    def without_unit(self) -> dict[str, int]:
        """None: a delta's durations are measured on its own column, not on the time column."""
        return {}

    def extent(self, seq: Ticks, first_t: Ticks, last_t: Ticks) -> tuple[Ticks, Ticks]:
        """The times of the first and the last event in the window."""
        return first_t, last_t

    def _call(self) -> Call:
        options = {"partial": True} if self.partial else {}
        return Call("delta", (self.column, self.range, self.slide), options)


def delta(
    column: str, range: float | DurationLike, slide: float | DurationLike, partial: bool = False
) -> Delta:
    """The most recent stretch of a growing column, evaluated whenever it has grown enough.

    Range and slide are numbers, or durations if the column holds timestamps.

    Args:
        column: The column whose values are compared; they must not decrease.
        range: How far back in the column's values a window reaches.
        slide: A window is evaluated when the column has grown by more than this.
        partial: Also evaluate at the last event of a finite input.

    Returns:
        The window.

    Example:
        >>> from paneflow import windows as W
        >>> W.delta("odometer", 100.0, 5.0), W.delta("sent_at", "1 hour", "1 minute")
        (delta('odometer', 100.0, 5.0), delta('sent_at', '1h', '1m'))
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
