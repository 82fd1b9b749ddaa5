"""The contract of custom windows: what a class must say, and how it is refused if it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import pytest

from examples.threshold_window import Threshold
from paneflow import windows as W
from paneflow.errors import QueryError
from paneflow.windows import CLOSE_BEFORE, KEEP, OPEN, Custom, Mark, WindowClass


def test_the_threshold_window_says_what_it_is() -> None:
    window = Threshold("load", 10)
    assert str(window) == "Threshold(load, 10)"
    assert window.columns == ("load",)
    assert window.window_class is WindowClass.FCF
    assert window.partial is False
    assert window.extent(0, 3, 8) == (3, 8)
    assert window == Threshold("load", 10)


def test_a_step_follows_the_load() -> None:
    window = Threshold("load", 10)
    state, marks = window.initial, []
    for t, load in enumerate([8.0, 15.0, 12.0, 3.0, 10.0]):
        state, mark = window.step(state, t, load)
        marks.append(mark)
    assert marks == [KEEP, OPEN, KEEP, CLOSE_BEFORE, KEEP]


def test_a_step_compiles() -> None:
    step = numba.njit(Threshold.step)
    assert step((10.0, False), 1, 15.0) == ((10.0, True), OPEN)


def test_marks_are_plain_integers_with_names() -> None:
    assert [W.KEEP, W.CLOSE_BEFORE, W.OPEN, W.CLOSE_AFTER] == [0, 1, 2, 4]
    assert Mark.OPEN | Mark.CLOSE_AFTER == W.OPEN | W.CLOSE_AFTER == 6


@dataclass(frozen=True)
class Whole(Custom):
    """One window, from the first event to the end of the input."""

    window_class = WindowClass.FCA
    initial = (True,)
    partial: bool = True

    @staticmethod
    def step(state: tuple[Any, ...], t: int) -> tuple[tuple[Any, ...], int]:
        return (False,), OPEN if state[0] else KEEP


def test_columns_may_be_none_and_partial_may_be_a_field() -> None:
    assert Whole().columns == ()
    assert Whole().partial is True
    assert Whole(partial=False).partial is False


def refused(**parts: Any) -> str:
    """The message for a window like `Whole`, but for these parts."""
    given = dict(vars(Whole)) | parts
    kept = ("window_class", "initial", "step", "partial", "columns")
    body = {name: given[name] for name in kept if given.get(name) is not None}
    with pytest.raises(QueryError, match=r"custom window Broken|`partial`") as error:
        type("Broken", (Custom,), body)()
    return str(error.value)


def test_a_class_must_be_declared() -> None:
    assert "WindowClass.CF" in refused(window_class=None)
    assert "WindowClass.CF" in refused(window_class="FCF")


def test_a_step_must_be_a_static_method() -> None:
    assert "static method `step" in refused(step=None)
    assert "static method `step" in refused(step=lambda state, t: (state, 0))


def test_an_initial_state_must_be_a_tuple_of_numbers() -> None:
    assert "has no `initial`" in refused(initial=None)
    assert "is 0: give a tuple" in refused(initial=0)
    assert "is ('a',): give a tuple" in refused(initial=("a",))


def test_columns_must_be_names() -> None:
    assert "are 'load': give a tuple" in refused(columns="load")
    assert "are (1,): give a tuple" in refused(columns=(1,))


def test_partial_must_be_yes_or_no() -> None:
    assert "`partial` was given as 1" in refused(partial=1)
