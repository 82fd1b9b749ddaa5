"""Windows that last as long as events keep arriving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paneflow._display import Call
from paneflow.windows._checks import settle
from paneflow.windows.duration import Duration, DurationLike, duration
from paneflow.windows.window import Ticks, Window, WindowClass


@dataclass(frozen=True, repr=False)
class Session(Window):
    """A window is a maximal run of events whose consecutive times differ by at most `gap`.

    Attributes:
        gap: The longest time between two events of a window.

    Example:
        >>> from paneflow import windows as W
        >>> W.session("5 minutes").gap
        Duration(value=300000000, textual=True)
    """

    window_class: ClassVar[WindowClass] = WindowClass.FCA

    gap: Duration

    def __post_init__(self) -> None:
        settle(self, gap=duration(self.gap, "gap"))

    def extent(self, seq: Ticks, first_t: Ticks, last_t: Ticks) -> tuple[Ticks, Ticks]:
        """From the first event to one gap after the last."""
        return first_t, last_t + self.gap.value

    def _call(self) -> Call:
        return Call("session", (self.gap,))


def session(gap: DurationLike) -> Session:
    """Windows that end when no event of a key has arrived for longer than a gap.

    Args:
        gap: The longest time between two events of a session. Events exactly `gap` apart are in
            the same session; a gap of 0 joins only events with equal times.

    Returns:
        The window.

    Example:
        >>> from paneflow import windows as W
        >>> W.session("5 minutes")
        session('5m')
    """
    return Session(gap=duration(gap, "gap"))
