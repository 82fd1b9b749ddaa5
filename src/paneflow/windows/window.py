"""What every window has in common: its class, its extent, its label, the columns it reads.

A window is a value: a frozen dataclass that says what is asked, never how it is answered. Slicers
and engines read its fields. Three words recur in this room:

- *class*: how much of the stream has to be known before a window's bounds are known;
- *extent*: the `start` and `end` that a result row shows;
- *mapping* and *edges*: for context-free windows, which windows an event belongs to, and where
  slices must be cut so that no window begins or ends inside one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from enum import Enum, IntFlag
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from paneflow._faces import Call, bare, code_html
from paneflow.windows.duration import Duration

Ticks = TypeVar("Ticks", int, npt.NDArray[np.int64])
"""Times or window numbers: one of them, or a whole column."""


class WindowClass(Enum):
    """The class of a window: what has to be known before its bounds are known.

    >>> from paneflow import windows as W
    >>> W.sliding("1 hour", "1 second").window_class
    <WindowClass.CF: 'context free'>
    """

    CF = "context free"
    FCF = "forward-context free"
    FCA = "forward-context aware"


class Mark(IntFlag):
    """What an event does to the open windows of a custom window; flags may be combined.

    They are applied in the order CLOSE_BEFORE, OPEN, CLOSE_AFTER. A close when no window is open
    does nothing.
    """

    KEEP = 0
    CLOSE_BEFORE = 1
    OPEN = 2
    CLOSE_AFTER = 4


# The same as plain integers: Numba compiles these inside a custom window's step, but no flags.
KEEP = 0
CLOSE_BEFORE = 1
OPEN = 2
CLOSE_AFTER = 4


@dataclass(frozen=True, repr=False)
class Window(ABC):
    """A kind of window with its parameters. `str(window)` is its default label."""

    window_class: ClassVar[WindowClass]

    @property
    def columns(self) -> tuple[str, ...]:
        """The value columns the window reads to find its bounds; empty for most kinds."""
        return ()

    @property
    def needs_timestamps(self) -> bool:
        """Whether a duration over the time column was given as text or `timedelta`.

        Such a duration has no meaning over an integer time column, whose unit is the user's own.
        """
        given = (getattr(self, field.name) for field in fields(self))
        return any(isinstance(value, Duration) and value.textual for value in given)

    def without_partial(self) -> Window:
        """The window as a stream sees it: there is no end at which it could be incomplete.

        A custom window may say `partial` by a property, which no stream asks for.
        """
        stated = any(field.name == "partial" for field in fields(self))
        return replace(self, partial=False) if stated else self  # type: ignore[call-arg]

    @property
    def without_unit(self) -> dict[str, int]:
        """Durations over the time column that were given as whole numbers, by name; 0 is none.

        Such a duration has no meaning over timestamps: nobody knows whether 3600 is seconds.

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
        """The extent: `start` and `end` of window `seq`, whose events span `first_t..last_t`.

        Takes and gives integers, or int64 arrays for many windows at once.
        """

    def _call(self) -> Call:
        """The call that makes this window; options that have their default are left out."""
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
