"""A window's text is its default label: short, and different for different windows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from paneflow import windows as W
from paneflow.windows import Window, WindowClass


@pytest.mark.parametrize(
    ("window", "label"),
    [
        (W.tumbling("5 s"), "tumbling(5s)"),
        (W.tumbling(5, offset=2), "tumbling(5, offset=2)"),
        (W.sliding("1 hour", "1 second"), "sliding(1h, 1s)"),
        (W.sliding(4, 2), "sliding(4, 2)"),
        (W.sliding("1h", "1s", offset="5 s"), "sliding(1h, 1s, offset=5s)"),
        (W.sliding("1h", "1s", offset="0 s"), "sliding(1h, 1s)"),
        (W.sliding(4, 2, offset=-3), "sliding(4, 2, offset=-3)"),
        (W.sliding(5, 5), "tumbling(5)"),
        (W.count(3, 2), "count(3, 2)"),
        (W.count(3), "count(3)"),
        (W.count(3, 2, partial=True), "count(3, 2, partial=True)"),
        (W.session(timedelta(minutes=5)), "session(5m)"),
        (W.session(0), "session(0)"),
        (W.slide_by_tuple("1 min", 10), "slide_by_tuple(1m, 10)"),
        (W.slide_by_tuple(4, 2, partial=True), "slide_by_tuple(4, 2, partial=True)"),
        (W.slide_by_time(10, "1 min"), "slide_by_time(10, 1m)"),
        (W.slide_by_time(2, 5, offset=1), "slide_by_time(2, 5, offset=1)"),
        (W.delta("km", 100, 0.5), "delta(km, 100, 0.5)"),
        (W.delta("sent", "1 h", "0 s", partial=True), "delta(sent, 1h, 0s, partial=True)"),
        (W.punctuation("done"), "punctuation(done)"),
        (W.punctuation("done", partial=True), "punctuation(done, partial=True)"),
    ],
    ids=str,
)
def test_label(window: Window, label: str) -> None:
    assert str(window) == label


@pytest.mark.parametrize(
    ("window", "window_class", "columns", "needs_timestamps"),
    [
        (W.tumbling(5), WindowClass.CF, (), False),
        (W.sliding("1 h", "1 s"), WindowClass.CF, (), True),
        (W.sliding(3_600_000_000, 1_000_000, offset="1 s"), WindowClass.CF, (), True),
        (W.count(3), WindowClass.CF, (), False),
        (W.session("1 s"), WindowClass.FCA, (), True),
        (W.slide_by_tuple(4, 2), WindowClass.FCA, (), False),
        (W.slide_by_time(4, "2 s"), WindowClass.FCA, (), True),
        (W.delta("km", 4, 2), WindowClass.FCA, ("km",), False),
        # A delta's durations measure its own column, whatever the time column is.
        (W.delta("sent", "4 s", "2 s"), WindowClass.FCA, ("sent",), False),
        (W.punctuation("done"), WindowClass.FCF, ("done",), False),
    ],
    ids=str,
)
def test_what_a_window_tells_about_itself(
    window: Window, window_class: WindowClass, columns: tuple[str, ...], needs_timestamps: bool
) -> None:
    assert window.window_class is window_class
    assert window.columns == columns
    assert window.needs_timestamps is needs_timestamps


def test_windows_are_values() -> None:
    assert W.sliding("1 h", "1 s") == W.sliding("60 min", timedelta(seconds=1))
    assert W.tumbling(5) == W.sliding(5, 5)
    assert W.sliding("5 us", 1) != W.sliding(5, 1)
    assert len({W.count(3), W.count(3, 3), W.count(3, partial=True)}) == 2
    with pytest.raises(AttributeError):
        W.count(3).size = 4  # type: ignore[misc]
