"""How many rows a query gives, before any of them is made.

Only sliding windows can give more rows than there are events: an event is in as many windows as
slides fit into the range. `sliding("30 days", "1 ms")` over ten events gives up to 26 thousand
million rows. So rows are counted first, and beyond a limit the query is refused, with the reason.
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
"""Rows that a query gives at most unless it is told otherwise: 4 GB with one aggregate."""
WORTH_A_WARNING = 1_000_000
ROWS_PER_EVENT = 1_000
"""So many rows in all, and for each event, where a window is longer than the data."""


@dataclass(frozen=True)
class RowCount:
    """The rows of each window, and what they come of."""

    rows: Mapping[str, int]
    events: int
    keys: int
    exact: bool = True
    """Whether all windows slide by time; others have no more rows than said."""

    @property
    def total(self) -> int:
        return sum(self.rows.values())

    def __str__(self) -> str:
        keys = f" of {self.keys:,} keys" if self.keys != 1 else ""
        most = "" if self.exact else "at most "
        return f"{most}{self.total:,} rows of {self.events:,} events{keys}"


def overlap(window: Window) -> int:
    """The windows that an event is in, at most.

    >>> from paneflow import windows as W
    >>> overlap(W.sliding("1 hour", "1 second")), overlap(W.count(10, 1))
    (3600, 1)
    """
    if not isinstance(window, Sliding):
        return 1  # each has an event of its own that opens or closes it
    return (window.range.value - 1) // window.slide.value + 1


def check_limit(given: object) -> int | None:
    """The value of `max_rows`: a number of rows, or None for no limit."""
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and given >= 0):
        return given
    raise QueryError(
        f"max_rows is {given!r}: give the number of rows that the result may have, or None for "
        f"no limit"
    )


def check_rows(count: RowCount, windows: Mapping[str, Window], max_rows: int | None) -> None:
    """Refuse more rows than the limit."""
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
        return ": ask for fewer events at a time"
    times = -(-count.total // max(count.events, 1))
    coarser = Duration(window.slide.value * min(times, overlap(window)), window.slide.textual)
    return (
        f": {most:,} are of window {label!r}, whose range is {overlap(window):,} slides long, so "
        f"that an event is in as many windows. Take a longer slide ({coarser} gives about one row "
        f"for each event) or a shorter range"
    )


def warn_of_many(
    count: RowCount, windows: Mapping[str, Window], span: int, stacklevel: int
) -> None:
    """Warn of a window that is longer than all the data and slides by next to nothing."""
    for label, rows in count.rows.items():
        window = windows[label]
        if (
            isinstance(window, Sliding)
            and window.range.value > span
            and rows >= max(WORTH_A_WARNING, ROWS_PER_EVENT * count.events)
        ):
            warnings.warn(
                f"window {label!r} is longer than the data and slides by little: {rows:,} rows of "
                f"{count.events:,} events, most of them alike. If that is not meant, take a "
                f"longer slide or a shorter range",
                ManyRowsWarning,
                stacklevel=stacklevel + 1,
            )
