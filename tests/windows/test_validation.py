"""A window stated without meaning is refused; the message names what was given."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from paneflow import windows as W
from paneflow.errors import QueryError

CASES: list[tuple[Callable[[], object], str]] = [
    (lambda: W.tumbling(0), "range was given as 0.* more than 0"),
    (lambda: W.tumbling("-5 s"), "range was given as '-5 s'.* more than 0"),
    (lambda: W.tumbling(True), "range was given as True"),
    (lambda: W.tumbling(2.5), "range was given as 2.5"),
    (lambda: W.sliding(-4, 2), "range was given as -4.* more than 0"),
    (lambda: W.sliding(4, 0), "slide was given as 0.* more than 0"),
    (lambda: W.sliding(4, "0 s"), "slide was given as '0 s'.* more than 0"),
    (lambda: W.sliding(4, -1), "slide was given as -1.* more than 0"),
    (lambda: W.sliding(4, "later"), "slide was given as 'later'"),
    (lambda: W.sliding(4, 2, offset=0.5), "offset was given as 0.5"),
    (lambda: W.sliding(4, 2, offset=None), "offset was given as None"),
    (lambda: W.count(0), "size was given as 0.* at least 1"),
    (lambda: W.count(-3), "size was given as -3.* at least 1"),
    (lambda: W.count(2.0), "size was given as 2.0"),  # type: ignore[arg-type]
    (lambda: W.count(True), "size was given as True"),
    (lambda: W.count("3 s"), "size was given as '3 s'"),  # type: ignore[arg-type]
    (lambda: W.count(3, 0), "slide was given as 0.* at least 1"),
    (lambda: W.count(3, partial=1), "`partial` was given as 1"),  # type: ignore[arg-type]
    (lambda: W.session(-1), "gap was given as -1.* at least 0"),
    (lambda: W.session(1.0), "gap was given as 1.0"),
    (lambda: W.slide_by_tuple(0, 2), "range was given as 0.* more than 0"),
    (lambda: W.slide_by_tuple(4, 0), "slide was given as 0.* at least 1"),
    (lambda: W.slide_by_tuple(4, "2 s"), "slide was given as '2 s'"),  # type: ignore[arg-type]
    (lambda: W.slide_by_tuple(4, 2, partial="no"), "`partial`"),  # type: ignore[arg-type]
    (lambda: W.slide_by_time(0, 5), "size was given as 0.* at least 1"),
    (lambda: W.slide_by_time(2, 0), "slide was given as 0.* more than 0"),
    (lambda: W.slide_by_time(2, 5, offset="x"), "offset was given as 'x'"),
    (lambda: W.delta("", 8, 3), "column of a delta window was given as ''"),
    (lambda: W.delta(3, 8, 3), "column of a delta window was given as 3"),  # type: ignore[arg-type]
    (lambda: W.delta("d", 0, 3), "range of delta.* given as 0.* more than 0"),
    (lambda: W.delta("d", -1.5, 3), "range of delta.* given as -1.5.* more than 0"),
    (lambda: W.delta("d", "-1 s", "3 s"), "range of delta.* given as -1s.* more than 0"),
    (lambda: W.delta("d", 8, -1), "slide of delta.* given as -1.* at least 0"),
    (lambda: W.delta("d", float("nan"), 3), "range of a delta window was given as nan"),
    (lambda: W.delta("d", 8, float("inf")), "slide of a delta window was given as inf"),
    (lambda: W.delta("d", True, 3), "range of a delta window was given as True"),
    (lambda: W.delta("d", None, 3), "range of a delta window was given as None"),
    (lambda: W.delta("d", "1 h", 3), "1h and the slide 3 of delta.* of different kinds"),
    (lambda: W.delta("d", 8, 3, partial=None), "`partial`"),  # type: ignore[arg-type]
    (lambda: W.punctuation(""), "column of a punctuation window was given as ''"),
    (lambda: W.punctuation(True), "punctuation window was given as True"),  # type: ignore[arg-type]
    (lambda: W.punctuation("p", partial=0), "`partial` was given as 0"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("state", "message"), CASES, ids=[message for _, message in CASES])
def test_refused(state: Callable[[], object], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        state()


def test_the_classes_check_as_well_as_the_constructors() -> None:
    with pytest.raises(QueryError, match="more than 0"):
        W.Sliding(W.duration(4), W.duration(0), W.duration(0))
    with pytest.raises(QueryError, match="at least 1"):
        W.Count(size=0, slide=1, partial=False)
