"""Checks that durations fit the columns they measure: units for timestamps, plain numbers else.

A plain 3600 over timestamps could be seconds or microseconds, so it is refused. So is "1 hour"
over integers, whose unit only the user knows. 0 is 0 in any unit.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from paneflow.errors import InputError
from paneflow.slicing.times import time_type
from paneflow.windows import Delta, Duration, Window


def check_durations(
    windows: Mapping[str, Window], lateness: Duration, schema: pa.Schema, time: str
) -> None:
    """Refuse durations that do not fit the time column, or the column of a delta window."""
    given = schema.field(time).type
    stamped = time_type(given, time).stamped
    for label, window in windows.items():
        if isinstance(window, Delta):
            _check_delta(label, window, schema.field(window.column).type)
        elif window.needs_timestamps and not stamped:
            raise InputError(
                f"window {label!r} is stated in units of time, but the time column {time!r} has "
                f"type {given}: state the window in whole numbers of the column's unit, or cast "
                f"the column to a timestamp"
            )
        for name, number in window.without_unit.items() if stamped else ():
            raise InputError(
                f"the {name} of window {label!r} is the whole number {number}, but the time "
                f"column {time!r} has type {given}, so its unit is missing: "
                f"{with_unit(name, number)}"
            )
    if lateness.textual and not stamped:
        raise InputError(
            f"lateness is {lateness}, but the time column {time!r} has type {given}: state it as "
            f"a whole number in the column's unit"
        )
    if stamped and not lateness.textual and lateness.value:
        raise InputError(
            f"lateness is the whole number {lateness}, but the time column {time!r} has type "
            f"{given}, so its unit is missing: {with_unit('lateness', lateness.value)}"
        )


def with_unit(name: str, number: float) -> str:
    """What to write instead of a whole number.

    >>> with_unit("range", 3600)
    'give the range with its unit, for example "3600 seconds" or "3600 us"'
    """
    return f'give the {name} with its unit, for example "{number} seconds" or "{number} us"'


def _check_delta(label: str, window: Delta, type_: pa.DataType) -> None:
    amounts = {"range": window.range, "slide": window.slide}
    if not pa.types.is_temporal(type_):
        return  # the engines know which numbers and durations fit
    for name, amount in amounts.items():
        if not isinstance(amount, Duration) and amount:
            raise InputError(
                f"the {name} of window {label!r} is the number {amount}, but its column "
                f"{window.column!r} has type {type_}, so its unit is missing: "
                f"{with_unit(name, amount)}"
            )
