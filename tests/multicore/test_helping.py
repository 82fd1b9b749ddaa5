"""Who does a PU's work: its own thread, or, where messages are short, whoever brings them."""

from __future__ import annotations

import threading
import time
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.contract import Strategy
from paneflow.engines.multicore.threads import unit
from tests.multicore.support import TOPOLOGIES, Fed, expected

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
    end = time.monotonic() + 30
    while not all(each.waits for each in running.metrics()) and time.monotonic() < end:
        time.sleep(0.001)
    time.sleep(0.02)


@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("short", [0.0, 1.0], ids=["never", "always"])
def test_short_messages_are_worked_on_by_the_thread_that_brings_them(
    name: str, short: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit, "SHORT", short)
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
    me = threading.get_ident()
    assert seen.threads.keys() == set(range(4))
    for threads in seen.threads.values():
        assert threads == {me} if short else me not in threads
    assert fed.rows(parts).to_pylist() == expected(QUERY, fed.table).to_pylist()


def test_long_messages_wake_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """After one of them: how long messages take is known only then."""
    fed, seen = Fed(QUERY, EVENTS), Seen()
    monkeypatch.setattr(unit, "SHORT", 1e-9)
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
