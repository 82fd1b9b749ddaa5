"""Durations, read in one place.

People write `"1 hour 30 minutes"`, a `timedelta`, an `np.timedelta64`, or a plain integer in the
unit of their time column. All other modules see one integer and whether it was given with a unit:
a duration with a unit counts microseconds and fits only a timestamp column, one without a unit fits
only an integer column. A day is 24 hours, a week is seven days.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import SupportsIndex, TypeAlias

import numpy as np

from paneflow.errors import QueryError

_MICROSECONDS = {
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
_NAMES = {
    "d": ("d", "day", "days"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "ms": ("ms", "msec", "millisecond", "milliseconds"),
    "us": ("us", "µs", "μs", "usec", "microsecond", "microseconds"),
}
_UNITS = {name: _MICROSECONDS[unit] for unit, names in _NAMES.items() for name in names}
_UNITS |= dict.fromkeys(("w", "week", "weeks"), 7 * _MICROSECONDS["d"])

_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([^\W\d_]+)\s*")

# Bounds and sums of bounds stay within int64 for every length below this.
_LARGEST = 2**60

# How many units of NumPy make how many microseconds; years and months have no fixed length.
_NUMPY = {unit: Fraction(size) for unit, size in _MICROSECONDS.items()}
_NUMPY |= {"D": Fraction(_UNITS["day"]), "W": Fraction(_UNITS["week"])}
_NUMPY |= {"ns": Fraction(1, 10**3), "ps": Fraction(1, 10**6)}
_NUMPY |= {"fs": Fraction(1, 10**9), "as": Fraction(1, 10**12)}

_EXPECTED = 'text such as "250 ms" or "1 hour 30 minutes", a timedelta, or an integer'


@dataclass(frozen=True)
class Duration:
    """A length of time; make one with `duration`.

    Attributes:
        value: Microseconds, or the number as it was given if it has no unit.
        textual: Whether the duration was given with a unit.

    Example:
        >>> from paneflow import windows as W
        >>> W.duration("1 hour 30 minutes")
        Duration(value=5400000000, textual=True)
        >>> str(W.duration("90 min")), int(W.duration("250 ms")), str(W.duration(5))
        ('1h30m', 250000, '5')
    """

    value: int
    textual: bool

    def __int__(self) -> int:
        return self.value

    def __str__(self) -> str:
        if not self.textual:
            return str(self.value)
        rest = abs(self.value)
        parts = []
        for unit, size in _MICROSECONDS.items():
            number, rest = divmod(rest, size)
            if number:
                parts.append(f"{number}{unit}")
        return ("-" if self.value < 0 else "") + ("".join(parts) or "0s")


DurationLike: TypeAlias = str | timedelta | np.timedelta64 | SupportsIndex | Duration
"""What a duration may be given as; a whole number counts in the unit of an integer time column."""


def duration(given: DurationLike, what: str = "range", *, least: int | None = 0) -> Duration:
    """Read a duration.

    Args:
        given: Text such as `"250 ms"` or `"1 hour 30 minutes"`, a `timedelta`, an
            `np.timedelta64`, or a whole number in the unit of an integer time column.
        what: What to call the duration in errors.
        least: The smallest value allowed; None allows negative durations.

    Returns:
        The duration.

    Example:
        >>> from datetime import timedelta
        >>> from paneflow import windows as W
        >>> W.duration("1h30m") == W.duration("1.5 hours") == W.duration(timedelta(hours=1.5))
        True
        >>> W.duration(np.timedelta64(3, "s")) == W.duration("3 s")
        True
        >>> W.duration(7)
        Duration(value=7, textual=False)
    """
    if not (least is None or isinstance(least, int)):
        raise QueryError(f"least is the smallest value allowed, a whole number, not {least!r}")
    length = _read(given, what)
    if least is not None and length.value < least:
        need = "more than 0" if least == 1 else f"at least {least}"
        raise QueryError(f"The {what} was given as {given!r}, but it has to be {need}.")
    if abs(length.value) > _LARGEST:
        raise QueryError(
            f"The {what} was given as {given!r}, which is too long: give at most 2**60 "
            f"(in microseconds, or in the unit of an integer time column)."
        )
    return length


def offset_from_epoch(given: DurationLike) -> Duration:
    """Read an offset, which may be negative. No offset is the same with or without a unit.

    >>> offset_from_epoch("0 s") == offset_from_epoch(0)
    True
    """
    offset = duration(given, "offset", least=None)
    return offset if offset.value else Duration(0, textual=False)


def _read(given: object, what: str) -> Duration:
    if isinstance(given, Duration):
        return given
    if isinstance(given, str):
        return Duration(_parse(given, what), textual=True)
    if isinstance(given, timedelta):
        value, rest = divmod(given, timedelta(microseconds=1))
        if rest:
            raise _too_fine(given, what)
        return Duration(int(value), textual=True)
    if isinstance(given, np.timedelta64):
        return Duration(_of_numpy(given, what), textual=True)
    if not isinstance(given, bool):
        try:
            return Duration(operator.index(given), textual=False)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise QueryError(
        f"The {what} was given as {given!r} ({type(given).__name__}): give {_EXPECTED} "
        f"in the unit of the time column."
    )


def _of_numpy(given: np.timedelta64, what: str) -> int:
    if np.isnat(given):
        raise QueryError(
            f"The {what} was given as {given!r}, which is not a duration: give {_EXPECTED}."
        )
    unit, step = np.datetime_data(given.dtype)
    if unit not in _NUMPY:
        missing = (
            "has no unit" if unit == "generic" else "counts months or years, whose lengths vary"
        )
        raise QueryError(
            f"The {what} was given as {given!r}, which {missing}: give a unit from weeks to "
            f'nanoseconds, for example np.timedelta64(30, "D").'
        )
    length = int(given.astype(np.int64)) * step * _NUMPY[unit]
    if length.denominator != 1:
        raise _too_fine(given, what)
    return int(length)


def _parse(text: str, what: str) -> int:
    body = text.strip()
    sign = -1 if body.startswith("-") else 1
    body = body.removeprefix("-")
    total, at = Fraction(0), 0
    while match := _PART.match(body, at):
        number, unit = match.groups()
        # Only whole words ignore case: "5M" is not five minutes to everybody.
        size = _UNITS.get(unit if len(unit) <= 2 else unit.lower())
        if size is None:
            raise QueryError(
                f"The {what} was given as {text!r}, but {unit!r} is not a unit with a fixed "
                f"length: use weeks, days, hours, minutes, seconds, ms or us."
            )
        total += Fraction(number) * size
        at = match.end()
    if at == 0 or at < len(body):
        raise QueryError(
            f"The {what} was given as {text!r}, which cannot be read: give {_EXPECTED} "
            f"(without quotes) in the unit of the time column."
        )
    if total.denominator != 1:
        raise _too_fine(text, what)
    return sign * int(total)


def _too_fine(given: object, what: str) -> QueryError:
    return QueryError(
        f"The {what} was given as {given!r}, which is not a whole number of microseconds: "
        f"times are kept in microseconds, so round it."
    )
