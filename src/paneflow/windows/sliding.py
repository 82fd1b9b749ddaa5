"""Windows over time that slide by time; a tumbling window slides by its own range."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import ClassVar

from paneflow._display import Call
from paneflow.windows._checks import settle
from paneflow.windows.duration import Duration, DurationLike, duration, offset_from_epoch
from paneflow.windows.window import Ticks, Window, WindowClass


@dataclass(frozen=True, repr=False)
class Sliding(Window):
    """Window w holds the events with `offset + w*slide <= t < offset + w*slide + range`.

    Attributes:
        range: How long a window is.
        slide: How far apart windows begin.
        offset: When window 0 begins, counted from the epoch.

    Example:
        >>> from paneflow import windows as W
        >>> W.sliding("1 hour", "1 minute").slide
        Duration(value=60000000, textual=True)
    """

    window_class: ClassVar[WindowClass] = WindowClass.CF

    range: Duration
    slide: Duration
    offset: Duration

    def __post_init__(self) -> None:
        settle(
            self,
            range=duration(self.range, "range", least=1),
            slide=duration(self.slide, "slide", least=1),
            offset=offset_from_epoch(self.offset),
        )

    def extent(self, seq: Ticks, first_t: Ticks, last_t: Ticks) -> tuple[Ticks, Ticks]:
        """The bounds `[start, end)`, which follow from the window's number alone."""
        start = seq * self.slide.value + self.offset.value
        return start, start + self.range.value

    @property
    def overlap(self) -> int:
        """How many windows an event is in, at most."""
        return -(-self.range.value // self.slide.value)

    def assigned(self, t: int) -> builtins.range:
        """The mapping: the numbers of the windows that an event belongs to.

        Args:
            t: The time of the event, in microseconds or the time column's own unit.

        Returns:
            The numbers, which are consecutive; none for an event in a gap between windows.

        Example:
            >>> from paneflow import windows as W
            >>> list(W.sliding(4, 2).assigned(1))
            [-1, 0]
            >>> list(W.sliding(2, 5).assigned(3))
            []
        """
        since = t - self.offset.value
        slide = self.slide.value
        return range((since - self.range.value) // slide + 1, since // slide + 1)

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The edges: times at which windows begin or end, as progressions (phase, step).

        A slice that is cut at every time `phase + i*step` lies entirely inside or outside each
        window.

        >>> sliding(5, 2).edges
        ((0, 2), (1, 2))
        >>> sliding(4, 2).edges
        ((0, 2),)
        """
        slide = self.slide.value
        begins = (self.offset.value % slide, slide)
        ends = ((self.offset.value + self.range.value) % slide, slide)
        return (begins,) if begins == ends else (begins, ends)

    def _call(self) -> Call:
        shifted = {"offset": self.offset} if self.offset.value else {}
        if self.slide == self.range:
            return Call("tumbling", (self.range,), shifted)
        return Call("sliding", (self.range, self.slide), shifted)


def sliding(range: DurationLike, slide: DurationLike, offset: DurationLike = 0) -> Sliding:
    """Windows of a fixed length, one beginning at every slide.

    Durations have a unit (`"1 hour"`, a `timedelta`) if the time column holds timestamps, and are
    whole numbers if it holds integers. Windows are aligned to the epoch, 1970-01-01 00:00 UTC.

    Args:
        range: How long a window is.
        slide: How far apart windows begin. It need not divide the range, and leaves gaps if it is
            longer than the range.
        offset: Shifts all windows; may be negative.

    Returns:
        The window.

    Example:
        >>> from paneflow import windows as W
        >>> W.sliding("1 hour", "1 second")
        sliding('1h', '1s')
        >>> str(W.sliding(4, 2, offset=1))
        'sliding(4, 2, offset=1)'
    """
    return Sliding(
        range=duration(range, "range", least=1),
        slide=duration(slide, "slide", least=1),
        offset=offset_from_epoch(offset),
    )


def tumbling(range: DurationLike, offset: DurationLike = 0) -> Sliding:
    """Windows of a fixed length, each beginning where the one before it ends.

    Args:
        range: How long a window is. `"1 day"` is 24 hours from midnight UTC, also where local
            clocks change.
        offset: Shifts all windows; may be negative.

    Returns:
        The window: `tumbling(r)` equals `sliding(r, r)`.

    Example:
        >>> from paneflow import windows as W
        >>> W.tumbling("5 s")
        tumbling('5s')
    """
    return sliding(range, range, offset)
