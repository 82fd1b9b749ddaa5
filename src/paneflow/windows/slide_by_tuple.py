"""Windows of a length of time that are asked for every so many events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paneflow._faces import Call
from paneflow.windows._checks import flag, settle, whole_number
from paneflow.windows.duration import Duration, duration
from paneflow.windows.window import Ticks, Window, WindowClass


@dataclass(frozen=True, repr=False)
class SlideByTuple(Window):
    """Every `every`-th event triggers a window of the events with `t > t_trigger - range`."""

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
        """The extent: the times of the first and the last event in the window."""
        return first_t, last_t

    def _call(self) -> Call:
        options = {"partial": True} if self.partial else {}
        return Call("slide_by_tuple", (self.range, self.every), options)


def slide_by_tuple(range: object, every: int, partial: bool = False) -> SlideByTuple:
    """The last `range` of time, asked for at every `every`-th event of a key.

    `partial=True` also asks at the last event of a finite input.

    >>> str(slide_by_tuple("1 minute", 100))
    'slide_by_tuple(1m, 100)'
    """
    return SlideByTuple(
        range=duration(range, "range", least=1),
        every=whole_number(every, "slide"),
        partial=partial,
    )
