"""How long steps are, by what earlier ones have made."""

from __future__ import annotations

from paneflow.engines.multicore.pump.step_length import StepLength
from paneflow.engines.multicore.tuning import tuning

LONGEST, MOST_ROWS = 2**20, 2**19


def test_steps_grow_where_events_make_few_rows() -> None:
    length = StepLength(LONGEST, MOST_ROWS)
    for watermark in range(20):
        length.took(length.now, watermark)
        length.gave(1, watermark + 1)
    assert length.now == LONGEST


def test_steps_stay_short_where_every_event_makes_a_row() -> None:
    length = StepLength(LONGEST, MOST_ROWS)
    for watermark in range(20):
        length.took(length.now, watermark)
        length.gave(length.now, watermark + 1)
    assert tuning.pushed_piece <= length.now <= MOST_ROWS // 4


def test_steps_that_have_not_been_answered_yet_do_not_count_as_steps_without_rows() -> None:
    length = StepLength(LONGEST, MOST_ROWS)
    taken = []
    for watermark in range(20):
        taken.append(length.now)
        length.took(length.now, watermark)
        if watermark >= 3:  # workers are three steps behind
            length.gave(10 * taken[watermark - 3], watermark - 2)
    assert max(taken) <= tuning.unknown_step
    assert length.now <= MOST_ROWS // 40 + tuning.pushed_piece
