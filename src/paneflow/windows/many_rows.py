"""How many rows a query returns, counted before any of them is made.

Only sliding windows can return more rows than there are events: an event is in as many windows as
slides fit into the range. `sliding("30 days", "1 ms")` over ten events returns up to 26 billion
rows. So rows are counted first, and a query that exceeds the limit is refused with the reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from paneflow.errors import ManyRowsWarning, QueryError, UnsupportedError
from paneflow.windows.duration import Duration
from paneflow.windows.sliding import Sliding
from paneflow.windows.window import Window

MAX_ROWS = 100_000_000
"""The most rows a query returns by default: 4 GB with one aggregate."""
WORTH_A_WARNING = 1_000_000
ROWS_PER_EVENT = 1_000
"""A window that is longer than the data is worth a warning from this many rows, in all and per
event."""


@dataclass(frozen=True)
class RowCount:
    """The number of rows of each window, and of the events and keys they come from."""

    rows: Mapping[str, int]
    events: int
    keys: int
    exact: bool = True
    """Whether the numbers are exact, as for sliding windows; otherwise they are upper bounds."""

    @property
    def total(self) -> int:
        return sum(self.rows.values())

    def __str__(self) -> str:
        keys = f" of {self.keys:,} keys" if self.keys != 1 else ""
        most = "" if self.exact else "at most "
        return f"{most}{self.total:,} rows of {self.events:,} events{keys}"


def overlap(window: Window) -> int:
    """The largest number of windows that an event is in.

    >>> from paneflow import windows as W
    >>> overlap(W.sliding("1 hour", "1 second")), overlap(W.count(10, 1))
    (3600, 1)
    """
    if not isinstance(window, Sliding):
        return 1  # each has an event of its own that opens or closes it
    return window.overlap


def check_limit(given: object) -> int | None:
    """Check `max_rows`: a number of rows, or None for no limit."""
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and given >= 0):
        return given
    raise QueryError(
        f"max_rows is {given!r}: give the largest number of rows that the result may have, or "
        f"None for no limit"
    )


def check_rows(count: RowCount, windows: Mapping[str, Window], max_rows: int | None) -> None:
    """Refuse a query that would return more rows than the limit."""
    if max_rows is None or count.total <= max_rows:
        return
    would = "would" if count.exact else "may"
    raise UnsupportedError(
        f"the query {would} give {count}, more than max_rows={max_rows:,}"
        f"{_cause(count, windows)}; or pass a larger max_rows, or None for no limit"
    )


def _cause(count: RowCount, windows: Mapping[str, Window]) -> str:
    label, most = max(count.rows.items(), key=lambda item: item[1])
    window = windows[label]
    if not isinstance(window, Sliding) or overlap(window) == 1:
        return ": query fewer events at a time"
    times = -(-count.total // max(count.events, 1))
    coarser = Duration(window.slide.value * min(times, overlap(window)), window.slide.textual)
    return (
        f": {most:,} are of window {label!r}, whose range is {overlap(window):,} slides long, so "
        f"that an event is in as many windows. Use a longer slide ({coarser} gives about one row "
        f"for each event) or a shorter range"
    )


def warn_of_many(
    count: RowCount, windows: Mapping[str, Window], span: int, stacklevel: int
) -> None:
    """Warn of a window that is longer than all the data and slides in very small steps."""
    for label, rows in count.rows.items():
        window = windows[label]
        if (
            isinstance(window, Sliding)
            and window.range.value > span
            and rows >= max(WORTH_A_WARNING, ROWS_PER_EVENT * count.events)
        ):
            warnings.warn(
                f"window {label!r} is longer than the data and slides in small steps: {rows:,} "
                f"rows of {count.events:,} events, most of them alike. If this is not intended, "
                f"use a longer slide or a shorter range",
                ManyRowsWarning,
                stacklevel=stacklevel + 1,
            )
