"""What all windows have in common: a class, an extent, a label, and the columns they read.

A window is a value: a frozen dataclass that says what is asked, never how it is answered. Slicers
and engines read its fields. Three terms recur in this room:

- *class*: how much of the stream must be known before a window's bounds are known;
- *extent*: the `start` and `end` shown in a result row;
- *mapping* and *edges*, for context-free windows: which windows an event belongs to, and where
  slices must be cut so that no window begins or ends inside one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from enum import Enum, IntFlag
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from paneflow._display import Call, bare, code_html
from paneflow.windows.duration import Duration

Ticks = TypeVar("Ticks", int, npt.NDArray[np.int64])
"""Times or window numbers: one of them, or a whole column."""


class WindowClass(Enum):
    """How much of the stream must be known before a window's bounds are known.

    - `CF`, context free: nothing, the bounds follow from the definition;
    - `FCF`, forward-context free: the events up to the bound;
    - `FCA`, forward-context aware: also events after it.

    Example:
        >>> from paneflow import windows as W
        >>> W.sliding("1 hour", "1 second").window_class
        <WindowClass.CF: 'context free'>
    """

    CF = "context free"
    FCF = "forward-context free"
    FCA = "forward-context aware"


class Mark(IntFlag):
    """What an event does to the open windows of a `Custom` window; marks can be combined.

    They are applied in the order `CLOSE_BEFORE`, `OPEN`, `CLOSE_AFTER`. Closing does nothing if no
    window is open.

    Example:
        >>> from paneflow import windows as W
        >>> W.Mark(W.CLOSE_BEFORE | W.OPEN)
        <Mark.CLOSE_BEFORE|OPEN: 3>
    """

    KEEP = 0
    CLOSE_BEFORE = 1
    OPEN = 2
    CLOSE_AFTER = 4


# The same as plain integers: Numba can compile these in a custom window's step, but not flags.
KEEP = 0
CLOSE_BEFORE = 1
OPEN = 2
CLOSE_AFTER = 4


@dataclass(frozen=True, repr=False)
class Window(ABC):
    """The base class of all windows; `str(window)` is a window's default label.

    Use the constructors of this module to make one, and subclass `Custom` to define your own.

    Example:
        >>> from paneflow import windows as W
        >>> window = W.sliding("1 hour", "1 minute")
        >>> isinstance(window, W.Window), str(window)
        (True, 'sliding(1h, 1m)')
    """

    window_class: ClassVar[WindowClass]

    @property
    def columns(self) -> tuple[str, ...]:
        """The value columns that are read to find the bounds; most kinds of window read none."""
        return ()

    @property
    def needs_timestamps(self) -> bool:
        """Whether one of the durations has a unit.

        Such a duration has no meaning over an integer time column, which has its own unit.
        """
        given = (getattr(self, field.name) for field in fields(self))
        return any(isinstance(value, Duration) and value.textual for value in given)

    def without_partial(self) -> Window:
        """The same window without `partial`.

        An unbounded stream has no end at which a window could be incomplete. A custom window that
        has `partial` as a property is returned as it is: streams do not read it.

        Returns:
            The window as a stream answers it.

        Example:
            >>> from paneflow import windows as W
            >>> W.count(10, partial=True).without_partial()
            count(10)
        """
        stated = any(field.name == "partial" for field in fields(self))
        return replace(self, partial=False) if stated else self  # type: ignore[call-arg]

    @property
    def without_unit(self) -> dict[str, int]:
        """The durations that were given as whole numbers other than 0, by parameter name.

        Such a duration has no meaning over timestamps: 3600 might be seconds or anything else.

        >>> from paneflow import windows as W
        >>> W.sliding("1 hour", 60).without_unit
        {'slide': 60}
        """
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value.value
            for name, value in given.items()
            if isinstance(value, Duration) and not value.textual and value.value
        }

    @abstractmethod
    def extent(self, seq: Ticks, first_t: Ticks, last_t: Ticks) -> tuple[Ticks, Ticks]:
        """The `start` and `end` that result rows show for a window.

        Args:
            seq: The window's number, or an int64 array of numbers for many windows at once.
            first_t: The time of the window's first event, or an array.
            last_t: The time of the window's last event, or an array.

        Returns:
            The start and the end, as integers or arrays.

        Example:
            >>> from paneflow import windows as W
            >>> W.sliding(60, 10).extent(3, first_t=41, last_t=77)
            (30, 90)
        """

    def _call(self) -> Call:
        """The call that makes this window, without options that have their default value."""
        return Call(type(self).__name__, tuple(getattr(self, f.name) for f in fields(self)))

    def __str__(self) -> str:
        return self._call().text(bare)

    def __repr__(self) -> str:
        return self._call().text(_as_argument)

    def _repr_html_(self) -> str:
        return code_html(str(self))


def _as_argument(value: object) -> str:
    if isinstance(value, Duration):
        return repr(str(value) if value.textual else value.value)
    return repr(value)
