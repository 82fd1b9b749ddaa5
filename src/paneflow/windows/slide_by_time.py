"""Windows of a fixed number of events, evaluated at regular times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paneflow._display import Call
from paneflow.windows._checks import settle, whole_number
from paneflow.windows.duration import Duration, DurationLike, duration, offset_from_epoch
from paneflow.windows.window import Ticks, Window, WindowClass


@dataclass(frozen=True, repr=False)
class SlideByTime(Window):
    """Window w holds the last `size` events before the boundary `offset + (w+1)*slide`.

    Boundaries without a new event since the previous boundary are skipped.

    Attributes:
        size: How many events a window holds.
        slide: How far apart boundaries are.
        offset: Shifts all boundaries, which are otherwise multiples of `slide` from the epoch.

    Example:
        >>> from paneflow import windows as W
        >>> W.slide_by_time(100, "1 minute").size
        100
    """

    window_class: ClassVar[WindowClass] = WindowClass.FCA

    size: int
    slide: Duration
    offset: Duration

    def __post_init__(self) -> None:
        settle(
            self,
            size=whole_number(self.size, "size"),
            slide=duration(self.slide, "slide", least=1),
            offset=offset_from_epoch(self.offset),
        )

    def extent(self, seq: Ticks, first_t: Ticks, last_t: Ticks) -> tuple[Ticks, Ticks]:
        """From the first event in the window to the boundary."""
        return first_t, seq * self.slide.value + (self.offset.value + self.slide.value)

    def _call(self) -> Call:
        shifted = {"offset": self.offset} if self.offset.value else {}
        return Call("slide_by_time", (self.size, self.slide), shifted)


def slide_by_time(size: int, slide: DurationLike, offset: DurationLike = 0) -> SlideByTime:
    """The last events of a key, evaluated at regular times.

    Args:
        size: How many events a window holds; it has fewer while the key has had fewer.
        slide: The time between two evaluations. One without new events is skipped.
        offset: Shifts all evaluations; may be negative.

    Returns:
        The window.

    Example:
        >>> from paneflow import windows as W
        >>> W.slide_by_time(100, "1 minute")
        slide_by_time(100, '1m')
    """
    return SlideByTime(
        size=whole_number(size, "size"),
        slide=duration(slide, "slide", least=1),
        offset=offset_from_epoch(offset),
    )
