"""Durations are read once and in one place; everything unreadable is refused in words."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from paneflow import windows as W
from paneflow.errors import PaneflowError, QueryError

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


@pytest.mark.parametrize(
    ("given", "microseconds"),
    [
        ("250 ms", 250_000),
        ("250ms", 250_000),
        ("1 hour 30 minutes", HOUR + 30 * MINUTE),
        ("1h30m", HOUR + 30 * MINUTE),
        ("1.5 hours", HOUR + 30 * MINUTE),
        ("  2   days ", 48 * HOUR),
        ("1 Week", 7 * 24 * HOUR),
        ("3 sec 5 us", 3 * SECOND + 5),
        ("7 µs", 7),
        (timedelta(minutes=1, microseconds=3), MINUTE + 3),
        (pd.Timedelta("2 s"), 2 * SECOND),
        (np.timedelta64(5000, "ns"), 5),
        (np.timedelta64(7, "us"), 7),
        (np.timedelta64(250, "ms"), 250_000),
        (np.timedelta64(3, "s"), 3 * SECOND),
        (np.timedelta64(90, "m"), HOUR + 30 * MINUTE),
        (np.timedelta64(2, "h"), 2 * HOUR),
        (np.timedelta64(1, "D"), 24 * HOUR),
        (np.timedelta64(1, "W"), 7 * 24 * HOUR),
        (np.timedelta64(4, "25s"), 100 * SECOND),
        (np.timedelta64(10**6, "ps"), 1),
    ],
)
def test_text_and_timedelta_count_microseconds(given: object, microseconds: int) -> None:
    length = W.duration(given)
    assert (length.value, length.textual) == (microseconds, True)
    assert int(length) == microseconds


@pytest.mark.parametrize("given", [7, np.int64(7), np.uint8(7)])
def test_an_integer_is_in_the_users_own_unit(given: object) -> None:
    length = W.duration(given)
    assert (length.value, length.textual) == (7, False)
    assert type(length.value) is int


def test_a_duration_is_taken_as_it_is() -> None:
    length = W.duration("1 s")
    assert W.duration(length) is length


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("1 hour", "1h"),
        ("90 minutes", "1h30m"),
        ("250 ms", "250ms"),
        ("1500 ms", "1s500ms"),
        ("1 week", "7d"),
        ("12 us", "12us"),
        ("0 s", "0s"),
        (5, "5"),
        (0, "0"),
    ],
)
def test_text_is_short(given: object, text: str) -> None:
    assert str(W.duration(given)) == text


def test_negative_durations_are_for_offsets() -> None:
    assert str(W.duration("-5 s", "offset", least=None)) == "-5s"
    assert str(W.duration(-5, "offset", least=None)) == "-5"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (True, "True"),
        (np.True_, "True"),
        (1.5, "1.5"),
        (None, "None"),
        ([1], "[1]"),
        (np.int64(3).view("m8"), "has no unit"),
        (np.timedelta64(1, "M"), "whose lengths vary"),
        (np.timedelta64(1, "Y"), "whose lengths vary"),
        (np.timedelta64("NaT", "s"), "is not a duration"),
        (np.timedelta64(3, "ns"), "whole number of microseconds"),
        (np.timedelta64(1, "as"), "whole number of microseconds"),
        (np.timedelta64(-5, "s"), "at least 0"),
        (np.timedelta64(2**62, "W"), "too long"),
        ("5", "cannot be read"),
        ("", "cannot be read"),
        ("-", "cannot be read"),
        ("soon", "cannot be read"),
        ("5 s and a bit", "cannot be read"),
        ("1e3 s", "'e' is not a unit"),
        ("1 month", "'month' is not a unit"),
        ("5M", "'M' is not a unit"),
        ("0.5 us", "whole number of microseconds"),
        (pd.Timedelta("3 ns"), "whole number of microseconds"),
        (-1, "at least 0"),
        ("-5 s", "at least 0"),
        (2**63, "too long"),
        ("1000000000 weeks", "too long"),
    ],
)
def test_what_is_refused(given: object, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        W.duration(given, "slide")
    message = str(refused.value)
    assert "The slide was given as" in message
    assert repr(given) in message
    assert said in message


def test_errors_are_value_errors_too() -> None:
    with pytest.raises(ValueError, match="The range was given as 'soon'"):
        W.duration("soon")
    with pytest.raises(PaneflowError):
        W.duration("soon")


def test_zero_is_refused_where_more_is_needed() -> None:
    with pytest.raises(QueryError, match="more than 0"):
        W.duration(0, least=1)
