"""What a query means, on events small enough to check by eye. Every engine must agree.

The time lines show `[` and `]` at events that are in a window and `)` at an end that is not. A row
is (seq, start, end, result).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import paneflow as pf
from examples.threshold_window import Threshold
from paneflow import aggregates as A, windows as W
from paneflow.windows import CLOSE_AFTER, CLOSE_BEFORE, KEEP, OPEN, Custom, Window, WindowClass

EVENTS = pa.table({"t": [1, 2, 4, 4, 9, 12], "v": [5, 3, 7, 1, 2, 8]})
BELOW_ZERO = pa.table({"t": [-7, -5, -1, 0, 2], "v": [1, 2, 3, 4, 5]})

Rows = list[tuple[Any, ...]]


@pytest.fixture(params=["oracle", "table"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def rows(engine: str, window: Window, table: pa.Table = EVENTS, aggregate: Any = None) -> Rows:
    """The rows of one window and one aggregate, the sum of v unless said otherwise."""
    query = pf.Query(windows=window, aggregates={"x": aggregate or A.sum("v")}, time="t")
    found = query.over(table, engine=engine)
    return [(r["seq"], r["start"], r["end"], r["x"]) for r in found.to_pylist()]


# The vectors of the semantics.


def test_sliding(engine: str) -> None:
    #  t       -2 -1  0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16
    #  v                 5  3     7              2        8
    #                             1
    #  seq -1   [-----------)  5
    #  seq 0          [-----------)  5+3 = 8
    #  seq 1                [-----------)  3+7+1 = 11
    #  seq 2                      [-----------)  7+1 = 8
    #  seq 3                            [-----------)  2
    #  seq 4                                  [-----------)  2
    #  seq 5                                        [-----------)  8
    #  seq 6                                              [-----------)  8
    assert rows(engine, W.sliding(4, 2)) == [
        (-1, -2, 2, 5),
        (0, 0, 4, 8),
        (1, 2, 6, 11),
        (2, 4, 8, 8),
        (3, 6, 10, 2),
        (4, 8, 12, 2),
        (5, 10, 14, 8),
        (6, 12, 16, 8),
    ]


def test_tumbling(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  v           5  3     7              2        8
    #                       1
    #  seq 0    [--------------)  max 7
    #  seq 1                   [--------------)  max 2
    #  seq 2                                  [--------------)  max 8
    assert rows(engine, W.tumbling(5), aggregate=A.max("v")) == [
        (0, 0, 5, 7),
        (1, 5, 10, 2),
        (2, 10, 15, 8),
    ]


def test_session_joins_events_exactly_one_gap_apart(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  v           5  3     7              2        8
    #                       1
    #  seq 0       [-----------------)  5+3+7+1 = 16
    #  seq 1                               [-----------------)  2+8 = 10, 12 - 9 being the gap
    assert rows(engine, W.session(3)) == [(0, 1, 7, 16), (1, 9, 15, 10)]


def test_session_ends_after_a_longer_gap(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  v           5  3     7              2        8
    #                       1
    #  seq 0       [--------------)  16
    #  seq 1                               [-----)  2
    #  seq 2                                        [-----)  8
    assert rows(engine, W.session(2)) == [(0, 1, 6, 16), (1, 9, 11, 2), (2, 12, 14, 8)]


def test_count(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  i           0  1     2              4        5
    #                       3
    #  v           5  3     7              2        8
    #                       1
    #  seq 0       [--------]  positions 0-2: 5+3+7 = 15
    #  seq 1                [--------------]  positions 2-4: 7+1+2 = 10
    #  position 4 begins a window that is never complete
    assert rows(engine, W.count(3, 2)) == [(0, 1, 4, 15), (1, 4, 9, 10)]


def test_slide_by_tuple(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  i           0  1     2              4        5
    #                       3
    #  v           5  3     7              2        8
    #                       1
    #  seq 0       [--]  trigger i=1, t > -2: 5+3 = 8
    #  seq 1       [--------]  trigger i=3, t > 0: 5+3+7+1 = 16
    #  seq 2                               [--------]  trigger i=5, t > 8: 2+8 = 10
    assert rows(engine, W.slide_by_tuple(4, 2)) == [(0, 1, 2, 8), (1, 1, 4, 16), (2, 9, 12, 10)]


def test_slide_by_time(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  v           5  3     7              2        8
    #                       1
    #  seq 0                [--)  the last two before 5: 7+1 = 8
    #  seq 1                [-----------------)  the last two before 10: 1+2 = 3
    #  seq 2                               [-----------------)  the last two before 15: 2+8 = 10
    assert rows(engine, W.slide_by_time(2, 5)) == [(0, 4, 5, 8), (1, 4, 10, 3), (2, 9, 15, 10)]


def test_delta(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  trigger     *                       *                     12 is exactly 3 beyond 9: none
    #  v           5  3     7              2        8
    #                       1
    #  seq 0    no event with -7 <= t < 1
    #  seq 1       [-----------------------)  1 <= t < 9: 5+3+7+1 = 16; its events are at 1 to 4
    assert rows(engine, W.delta("t", 8, 3)) == [(1, 1, 4, 16)]


# More of each kind.


def test_punctuation(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  mark           *                    *
    #  v           5  3     7              2        8
    #                       1
    #  seq 0       [--]  5+3 = 8
    #  seq 1                [--------------]  7+1+2 = 10
    #  seq 2                                        |  8, if partial
    marks = pa.array([False, True, False, None, True, False])
    table = EVENTS.append_column("mark", marks)
    complete = [(0, 1, 2, 8), (1, 4, 9, 10)]
    assert rows(engine, W.punctuation("mark"), table) == complete
    partial = W.punctuation("mark", partial=True)
    assert rows(engine, partial, table) == [*complete, (2, 12, 12, 8)]


def test_punctuation_with_nothing_after_the_last_mark(engine: str) -> None:
    table = EVENTS.append_column("mark", pa.array([False] * 5 + [True]))
    assert rows(engine, W.punctuation("mark", partial=True), table) == [(0, 1, 12, 26)]


def test_slide_by_time_skips_boundaries_without_news(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  v           5  3     7              2        8
    #                       1
    #  seq 0       [--)  before 2: 5
    #  seq 1       [--------)  before 4: 5+3 = 8
    #  seq 2                [-----)  before 6: 7+1 = 8
    #  seq 4                [-----------------)  before 10: 1+2 = 3
    #  seq 6                               [--------------)  before 14: 2+8 = 10
    assert rows(engine, W.slide_by_time(2, 2)) == [
        (0, 1, 2, 5),
        (1, 1, 4, 8),
        (2, 4, 6, 8),
        (4, 4, 10, 3),
        (6, 9, 14, 10),
    ]


def test_sliding_with_gaps_leaves_events_out(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  v           5  3     7              2        8
    #                       1
    #  seq 0    [-----)  5; the 3 at t = 2 is in no window
    #  seq 1                [-----)  7+1 = 8
    #  seq 2                            [-----)  2
    #  seq 3                                        [-----)  8
    assert rows(engine, W.sliding(2, 4)) == [
        (0, 0, 2, 5),
        (1, 4, 6, 8),
        (2, 8, 10, 2),
        (3, 12, 14, 8),
    ]


def test_count_with_gaps_leaves_events_out(engine: str) -> None:
    # Positions 0-1 and 4-5; 2 and 3 are in no window.
    assert rows(engine, W.count(2, 4)) == [(0, 1, 2, 8), (1, 9, 12, 10)]


def test_a_slide_need_not_divide_the_range(engine: str) -> None:
    # sliding(5, 3): ..., [-3, 2), [0, 5), [3, 8), [6, 11), [9, 14), [12, 17)
    assert rows(engine, W.sliding(5, 3)) == [
        (-1, -3, 2, 5),
        (0, 0, 5, 16),
        (1, 3, 8, 8),
        (2, 6, 11, 2),
        (3, 9, 14, 10),
        (4, 12, 17, 8),
    ]


def test_a_session_gap_of_zero_joins_equal_times(engine: str) -> None:
    expected = [(0, 1, 1, 5), (1, 2, 2, 3), (2, 4, 4, 8), (3, 9, 9, 2), (4, 12, 12, 8)]
    assert rows(engine, W.session(0)) == expected


def test_a_delta_slide_of_zero_triggers_at_every_growth(engine: str) -> None:
    # Triggers 1, 2, 4 (once), 9, 12, each asking for the 5 before it.
    assert rows(engine, W.delta("t", 5, 0)) == [
        (1, 1, 1, 5),
        (2, 1, 2, 8),
        (3, 4, 4, 8),
        (4, 9, 9, 2),
    ]


def test_delta_over_a_column_of_its_own(engine: str) -> None:
    #  t           1     2     3     4     5     6
    #  km          0   0.5   1.5   1.5   4.0   4.5
    #  trigger     *           *           *              more than 1 beyond the last
    #  seq 1       [-----)  0 <= km < 1.5: 1+2 = 3, at t = 1 to 2
    #  seq 2                   [---------) 2 <= km < 4: none
    table = pa.table({"t": range(1, 7), "v": range(1, 7), "km": [0.0, 0.5, 1.5, 1.5, 4.0, 4.5]})
    assert rows(engine, W.delta("km", 2.0, 1.0), table) == [(1, 1, 2, 3)]
    # At the end, km > 4.5 - 2: 5+6 = 11.
    partial = W.delta("km", 2.0, 1.0, partial=True)
    assert rows(engine, partial, table) == [(1, 1, 2, 3), (3, 5, 6, 11)]


# Incomplete windows at the end.


def test_partial_count(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  i           0  1     2              4        5
    #                       3
    #  v           5  3     7              2        8
    #                       1
    #  seq 0       [--------]  positions 0-2: 15
    #  seq 1                [--------------]  positions 2-4: 10
    #  seq 2                               [--------]  positions 4-5, of 4-6: 2+8 = 10
    expected = [(0, 1, 4, 15), (1, 4, 9, 10), (2, 9, 12, 10)]
    assert rows(engine, W.count(3, 2, partial=True)) == expected


def test_partial_emits_the_first_incomplete_count_window_only(engine: str) -> None:
    # count(4, 1): positions 0-3, 1-4, 2-5 are complete; 3-5 is the first that is not.
    expected = [(0, 1, 4, 16), (1, 2, 9, 13), (2, 4, 12, 18), (3, 4, 12, 11)]
    assert rows(engine, W.count(4, 1, partial=True)) == expected
    assert rows(engine, W.count(10)) == []
    assert rows(engine, W.count(10, partial=True)) == [(0, 1, 12, 26)]


def test_partial_count_with_gaps(engine: str) -> None:
    # count(2, 5): positions 0-1, then 5 of 5-6. count(2, 4): 0-1 and 4-5, the next would be at 8.
    assert rows(engine, W.count(2, 5, partial=True)) == [(0, 1, 2, 8), (1, 12, 12, 8)]
    assert rows(engine, W.count(2, 4, partial=True)) == [(0, 1, 2, 8), (1, 9, 12, 10)]


def test_partial_slide_by_tuple(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  i           0  1     2              4        5
    #                       3
    #  v           5  3     7              2        8
    #                       1
    #  seq 0       [--------]  trigger i=3, t > 0: 16
    #  seq 1                               [--------]  i=5 for a trigger, t > 8: 10
    expected = [(0, 1, 4, 16), (1, 9, 12, 10)]
    assert rows(engine, W.slide_by_tuple(4, 4, partial=True)) == expected


def test_partial_slide_by_tuple_after_a_trigger(engine: str) -> None:
    # The last event is a trigger already.
    window = W.slide_by_tuple(4, 2, partial=True)
    assert rows(engine, window) == [(0, 1, 2, 8), (1, 1, 4, 16), (2, 9, 12, 10)]


def test_partial_delta(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  trigger     *                       *
    #  v           5  3     7              2        8
    #                       1
    #  seq 1       [-----------------------)  1 <= t < 9: 16
    #  seq 2                               [--------]  t > 12 - 8: 2+8 = 10
    assert rows(engine, W.delta("t", 8, 3, partial=True)) == [(1, 1, 4, 16), (2, 9, 12, 10)]


# Offsets.


def test_sliding_with_an_offset(engine: str) -> None:
    #  t       -3 -2 -1  0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  v                    5  3     7              2        8
    #                                1
    #  seq -1         [-----------)  5+3 = 8
    #  seq 0                [-----------)  5+3+7+1 = 16
    #  seq 1                      [-----------)  7+1 = 8
    #  seq 3                                  [-----------)  2
    #  seq 4                                        [-----------)  2+8 = 10
    #  seq 5                                              [-----------)  8
    assert rows(engine, W.sliding(4, 2, offset=1)) == [
        (-1, -1, 3, 8),
        (0, 1, 5, 16),
        (1, 3, 7, 8),
        (3, 7, 11, 2),
        (4, 9, 13, 10),
        (5, 11, 15, 8),
    ]


def test_an_offset_moves_bounds_and_numbers(engine: str) -> None:
    #  t       -3 -2 -1  0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17
    #  v                    5  3     7              2        8
    #                                1
    #           [--------------)  5
    #                          [--------------)  3+7+1 = 11
    #                                         [--------------)  2
    #                                                        [--------------)  8
    bounds = [(-3, 2, 5), (2, 7, 11), (7, 12, 2), (12, 17, 8)]
    for offset, first in ((2, -1), (-3, 0), (7, -2)):
        numbered = [(first + i, *bound) for i, bound in enumerate(bounds)]
        assert rows(engine, W.tumbling(5, offset=offset)) == numbered


def test_slide_by_time_with_an_offset(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  v           5  3     7              2        8
    #                       1
    #  seq 0       [-----)  before 3: 5+3 = 8
    #  seq 1                [--------)  before 7: 7+1 = 8
    #  seq 2                [--------------------)  before 11: 1+2 = 3
    #  seq 3                               [-----------------)  before 15: 2+8 = 10
    expected = [(0, 1, 3, 8), (1, 4, 7, 8), (2, 4, 11, 3), (3, 9, 15, 10)]
    assert rows(engine, W.slide_by_time(2, 4, offset=-1)) == expected


# Times below zero.


def test_tumbling_below_zero(engine: str) -> None:
    #  t      -10 -9 -8 -7 -6 -5 -4 -3 -2 -1  0  1  2  3  4  5
    #  v                 1     2           3  4     5
    #  seq -2   [--------------)  1
    #  seq -1                  [--------------)  2+3 = 5
    #  seq 0                                  [--------------)  4+5 = 9
    expected = [(-2, -10, -5, 1), (-1, -5, 0, 5), (0, 0, 5, 9)]
    assert rows(engine, W.tumbling(5), BELOW_ZERO) == expected


def test_session_across_zero(engine: str) -> None:
    #  t      -10 -9 -8 -7 -6 -5 -4 -3 -2 -1  0  1  2  3  4  5
    #  v                 1     2           3  4     5
    #  seq 0             [-----------)  1+2 = 3
    #  seq 1                               [--------------)  3+4+5 = 12
    assert rows(engine, W.session(2), BELOW_ZERO) == [(0, -7, -3, 3), (1, -1, 4, 12)]


def test_slide_by_time_below_zero(engine: str) -> None:
    #  t      -10 -9 -8 -7 -6 -5 -4 -3 -2 -1  0  1  2  3  4  5
    #  v                 1     2           3  4     5
    #  seq -2            [--------)  before -4: 1+2 = 3
    #  seq -1                  [--------------)  before 0: 2+3 = 5
    #  seq 0                                  [-----------)  before 4: 4+5 = 9
    expected = [(-2, -7, -4, 3), (-1, -5, 0, 5), (0, 0, 4, 9)]
    assert rows(engine, W.slide_by_time(2, 4), BELOW_ZERO) == expected


def test_slide_by_tuple_below_zero(engine: str) -> None:
    #  t      -10 -9 -8 -7 -6 -5 -4 -3 -2 -1  0  1  2  3  4  5
    #  v                 1     2           3  4     5
    #  seq 0             [-----]  trigger -5, t > -9: 1+2 = 3
    #  seq 1                               [--]  trigger 0, t > -4: 3+4 = 7
    assert rows(engine, W.slide_by_tuple(4, 2), BELOW_ZERO) == [(0, -7, -5, 3), (1, -1, 0, 7)]


# The total order: time, then position in the table.


def test_rows_may_come_in_any_order(engine: str) -> None:
    shuffled = EVENTS.take([4, 2, 5, 0, 3, 1])  # the 7 at t = 4 still before the 1
    for window in (W.sliding(4, 2), W.count(3, 2), W.session(2), W.slide_by_tuple(4, 2)):
        assert rows(engine, window, shuffled) == rows(engine, window)


def test_equal_times_keep_their_order(engine: str) -> None:
    #  t    3  3  3  3  5
    #  v    4  1  3  2  0
    table = pa.table({"t": [3, 5, 3, 3, 3], "v": [4, 0, 1, 3, 2]})
    assert rows(engine, W.count(2), table, A.collect("v")) == [(0, 3, 3, [4, 1]), (1, 3, 3, [3, 2])]
    assert rows(engine, W.tumbling(5), table, A.first("v")) == [(0, 0, 5, 4), (1, 5, 10, 0)]
    assert rows(engine, W.tumbling(5), table, A.last("v")) == [(0, 0, 5, 2), (1, 5, 10, 0)]
    assert rows(engine, W.slide_by_tuple(1, 3), table) == [(0, 3, 3, 8)]


def test_windows_are_found_per_key_and_null_is_a_key(engine: str) -> None:
    #  t      1  2  3  4  5  6
    #  a         1     2  3         count(2): 1+2, then 3 is alone
    #  null   4     5        6      count(2): 4+5, then 6 is alone
    table = pa.table(
        {
            "t": [1, 2, 3, 4, 5, 6],
            "k": [None, "a", None, "a", "a", None],
            "v": [4, 1, 5, 2, 3, 6],
        }
    )
    query = pf.Query(W.count(2, partial=True), {"x": A.sum("v")}, key="k", time="t")
    found = query.over(table, engine=engine).to_pylist()
    assert [(r["k"], r["seq"], r["start"], r["end"], r["x"]) for r in found] == [
        (None, 0, 1, 3, 9),
        ("a", 0, 2, 4, 3),
        ("a", 1, 5, 5, 3),
        (None, 1, 6, 6, 6),
    ]


def test_rows_are_ordered_by_end_window_seq_and_key(engine: str) -> None:
    table = pa.table({"t": [1, 1, 1], "k": [2, None, 1], "v": [1, 2, 3]})
    windows = {"b": W.tumbling(4), "a": W.sliding(4, 2), "c": W.tumbling(2)}
    query = pf.Query(windows, {"x": A.sum("v")}, key=["k"], time="t")
    found = query.over(table, engine=engine).to_pylist()
    assert [(r["end"], r["window"], r["seq"], r["k"]) for r in found] == [
        *((2, "a", -1, k) for k in (None, 1, 2)),
        *((2, "c", 0, k) for k in (None, 1, 2)),
        *((4, "a", 0, k) for k in (None, 1, 2)),
        *((4, "b", 0, k) for k in (None, 1, 2)),
    ]


def test_no_events_give_no_rows(engine: str) -> None:
    for window in (W.sliding(4, 2), W.count(1, partial=True), W.session(1)):
        assert rows(engine, window, EVENTS.slice(0, 0)) == []


def test_timestamps_are_kept_in_microseconds_and_their_zone(engine: str) -> None:
    times = [datetime(2024, 2, 29, 23, 59, s, tzinfo=UTC) for s in (50, 58, 59)]
    table = pa.table({"t": pa.array(times, pa.timestamp("ms", "UTC")), "v": [1, 2, 3]})
    query = pf.Query(W.session("5 s"), {"x": A.sum("v")}, time="t")
    found = query.over(table, engine=engine)
    assert found.schema.field("end").type == pa.timestamp("us", "UTC")
    assert [(r["start"], r["end"], r["x"]) for r in found.to_pylist()] == [
        (times[0], datetime(2024, 2, 29, 23, 59, 55, tzinfo=UTC), 1),
        (times[1], datetime(2024, 3, 1, 0, 0, 4, tzinfo=UTC), 5),
    ]


# Custom windows.


def test_threshold(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    #  v           5  3     7              2        8
    #                       1
    #  seq 0       |  5 > 4
    #  seq 1                |  7 > 4, closed by the 1
    #                                               |  8 > 4, never closed
    assert rows(engine, Threshold("v", 4)) == [(0, 1, 1, 5), (1, 4, 4, 7)]


@dataclass(frozen=True)
class PartialThreshold(Threshold):
    partial: bool = True


def test_threshold_at_the_end_and_with_nulls(engine: str) -> None:
    #  t        0  1  2  3  4  5  6  7  8  9
    #  v           3  6  7  ?  9  4  ?  5        ? is null: it opens and closes nothing
    #  seq 0          [--------]  6+7+9 = 22, of four events
    #  seq 1                            |  5, if partial
    table = pa.table({"t": range(1, 9), "v": [3, 6, 7, None, 9, 4, None, 5]})
    assert rows(engine, Threshold("v", 4), table) == [(0, 2, 5, 22)]
    assert rows(engine, Threshold("v", 4), table, A.count()) == [(0, 2, 5, 4)]
    assert rows(engine, PartialThreshold("v", 4), table) == [(0, 2, 5, 22), (1, 8, 8, 5)]


@dataclass(frozen=True)
class Steps(Custom):
    """Does what column `mark` says, which is all that a custom window can do."""

    window_class: ClassVar[WindowClass] = WindowClass.FCA

    partial: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return ("mark",)

    @property
    def initial(self) -> tuple[Any, ...]:
        return (0,)

    @staticmethod
    def step(state: tuple[Any, ...], t: int, mark: int) -> tuple[tuple[Any, ...], int]:
        return state, mark


def steps(engine: str, marks: list[int], partial: bool = False) -> list[tuple[int, list[int]]]:
    """The windows that marks at t = 1, 2, ... make, with the times in each."""
    table = pa.table({"t": range(1, len(marks) + 1), "mark": marks})
    found = rows(engine, Steps(partial), table, A.collect("t"))
    assert all((start, end) == (inside[0], inside[-1]) for _, start, end, inside in found)
    return [(seq, inside) for seq, _, _, inside in found]


def test_custom_windows_may_overlap(engine: str) -> None:
    #  t        0  1  2  3  4  5
    #  mark        O  O OC OC OC     every event opens one; from the third on, one closes after
    #  seq 0       [-----]
    #  seq 1          [-----]
    #  seq 2             [-----]
    #  seq 3                [--      the oldest still open
    #  seq 4                   [
    marks = [OPEN, OPEN] + [OPEN + CLOSE_AFTER] * 3
    complete = [(0, [1, 2, 3]), (1, [2, 3, 4]), (2, [3, 4, 5])]
    assert steps(engine, marks) == complete
    assert sorted(steps(engine, marks, partial=True)) == [*complete, (3, [4, 5])]


def test_custom_marks_are_applied_in_order(engine: str) -> None:
    # Close before, open, close after: a window of one event between two others.
    every = CLOSE_BEFORE + OPEN + CLOSE_AFTER
    assert steps(engine, [OPEN, KEEP, every, KEEP]) == [(0, [1, 2]), (1, [3])]
    assert steps(engine, [OPEN, CLOSE_BEFORE + OPEN, CLOSE_BEFORE]) == [(0, [1]), (1, [2])]


def test_a_custom_close_with_nothing_open_does_nothing(engine: str) -> None:
    assert steps(engine, [CLOSE_BEFORE, CLOSE_AFTER, OPEN, CLOSE_AFTER, CLOSE_AFTER]) == [
        (0, [3, 4])
    ]


# Bad input.


def refused(engine: str, window: Window, table: pa.Table) -> str:
    with pytest.raises(pf.InputError) as error:
        rows(engine, window, table)
    return str(error.value)


def test_a_null_time_is_refused(engine: str) -> None:
    message = refused(engine, W.tumbling(5), pa.table({"t": [1, None, 3], "v": [1, 2, 3]}))
    assert "'t'" in message
    assert "row 1" in message


def test_a_decreasing_delta_column_is_refused(engine: str) -> None:
    table = EVENTS.append_column("d", pa.array([1, 2, 3, 4, 3, 5]))
    message = refused(engine, W.delta("d", 8, 3), table)
    assert "'d'" in message
    assert "from 4" in message
    assert "row 4" in message


def test_a_delta_column_may_start_again_with_another_key(engine: str) -> None:
    table = pa.table({"t": [1, 2, 3, 4], "k": [1, 1, 2, 2], "d": [5, 9, 1, 7], "v": [1, 2, 3, 4]})
    query = pf.Query(W.delta("d", 10, 1), {"x": A.sum("v")}, key="k", time="t")
    found = query.over(table, engine=engine).to_pylist()
    assert [(r["k"], r["seq"], r["x"]) for r in found] == [(1, 1, 1), (2, 1, 3)]


@pytest.mark.parametrize("value", [None, float("nan")])
def test_a_delta_column_without_a_value_is_refused(engine: str, value: float | None) -> None:
    table = EVENTS.append_column("d", pa.array([1.0, 2.0, value, 4.0, 5.0, 6.0], pa.float64()))
    message = refused(engine, W.delta("d", 8, 3), table)
    assert "'d'" in message
    assert "row 2" in message


def test_columns_of_the_wrong_type_are_refused(engine: str) -> None:
    table = EVENTS.append_column("text", pa.array(list("abcdef")))
    assert "'text'" in refused(engine, W.delta("text", 8, 3), table)
    assert "'v'" in refused(engine, W.delta("v", "8 s", "3 s"), table)
    assert "'v'" in refused(engine, W.punctuation("v"), table)
