"""Windows of a fixed length of time, evaluated at every n-th event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paneflow._display import Call
from paneflow.windows._checks import flag, settle, whole_number
from paneflow.windows.duration import Duration, DurationLike, duration
from paneflow.windows.window import Ticks, Window, WindowClass


@dataclass(frozen=True, repr=False)
class SlideByTuple(Window):
    """Every `every`-th event triggers a window of the events with `t > t_trigger - range`.

    Attributes:
        range: How far back a window reaches from its trigger.
        every: How many events apart triggers are.
        partial: Whether the last event of a finite input is a trigger, too.

    Example:
        >>> from paneflow import windows as W
        >>> W.slide_by_tuple("1 minute", 100).every
        100
    """

    window_class: ClassVar[WindowClass] = WindowClass.FCA

    range: Duration
    every: int
    partial: bool

    def __post_init__(self) -> None:
        settle(
            self,
            range=duration(self.range, "range", least=1),
            every=whole_number(self.every, "slide"),
        )
        flag(self.partial, "partial")

    def extent(self, seq: Ticks, first_t: Ticks, last_t: Ticks) -> tuple[Ticks, Ticks]:
        """The times of the first and the last event in the window."""
        return first_t, last_t

    def _call(self) -> Call:
        options = {"partial": True} if self.partial else {}
        return Call("slide_by_tuple", (self.range, self.every), options)


def slide_by_tuple(range: DurationLike, every: int, partial: bool = False) -> SlideByTuple:
    """The most recent stretch of time, evaluated at every n-th event of a key.

    Args:
        range: How far back a window reaches from the event at which it is evaluated.
        every: How many events apart evaluations are.
        partial: Also evaluate at the last event of a finite input.

    Returns:
        The window.

    Example:
        >>> from paneflow import windows as W
        >>> W.slide_by_tuple("1 minute", 100)
        slide_by_tuple('1m', 100)
    """
    return SlideByTuple(
        range=duration(range, "range", least=1),
        every=whole_number(every, "slide"),
        partial=partial,
    )
