"""What a custom window's `step` may give, and how it is refused in every engine if it is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A
from paneflow.windows import CLOSE_AFTER, KEEP, OPEN, Custom, WindowClass
from tests.properties.compare import assert_same_rows

TABLE = pa.table({"t": [1, 2, 3, 4, 5, 6], "v": [1, 2, 0, 4, 2**62, 2**62]})


def in_stream(query: pf.Query) -> pa.Table:
    with query.open() as stream:
        stream.push(TABLE)
        stream.finish()
        return pa.concat_tables([*stream.results()])


ENGINES: dict[str, Callable[[pf.Query], pa.Table]] = {
    "oracle": lambda query: query.over(TABLE, engine="oracle"),
    "table": lambda query: query.over(TABLE),
    "stream": in_stream,
}


def asked(step: Callable[..., Any], initial: tuple[Any, ...] = (0,)) -> pf.Query:
    @dataclass(frozen=True)
    class Own(Custom):
        window_class: ClassVar[WindowClass] = WindowClass.FCF
        columns: ClassVar[tuple[str, ...]] = ("v",)

        @property
        def initial(self) -> tuple[Any, ...]:
            return initial

    Own.step = staticmethod(step)  # type: ignore[method-assign]
    return pf.Query(Own(), {"n": A.count()}, time="t")


def each_alone(state: Any, t: int, v: int) -> Any:
    return state, OPEN | CLOSE_AFTER


def no_pair(state: Any, t: int, v: int) -> Any:
    return state


def no_mark(state: Any, t: int, v: int) -> Any:
    return state, None


def a_float_as_mark(state: Any, t: int, v: int) -> Any:
    return state, 2.5


def an_unknown_mark(state: Any, t: int, v: int) -> Any:
    return state, 8 if t == 3 else KEEP


def a_longer_state(state: Any, t: int, v: int) -> Any:
    return (state[0], 1), OPEN


def a_shorter_state(state: Any, t: int, v: int) -> Any:
    return (), OPEN


def a_half(state: Any, t: int, v: int) -> Any:
    return (state[0] + 0.5,), OPEN


def dividing(state: Any, t: int, v: int) -> Any:
    return (10 // v,), OPEN


def adding(state: Any, t: int, v: int) -> Any:
    return (state[0] + v,), OPEN | CLOSE_AFTER


@pytest.mark.filterwarnings("ignore::paneflow.aggregates.SlowAggregateWarning")
@pytest.mark.parametrize(
    ("step", "said"),
    [
        (no_pair, "returned .*give a pair"),
        (no_mark, "the mark None"),
        (a_float_as_mark, "the mark 2.5"),
        (an_unknown_mark, r"step\(\(0,\), 3, 0\) returned the mark 8"),
        (a_longer_state, r"the state \(0, 1\).*1 values"),
        (a_shorter_state, r"the state \(\)"),
        (a_half, "changes its type.*returned 0.5"),
        (dividing, r"step\(.*, 3, 0\) raised ZeroDivisionError"),
        (adding, "returned 9223372036854775815, which does not fit"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_wrong_results_of_a_step_are_refused(
    engine: str, step: Callable[..., Any], said: str
) -> None:
    with pytest.raises(pf.PaneflowError, match=said):
        ENGINES[engine](asked(step))


@pytest.mark.parametrize("initial", [(), (True, 2, 0.5)], ids=str)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_may_be_empty_or_mixed(engine: str, initial: tuple[Any, ...]) -> None:
    query = asked(each_alone, initial)
    rows = ENGINES[engine](query)
    assert rows.num_rows == 6
    assert_same_rows(query, rows, query.over(TABLE, engine="oracle"))


def test_a_step_is_shown_the_events_of_a_stream_alone() -> None:
    query = asked(dividing)
    with query.open() as stream:
        stream.push(TABLE.slice(0, 2))
        stream.finish()
        assert list(stream.results()) == []
