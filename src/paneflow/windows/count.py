"""Windows over the positions of a key's events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paneflow._display import Call
from paneflow.windows._checks import flag, settle, whole_number
from paneflow.windows.window import Ticks, Window, WindowClass


@dataclass(frozen=True, repr=False)
class Count(Window):
    """Window w holds the events at positions `w*slide <= i < w*slide + size` of their key.

    Attributes:
        size: How many events a window holds.
        slide: How many events apart windows begin.
        partial: Whether the first incomplete window of a finite input is emitted.

    Example:
        >>> from paneflow import windows as W
        >>> W.count(100, 10).slide
        10
    """

    window_class: ClassVar[WindowClass] = WindowClass.CF

    size: int
    slide: int
    partial: bool

    def __post_init__(self) -> None:
        settle(self, size=whole_number(self.size, "size"), slide=whole_number(self.slide, "slide"))
        flag(self.partial, "partial")

    def extent(self, seq: Ticks, first_t: Ticks, last_t: Ticks) -> tuple[Ticks, Ticks]:
        """The times of the first and the last event in the window."""
        return first_t, last_t

    def assigned(self, position: int) -> range:
        """The mapping: the numbers of the windows that an event belongs to.

        Args:
            position: The position of the event among those of its key, from 0.

        Returns:
            The numbers, which are consecutive.

        Example:
            >>> from paneflow import windows as W
            >>> list(W.count(3, 2).assigned(2))
            [0, 1]
        """
        first = max(0, (position - self.size) // self.slide + 1)
        return range(first, position // self.slide + 1)

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The edges: positions at which windows begin or end, as progressions (phase, step).

        >>> count(3, 2).edges
        ((0, 2), (1, 2))
        """
        begins = (0, self.slide)
        ends = (self.size % self.slide, self.slide)
        return (begins,) if begins == ends else (begins, ends)

    def _call(self) -> Call:
        options = {"partial": True} if self.partial else {}
        sizes = (self.size,) if self.slide == self.size else (self.size, self.slide)
        return Call("count", sizes, options)


def count(size: int, slide: int | None = None, partial: bool = False) -> Count:
    """Windows of a fixed number of events of a key.

    Args:
        size: How many events a window holds.
        slide: How many events apart windows begin; by default `size`, so that they do not overlap.
        partial: Also emit the first incomplete window at the end of a finite input.

    Returns:
        The window.

    Example:
        >>> from paneflow import windows as W
        >>> W.count(100, 10), W.count(100)
        (count(100, 10), count(100))
    """
    number = whole_number(size, "size")
    step = number if slide is None else whole_number(slide, "slide")
    return Count(size=number, slide=step, partial=partial)
