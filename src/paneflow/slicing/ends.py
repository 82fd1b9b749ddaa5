"""When time windows end: what has closed by a time, and what is open after it."""

from __future__ import annotations

from typing import TypeVar

from paneflow.aggregates.operator import Array
from paneflow.windows import Sliding

Times = TypeVar("Times", int, Array)


def last_ended(window: Sliding, t: int) -> int:
    """The number of the last window that has ended by a time."""
    return (t - window.offset.value - window.range.value) // window.slide.value


def first_open(window: Sliding, t: int) -> int:
    """When the first window begins that ends after a time."""
    return window.offset.value + (last_ended(window, t) + 1) * window.slide.value


def ended_until(window: Sliding, t: int) -> int:
    """The end of the last window that has ended by a time."""
    return first_open(window, t) - window.slide.value + window.range.value


def last_end(window: Sliding, t: Times) -> Times:
    """The end of the last window that has begun by a time, or by each of some times.

    >>> from paneflow.windows import sliding
    >>> last_end(sliding(10, 4), 9)
    18

    It is not after a time that lies in a gap between windows.
    """
    slide, offset = window.slide.value, window.offset.value
    return offset + (t - offset) // slide * slide + window.range.value
