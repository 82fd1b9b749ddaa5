"""Agnostic workers: the buffer they read, the windows they are handed, and who gets them."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import paneflow as pf
from examples.trading_fit import next_price, quotes
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.closing import event_log
from paneflow.engines.multicore.closing.finders import ByCount, Extents
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.stream import Stream
from paneflow.engines.multicore.tuning import tuning
from paneflow.engines.multicore.workers.agnostic import Agnostic
from tests.multicore.support import Fed
from tests.waiting import wait_until


def test_readers_and_the_emitter_do_not_disturb_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "joined_events", 16)
    monkeypatch.setattr(tuning, "spare_slots", 60)
    buffer = event_log.EventLog()
    last = ByCount(0, W.count(60, 1), buffer)
    work: list[tuple[list[int], event_log.Pieces, Extents]] = []
    wrong: list[object] = []
    over = threading.Event()

    def read() -> None:
        while work or not over.is_set():
            try:
                expected, pieces, window = work.pop()
            except IndexError:
                time.sleep(0)
            else:
                got = pieces.gather(window.slots)["t"].to_pylist()
                if got != expected:
                    wrong.append((expected, got))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    r = random.Random(7)
    end = 0
    for _ in range(300):
        t = np.arange(end, end + r.randint(1, 40))
        batch = pa.record_batch({"t": t})
        key = np.zeros(len(t), np.int64)
        events = Batch(key, t, batch, {}, 0.0)
        last.take(events, buffer.take(events, batch))
        end += len(t)
        found = last.advance(end)
        if found is not None:
            first = int(found.start[0])
            lent = buffer.lent(int(found.slots[0]), int(found.slots[-1]))
            work.append((list(range(first, end)), lent, found))
        last.settle()
        buffer.settle([last])
        assert len(buffer) <= 2 * 60 + 60 + 40
    over.set()
    for reader in readers:
        reader.join()
    assert wrong == []


@pytest.mark.parametrize(
    "window", [W.sliding(700, 20), W.slide_by_tuple(300, 7), W.session(3)], ids=str
)
def test_sums_have_the_same_bits_for_any_number_of_workers(window: W.Window) -> None:
    query = pf.Query(window, {"sum": A.sum("v"), "var": A.var("v")}, key="k", time="t")
    r = np.random.default_rng(3)
    n = 12_000
    table = pa.table(
        {"t": np.sort(r.integers(0, n, n)), "v": r.random(n), "k": r.integers(0, 3, n)}
    )
    answers = []
    for workers in (1, 2, 5):
        with query.open(workers=workers, strategy="agnostic") as stream:
            stream.push(table)
            stream.finish()
            answers.append(pa.concat_tables(stream.results()))
    assert answers[0].num_rows > 500
    assert answers[0].equals(answers[1]) and answers[0].equals(answers[2])


@pytest.mark.parametrize("window", [W.tumbling(100), W.session(1), W.count(50)], ids=str)
def test_events_of_closed_windows_are_given_up_before_the_next_push(window: W.Window) -> None:
    query = pf.Query(window, {"n": A.count("v")}, time="t")
    t = np.arange(100_000)
    before = pa.total_allocated_bytes()

    def kept() -> int:
        return int(pa.total_allocated_bytes() - before)

    with query.open(workers=2, strategy="agnostic") as stream:
        stream.push(pa.table({"t": pc.add(t + t // 100 * 50, 0), "v": pc.add(t, 0.5)}))
        assert kept() > 1_600_000
        rows = 0
        while rows < 999:
            rows += sum(table.num_rows for table in stream.results(0.01))
        wait_until(lambda: kept() <= 800_000)


@pytest.mark.parametrize(
    "window",
    [W.sliding(100, 10), W.session(1), W.slide_by_tuple(50, 7), W.count(30, 3)],
    ids=str,
)
def test_the_buffer_does_not_grow_with_the_stream(window: W.Window) -> None:
    query = pf.Query(window, {"n": A.count()}, time="t")
    fed = Fed(query, pa.table({"t": 2 * np.arange(400_000)}))
    strategy = Agnostic(fed.query, fed.kinds, 2)
    seen: list[int] = []
    try:
        for batch in fed.batches([*range(4000, len(fed), 4000)]):
            strategy.feed(batch)
            strategy.advance(int(batch.t[-1]))
            strategy.take()
            seen.append(len(strategy.buffer))
    finally:
        strategy.stop()
    # What windows need, as much again, what was just added, and what may be kept in vain.
    assert 0 < max(seen) <= 2 * 4000 + tuning.spare_slots + 200


def test_a_worker_that_is_slow_is_handed_less_than_its_share() -> None:
    def pause(rank: int) -> None:
        if rank == 0:
            time.sleep(0.05)

    query = pf.Query(W.count(2500), {"n": A.count()}, time="t")
    with Stream(query, workers=3, strategy="agnostic", pauses=pause) as stream:
        for start in range(0, 500_000, 2500):
            stream.push(pa.table({"t": np.arange(start, start + 2500)}))
        stream.finish()
        assert sum(rows.num_rows for rows in stream.results()) == 200
        slow, *others = (unit.results for unit in stream.metrics().units)
    assert slow < sum(others) / 2


@pytest.mark.parametrize("strategy", ["active", "agnostic"])
def test_the_trading_query_over_time_windows(strategy: str) -> None:
    check_trading(W.sliding("1 s", "50 ms"), strategy)


def test_the_trading_query_over_slide_by_tuple_windows() -> None:
    check_trading(W.slide_by_tuple("1 s", 40), "agnostic")


def check_trading(window: W.Window, strategy: str) -> None:
    """A polynomial fitted to the prices of each window, as one table and as a stream."""
    table = quotes().slice(0, 900)
    query = pf.Query(window, {"next": A.apply(next_price, "ts", "price")}, "symbol", "ts")
    with query.open(workers=3, strategy=strategy) as stream:
        for start in range(0, table.num_rows, 25):
            stream.push(table.slice(start, 25))
        stream.finish()
        got = pa.concat_tables(stream.results())
    assert got.equals(query.over(table))
