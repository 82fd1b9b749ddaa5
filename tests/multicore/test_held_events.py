"""What the front of a stream holds: in what order it leaves, and how often it is moved."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from paneflow.engines.multicore.intake.held_events import HeldEvents
from paneflow.engines.multicore.tuning import tuning


def add(held: HeldEvents, t: list[int], source: list[int], first: int) -> None:
    batch = pa.record_batch({"n": np.arange(first, first + len(t))})
    held.add(batch, np.array(t, np.int64), np.array(source, np.int64))


@pytest.mark.parametrize("sources", [1, 3])
@pytest.mark.parametrize("seed", range(20))
def test_events_leave_in_total_order(
    seed: int, sources: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = random.Random(seed)
    monkeypatch.setattr(tuning, "longest_run", r.choice([2, 8, 64]))
    held = HeldEvents()
    waiting: list[tuple[int, int, int]] = []
    came = until = 0
    for _ in range(60):
        n = r.choice([0, 1, 2, 7])
        t = [until + r.randint(0, 30) for _ in range(n)]
        source = [r.randrange(sources) for _ in range(n)]
        waiting += zip(t, source, range(came, came + n), strict=True)
        add(held, t, source if sources > 1 else [], came)
        came += n
        until += r.choice([0, 0, 1, 5])
        released = held.release(until)
        due = sorted(event for event in waiting if event[0] < until)
        waiting = [event for event in waiting if event[0] >= until]
        got = [] if released is None else released.batch["n"].to_pylist()
        assert got == [number for _, _, number in due]
        assert released is None or released.t.tolist() == [t for t, _, _ in due]
        assert len(held) == len(waiting)


@pytest.mark.parametrize("spread", [0, 10**6])
def test_an_event_is_moved_no_more_often_where_ten_times_as_many_are_held(spread: int) -> None:
    def moves(events: int) -> float:
        """How often an event is moved, of so many that are held at a time."""
        rng = np.random.default_rng(1)
        held = HeldEvents()
        for start in range(0, 3 * events, 100):
            t = np.sort(np.arange(start, start + 100) + rng.integers(0, spread + 1, 100))
            held.add(pa.record_batch({"t": t}), t, np.zeros(0, np.int64))
            held.release(start - events)
        return held.moved / (3 * events)

    assert moves(100_000) < 1.6 * moves(10_000)
