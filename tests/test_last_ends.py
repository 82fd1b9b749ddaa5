"""When the last window that a time is in ends."""

from __future__ import annotations

import random

import numpy as np

from paneflow import windows as W
from paneflow.engines.live.closed import IN_NO_WINDOW, last_ends


def test_few_times_in_many_windows_are_as_each_by_itself() -> None:
    r = random.Random(3)
    windows = [W.sliding(r.randint(1, 9), r.randint(1, 12), r.randint(-5, 5)) for _ in range(12)]
    times = np.array([-40, -7, 0, 3, 50, 61])
    for several in (windows, windows[:1], [W.sliding(1, 100, 60)] * 9):
        wanted = [
            max(
                (
                    w.offset.value + number * w.slide.value + w.range.value
                    for w in several
                    for number in w.assigned(t)
                ),
                default=IN_NO_WINDOW,
            )
            for t in times.tolist()
        ]
        assert last_ends(several, times).tolist() == wanted
        assert last_ends(several, np.repeat(times, 9)).tolist() == np.repeat(wanted, 9).tolist()
