"""The thesis' call-frequency tables 1, 4, 7, 10 and 13, counted.

T events at times 0, 1, 2, ...; windows of WS sliding by WA, so WPT = WS / WA windows to an event;
P processing units. Each event is a message of its own, as in the thesis, unless said otherwise.
The tables hold to the last count where P divides what is shared, and otherwise within rounding: a
pane more or less for a PU, and what comes with it. At the end of a stream comes one more result
set, for all that is left.
"""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.contract import UnitMetrics
from tests.multicore.support import LINES, RINGS, TOPOLOGIES, Fed, run

T, WS, WA = 600, 48, 4
WPT = WS // WA
SLOTS = (T - 1) // WA + WPT  # window time-slots in which there is an event
ENDED = (T - 1) // WA  # slots that end while the stream runs


@functools.cache
def counted(name: str, workers: int, batch: int = 1, keys: int = 1) -> list[UnitMetrics]:
    table = pa.table({"t": np.arange(T), "k": np.arange(T) % keys, "v": np.ones(T, np.int64)})
    query = pf.Query(W.sliding(WS, WA), {"sum": A.sum("v")}, key="k", time="t")
    _, running = run(TOPOLOGIES[name], Fed(query, table), workers, list(range(0, T, batch)))
    return running.metrics()


def close(count: float, stated: float, rounding: float) -> bool:
    """Within rounding."""
    return abs(count - stated) <= rounding


def spread_by_hash(counts: list[int], stated: float) -> bool:
    """On average exactly, each within what chance allows."""
    return bool(np.isclose(np.mean(counts), stated)) and max(counts) < 1.1 * stated


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("name", [*LINES, *RINGS])
def test_every_unit_gets_every_event(name: str, workers: int) -> None:
    for unit in counted(name, workers):
        assert unit.tuples == T


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_events_are_forwarded_by_all_but_the_last_unit_of_their_way(workers: int) -> None:
    for name in LINES:
        forwarded = [unit.forwarded for unit in counted(name, workers)]
        assert forwarded == [T] * (workers - 1) + [0]
    for name in RINGS:
        forwarded = [unit.forwarded for unit in counted(name, workers)]
        assert sum(forwarded) == T * (workers - 1)
        assert max(forwarded) - min(forwarded) <= 1


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_hash_operations(workers: int) -> None:
    assert [u.hash_operations for u in counted("handshake", workers)] == [T * WPT] * workers
    once = [u.hash_operations for u in counted("hash_once", workers)]
    assert sum(once) == T * WPT
    assert all(close(count, T * WPT / workers, WPT) for count in once)
    for name in ("round_robin", "round_robin_cyclic", "pane_ring", "pane_line"):
        assert all(unit.hash_operations == 0 for unit in counted(name, workers))


@pytest.mark.parametrize("workers", [1, 2, 3, 6])
@pytest.mark.parametrize("name", [*LINES, *RINGS])
def test_find_or_create_window_and_aggregate_operation(name: str, workers: int) -> None:
    units = counted(name, workers, keys=50)
    found = [unit.windows_found for unit in units]
    assert found == [unit.window_updates for unit in units]
    assert sum(found) == T * WPT
    if name in ("handshake", "hash_once"):
        assert spread_by_hash(found, T * WPT / workers)
    else:
        assert all(close(count, T * WPT / workers, WPT) for count in found)


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("name", [*LINES, *RINGS])
def test_result_sets(name: str, workers: int) -> None:
    units = counted(name, workers)
    assert [unit.result_checks for unit in units] == [0] * (workers - 1) + [T]
    # One for every slot that ends, and one for all that is left at the end.
    assert [unit.result_sets for unit in units] == [ENDED + 1] * workers
    assert sum(unit.results for unit in units) == SLOTS


@pytest.mark.parametrize("name", [*LINES, *RINGS])
def test_a_batch_makes_one_result_set_at_most(name: str) -> None:
    for unit in counted(name, 3, batch=50):
        assert unit.result_sets == T // 50 + 1


@pytest.mark.parametrize("keys", [1, 3])
@pytest.mark.parametrize("workers", [1, 2, 3, 6, 9])
def test_panes_in_a_ring(workers: int, keys: int) -> None:
    units = counted("pane_ring", workers, keys=keys)
    panes = T // WA * keys
    assert sum(unit.tuples for unit in units) == T
    assert sum(unit.pane_updates for unit in units) == T
    visited = min(panes, panes * WPT / workers)
    for unit in units:
        assert close(unit.pane_updates, T / workers, WA)
        assert close(unit.panes_forwarded, visited, keys)
        assert close(unit.windows_found, panes * WPT / workers, 2 * keys)
        assert unit.window_updates == unit.windows_found
        assert close(unit.result_sets, panes / keys / workers, 1)
        assert unit.forwarded == 0
    assert [unit.result_checks for unit in units[:-1]] == [0] * (workers - 1)
    assert close(units[-1].result_checks, panes / workers, keys)


def test_a_pane_visits_only_units_that_have_windows_of_it() -> None:
    table = pa.table({"t": np.arange(T), "v": np.ones(T, np.int64)})
    query = pf.Query(W.sliding(3 * WA, WA), {"sum": A.sum("v")}, time="t")
    _, running = run(TOPOLOGIES["pane_ring"], Fed(query, table), 8, list(range(T)))
    for unit in running.metrics():
        assert close(unit.panes_forwarded, T / WA * 3 / 8, 3)  # a pane of each of 3 PUs


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_panes_that_stay(workers: int) -> None:
    units = counted("pane_line", workers, keys=8)
    assert sum(unit.pane_updates for unit in units) == T
    assert all(unit.panes_forwarded == unit.forwarded == 0 for unit in units)
    assert all(unit.result_sets == ENDED + 1 for unit in units)


@pytest.mark.parametrize("workers", [1, 3])
def test_panes_that_stay_are_scanned_once_for_all_windows_that_end_together(workers: int) -> None:
    messages = 3
    units = counted("pane_line", workers, batch=T // messages)
    held = T // WA + (messages + 1) * (WPT + 1)
    parts = sum(unit.windows_found for unit in units)
    # Two steps for a pane, and one for each part of a window, done by the first unit.
    assert sum(unit.window_updates for unit in units) <= 2 * held + parts
    assert units[0].results == SLOTS
    assert parts <= SLOTS * (WPT + 1)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_work_of_each_unit_falls_with_their_number(name: str) -> None:
    def most(workers: int) -> int:
        units = counted(name, workers, batch=20, keys=40)
        putting_together = sum(unit.windows_found for unit in units) if name == "pane_line" else 0
        work = [unit.window_updates + unit.pane_updates for unit in units]
        return max(work[0] - putting_together, *work[1:], 0)

    alone = most(1)
    for workers in (2, 3, 6):
        assert most(workers) < 1.4 * alone / workers


@pytest.mark.parametrize("workers", [2, 6])
def test_a_tumbling_window_is_shared_by_its_sub_panes(workers: int) -> None:
    table = pa.table({"t": np.arange(T), "v": np.ones(T, np.int64)})
    query = pf.Query(W.tumbling(T), {"sum": A.sum("v")}, time="t")
    _, running = run(TOPOLOGIES["pane_line"], Fed(query, table), workers, list(range(0, T, 10)))
    updates = [unit.pane_updates for unit in running.metrics()]
    assert sum(updates) == T
    assert max(updates) <= -(-8 // workers) * T / 8
