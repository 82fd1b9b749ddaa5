"""The time column: int64 inside, the user's type outside.

Timestamps are kept as microseconds UTC; integers as they are, in the user's own unit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.errors import InputError
from paneflow.slicing.ordering import is_sorted

FARTHEST = 2**61
"""Times beyond this are refused, so that adding a range or a slide cannot overflow."""
EARLIEST_EDGE = FARTHEST + 2**60
"""A slice begins at the last edge before its events, which may be a slide away."""


@dataclass(frozen=True)
class TimeType:
    """The type of the time column, and of `start` and `end` in result rows."""

    type: pa.DataType

    @property
    def stamped(self) -> bool:
        return bool(pa.types.is_timestamp(self.type))

    def restore(self, times: Array) -> pa.Array:
        return pa.array(times, pa.int64()).view(self.type)


def time_type(given: pa.DataType, column: str) -> TimeType:
    """What the time column is kept as; an error if it is no time.

    >>> import pyarrow as pa
    >>> time_type(pa.timestamp("ms", "UTC"), "ts").type
    TimestampType(timestamp[us, tz=UTC])
    """
    if pa.types.is_integer(given):
        return TimeType(pa.int64())
    if pa.types.is_timestamp(given):
        return TimeType(pa.timestamp("us", given.tz))
    if pa.types.is_date(given):
        return TimeType(pa.timestamp("us"))
    raise InputError(
        f"the time column {column!r} has type {given}; expected a timestamp, a date or an "
        f"integer: cast it, for example with to_datetime or strptime"
    )


def read_times(table: pa.Table, column: str, farthest: int = FARTHEST) -> tuple[Array, bool]:
    """The time of every row, as int64, and whether they never decrease.

    Nulls and times that are too far from zero are errors.
    """
    chunked = table.column(column)
    kept = time_type(chunked.type, column)
    if chunked.null_count:
        rows = np.flatnonzero(chunked.is_null().to_numpy())[:3]
        raise InputError(
            f"the time column {column!r} is null in {chunked.null_count} rows (row "
            f"{', '.join(map(str, rows))}, ...): an event without a time is in no window; "
            f"drop those rows or fill in their times"
        )
    try:
        times = chunked.cast(kept.type).cast(pa.int64())
    except pa.ArrowInvalid:
        finer = getattr(chunked.type, "unit", "") == "ns"
        advice = (
            "round the times to microseconds" if finer else "correct them or use a coarser unit"
        )
        raise InputError(
            f"the time column {column!r} of type {chunked.type} holds times that cannot be kept "
            f"as int64{' microseconds' if kept.stamped else ''}: {advice}"
        ) from None
    array = times.combine_chunks() if times.num_chunks != 1 else times.chunk(0)
    values: Array = array.to_numpy(zero_copy_only=False)
    in_order = is_sorted(values)
    far = _too_far(values[[0, -1]] if in_order and len(values) else values, farthest)
    if far:
        raise InputError(
            f"the time column {column!r} holds {far}, which is too far from zero for windows to "
            f"be added to it (at most 2**61): correct the time or use a coarser unit"
        )
    return values, in_order


def _too_far(times: Array, farthest: int) -> int:
    """The time that is farthest from zero, if it is too far; otherwise 0."""
    low, high = (int(times.min()), int(times.max())) if len(times) else (0, 0)
    if low < -farthest:
        return low
    return high if high > farthest else 0
