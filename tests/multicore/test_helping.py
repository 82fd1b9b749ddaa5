"""Which thread does the work of a PU: its own, or the one that brings a short message."""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.contract import Strategy
from paneflow.engines.multicore.tuning import tuning
from tests.multicore.support import TOPOLOGIES, Fed, expected
from tests.waiting import wait_until

QUERY = pf.Query(W.sliding(20, 5), {"sum": A.sum("v")}, time="t")
EVENTS = pa.table({"t": np.arange(400), "v": np.arange(400)})


class Seen:
    """Which threads have worked for which PUs."""

    def __init__(self) -> None:
        self.threads: dict[int, set[int]] = defaultdict(set)

    def __call__(self, rank: int) -> None:
        self.threads[rank].add(threading.get_ident())


def all_asleep(running: Strategy) -> None:
    """Wait until every PU has found nothing to do."""
    wait_until(lambda: all(each.waits for each in running.metrics()))
    time.sleep(0.02)  # between its last look and its sleep, a thread may still be called


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_short_messages_are_worked_on_by_the_thread_that_brings_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "short_message", math.inf)
    me = threading.get_ident()
    for _ in range(20):  # a thread that the machine has held up on its way to sleep may help
        if all(threads == {me} for threads in who_works(name).values()):
            break
    else:
        pytest.fail("another thread has helped, every time")


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_messages_that_are_not_short_are_worked_on_by_the_threads_of_their_units(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "short_message", 0.0)
    for threads in who_works(name).values():
        assert threading.get_ident() not in threads


def who_works(name: str) -> dict[int, set[int]]:
    """The threads that work for each PU when messages come to PUs that are asleep."""
    fed, seen = Fed(QUERY, EVENTS), Seen()
    running = TOPOLOGIES[name](QUERY, fed.kinds, 4, seen)
    try:
        all_asleep(running)
        seen.threads.clear()
        parts = []
        for batch in fed.batches(list(range(0, 400, 20))):
            running.feed(batch)
            parts += running.take()
        running.finish()
        parts += running.take()
    finally:
        running.stop()
    assert seen.threads.keys() == set(range(4))
    assert fed.rows(parts).to_pylist() == expected(QUERY, fed.table).to_pylist()
    return seen.threads


def test_long_messages_wake_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """After one of them: how long messages take is known only then."""
    fed, seen = Fed(QUERY, EVENTS), Seen()
    monkeypatch.setattr(tuning, "short_message", 1e-9)
    running = TOPOLOGIES["round_robin"](QUERY, fed.kinds, 3, seen)
    try:
        all_asleep(running)
        first, second = fed.batches([200])
        running.feed(first)
        seen.threads.clear()
        running.feed(second)
        running.finish()
    finally:
        running.stop()
    assert threading.get_ident() not in set().union(*seen.threads.values())
