"""Windows that last as long as events keep coming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paneflow._faces import Call
from paneflow.windows._checks import settle
from paneflow.windows.duration import Duration, duration
from paneflow.windows.window import Ticks, Window, WindowClass


@dataclass(frozen=True, repr=False)
class Session(Window):
    """A window is a maximal run of events whose consecutive times differ by at most `gap`."""

    window_class: ClassVar[WindowClass] = WindowClass.FCA

    gap: Duration

    def __post_init__(self) -> None:
        settle(self, gap=duration(self.gap, "gap"))

    def extent(self, seq: Ticks, first_t: Ticks, last_t: Ticks) -> tuple[Ticks, Ticks]:
        """The extent: from the first event to one gap after the last."""
        return first_t, last_t + self.gap.value

    def _call(self) -> Call:
        return Call("session", (self.gap,))


def session(gap: object) -> Session:
    """A window that ends when no event comes for longer than `gap`.

    Two events exactly `gap` apart are in the same session; a gap of 0 joins equal times only.

    >>> str(session("5 minutes"))
    'session(5m)'
    """
    return Session(gap=duration(gap, "gap"))
