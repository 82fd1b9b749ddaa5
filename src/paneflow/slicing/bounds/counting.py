"""How many windows there will be, without finding them: a bound at once, the number in one pass.

It is NumPy, not a kernel: nothing has to be compiled, and it is called only where the bound alone
does not settle whether there are too many.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.slicing.bounds.fresh import fresh_windows
from paneflow.slicing.bounds.ranges import Ends
from paneflow.windows import Sliding, Window
from paneflow.windows.many_rows import (
    ROWS_PER_EVENT,
    WORTH_A_WARNING,
    RowCount,
    check_rows,
    overlap,
    warn_of_many,
)


def most_rows(window: Window, events: int, keys: int, span: int) -> int:
    """An upper bound of the rows of a window, for a number of events and keys in a span of time."""
    if not isinstance(window, Sliding):
        return events
    reached = (span + window.range.value) // window.slide.value + 1
    return min(events * overlap(window), keys * reached)


def count_rows(window: Window, t: Array, offsets: Array, ends_in: Ends = (None, None)) -> int:
    """The rows of a window; an upper bound unless it is a sliding one.

    Times are in order within each key, whose events begin at `offsets`.
    """
    if not isinstance(window, Sliding) or len(t) == 0:
        return len(t)
    return _exact_sum(fresh_windows(window, t, offsets, ends_in))


def _exact_sum(counts: Array) -> int:
    """The sum of counts, which may be more than int64 holds."""
    return (int(np.sum(counts >> 31)) << 31) + int(np.sum(counts & (2**31 - 1)))


def count_all(
    windows: Mapping[str, Window],
    t: Array,
    offsets: Array,
    ends_in: Ends = (None, None),
) -> RowCount:
    """The rows of every window."""
    keys = int(np.count_nonzero(np.diff(offsets)))
    rows = {label: count_rows(window, t, offsets, ends_in) for label, window in windows.items()}
    exact = all(isinstance(window, Sliding) for window in windows.values())
    return RowCount(rows, len(t), keys, exact)


def guard_rows(
    windows: Mapping[str, Window],
    t: Array,
    offsets: Array,
    max_rows: int | None,
    ends_in: Ends = (None, None),
    *,
    stacklevel: int | None = None,
) -> None:
    """Refuse too many rows, and warn of windows longer than the data if a stack level is given."""
    if len(t) == 0:
        return
    held = np.diff(offsets) > 0
    span = int(t[offsets[1:][held] - 1].max()) - int(t[offsets[:-1][held]].min())
    keys = int(np.count_nonzero(held))
    bounds = [most_rows(window, len(t), keys, span) for window in windows.values()]
    many = max_rows is not None and sum(bounds) > max_rows
    odd = stacklevel is not None and any(
        isinstance(window, Sliding)
        and window.range.value > span
        and bound >= max(WORTH_A_WARNING, ROWS_PER_EVENT * len(t))
        for window, bound in zip(windows.values(), bounds, strict=True)
    )
    if many or odd:
        count = count_all(windows, t, offsets, ends_in)
        check_rows(count, windows, max_rows)
        if stacklevel is not None:
            warn_of_many(count, windows, span, stacklevel + 1)
