"""What is kept between pushes: slices in order, for as long as they are needed, key by key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.stores.growing import KeyState
from paneflow.engines.multicore.tuning import tuning
from tests.waiting import wait_until

Seen = tuple[int, int]


def newest(p: Seen, q: Seen) -> Seen:
    return q if q[0] > 0 else p


NEWEST = A.define(lambda x: (1, x), newest, lambda p: p[1], (0, 0), commutative=False)


def results(query: pf.Query, *pushes: list[int]) -> list[int]:
    """What comes of events that are pushed a few at a time; their values are their times."""
    with query.open() as stream:
        for t in pushes:
            stream.push(pa.table({"t": t, "v": t}))
            wait_until(lambda: stream.metrics().waiting == 0)
        stream.finish()
        return [n for rows in stream.results() for n in rows["n"].to_pylist()]


@pytest.mark.parametrize("loose", [0, 10**6])
def test_slices_of_later_pushes_are_combined_last(
    loose: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "loose_slices", loose)
    query = pf.Query(W.tumbling(10), {"n": NEWEST("v")}, time="t")
    assert results(query, [1], [2, 3], [5], [8], [21]) == [8, 21]


def test_a_slice_is_kept_that_the_first_open_window_begins_with() -> None:
    query = pf.Query(W.sliding(4, 2), {"n": A.sum("v")}, time="t", lateness=4)
    # At 8 the watermark is 4: the window from 2 to 6 is the first that is open.
    assert results(query, [0, 1, 2, 3], [8], [30])[:3] == [1, 6, 5]


def test_a_key_that_changed_twice_is_as_it_was() -> None:
    state, key = KeyState(7), np.array([3])
    for value in (8, 9):
        state.touch(key)
        state.values[0, key] = value
    state.undo()
    assert state.values[0, 3] == 7


@pytest.mark.parametrize("strategy", ["single", "round_robin", "pane_line"])
def test_thousands_of_keys_share_no_window(strategy: str) -> None:
    query = pf.Query(W.tumbling(10), {"n": A.count()}, key="k", time="t")
    keys = np.arange(3000) * 7
    with query.open(workers=2, strategy=strategy) as stream:
        stream.push(pa.table({"t": np.zeros(len(keys), np.int64), "k": keys}))
        stream.finish()
        rows = pa.concat_tables(stream.results())
    assert rows["k"].to_pylist() == keys.tolist()
    assert set(rows["n"].to_pylist()) == {1}
