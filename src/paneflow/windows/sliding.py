"""Windows over time that slide by time; a tumbling window is one that slides by its range."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import ClassVar

from paneflow._faces import Call
from paneflow.windows._checks import settle
from paneflow.windows.duration import Duration, duration, offset_from_epoch
from paneflow.windows.window import Ticks, Window, WindowClass


@dataclass(frozen=True, repr=False)
class Sliding(Window):
    """Window w holds the events with `offset + w*slide <= t < offset + w*slide + range`."""

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
        """The extent: the bounds `[start, end)`, known from the window's number alone."""
        start = seq * self.slide.value + self.offset.value
        return start, start + self.range.value

    def assigned(self, t: int) -> builtins.range:
        """The mapping: the numbers of the windows that an event at `t` belongs to.

        >>> list(sliding(4, 2).assigned(1))
        [-1, 0]
        >>> list(sliding(2, 5).assigned(3))  # in the gap between two windows
        []
        """
        since = t - self.offset.value
        slide = self.slide.value
        return range((since - self.range.value) // slide + 1, since // slide + 1)

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The edges: times at which windows begin or end, as progressions (phase, step).

        A slice cut at every time `phase + i*step` lies wholly inside or outside each window.

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


def sliding(range: object, slide: object, offset: object = 0) -> Sliding:
    """A window of length `range` that begins every `slide`, shifted by `offset`.

    The slide need not divide the range; a slide longer than the range leaves gaps. Windows count
    from the epoch, 1970-01-01 00:00 UTC: `offset` moves them all. Over timestamps durations have a
    unit, over integers they are whole numbers.

    >>> str(sliding("1 hour", "1 second"))
    'sliding(1h, 1s)'
    >>> str(sliding(4, 2, offset=1))
    'sliding(4, 2, offset=1)'
    """
    return Sliding(
        range=duration(range, "range", least=1),
        slide=duration(slide, "slide", least=1),
        offset=offset_from_epoch(offset),
    )


def tumbling(range: object, offset: object = 0) -> Sliding:
    """A window of length `range` that begins where the one before it ends.

    `"1 day"` is 24 hours from midnight UTC, also where local clocks change; `offset` moves it.

    >>> str(tumbling("5 s"))
    'tumbling(5s)'
    """
    return sliding(range, range, offset)
