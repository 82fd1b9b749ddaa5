"""What threads see of a W-Hive can be explained by doing one operation after another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from paneflow import windows as W
from tests.multicore.multiway.hive_model import HiveState
from tests.multicore.multiway.linearizability import from_moments, is_linearizable
from tests.multicore.multiway.recorded_hive import history

WINDOWS = (W.tumbling(1), W.tumbling(3), W.sliding(4, 2), W.sliding(2, 3))


def winsets(window: W.Sliding, t: int) -> tuple[int, ...]:
    slide = window.slide.value
    return tuple(window.offset.value + number * slide for number in window.assigned(t))


def check(seeds: range) -> int:
    """Check histories; how many pairs of operations of different threads overlapped."""
    overlapping = 0
    with ThreadPoolExecutor(4) as pool:
        for seed in seeds:
            window = WINDOWS[seed % len(WINDOWS)]
            writers, threads = history(seed, pool, window)
            initial = HiveState.fresh(writers, lambda t, w=window: winsets(w, t))
            assert is_linearizable(initial, from_moments(threads)), (seed, threads)
            every = [(timed, k) for k, thread in enumerate(threads) for timed in thread]
            overlapping += sum(
                a.begun < b.begun < a.ended for a, k in every for b, of in every if k != of
            )
    return overlapping


def test_histories_are_linearizable() -> None:
    check(range(400))


@pytest.mark.exhaustive
def test_many_histories_are_linearizable() -> None:
    assert check(range(12_000)) > 0, "threads never worked at the same time"
