"""Agnostic workers: the buffer they read, the windows they are handed, and who gets them."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from examples.trading_fit import next_price, quotes
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.core import SHORT_STEP
from paneflow.engines.multicore.stream import Stream
from paneflow.engines.multicore.workers.agnostic import Agnostic
from paneflow.engines.multicore.workers.farm import UNDER_WAY
from paneflow.engines.multicore.workers.window_buffer import CHUNK, WindowBuffer, gather


def events(start: int, end: int) -> tuple[pa.Table, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    t = np.arange(start, end)
    return pa.table({"t": t}), t


def test_chunks_have_a_fixed_number_of_events() -> None:
    buffer = WindowBuffer(size=4)
    assert buffer.append(*events(0, 3)) == 0
    assert buffer.append(*events(3, 10)) == 3
    assert (buffer.chunks, len(buffer)) == (3, 10)


def test_chunks_of_time_windows_are_panes() -> None:
    buffer = WindowBuffer.for_windows([W.sliding(6, 4, offset=1), W.tumbling(2, offset=1)])
    assert buffer.pane == (1, 2)
    buffer.append(*events(0, 6))
    assert [chunk.end - chunk.start for chunk in buffer.pin(0, 5)] == [1, 2, 2, 1]


@pytest.mark.parametrize("window", [W.session(5), W.count(4), W.sliding(100_000, 7)], ids=str)
def test_other_windows_have_chunks_of_a_fixed_size(window: W.Window) -> None:
    assert WindowBuffer.for_windows([window]).pane is None


def test_events_are_read_across_chunks() -> None:
    buffer = WindowBuffer(size=4)
    buffer.append(*events(100, 120))
    chunks = buffer.pin(3, 9)
    assert len(chunks) == 3
    assert gather(chunks, np.array([3, 4, 9]))["t"].to_pylist() == [103, 104, 109]


def test_chunks_leave_from_the_front_when_nobody_reads_or_needs_them() -> None:
    buffer = WindowBuffer(size=2)
    buffer.append(*events(0, 10))
    early, late = buffer.pin(0, 1), buffer.pin(2, 5)
    buffer.unpin(late)  # the later window is done first
    buffer.release(8)
    assert buffer.chunks == 5
    buffer.unpin(early)
    buffer.release(7)
    assert buffer.chunks == 2  # slot 7 lies in the chunk of 6 and 7


def test_readers_and_the_emitter_do_not_disturb_each_other() -> None:
    buffer = WindowBuffer(size=16)
    work: list[tuple[int, int, list[object]]] = []
    wrong: list[object] = []
    over = threading.Event()

    def read() -> None:
        while work or not over.is_set():
            try:
                first, last, chunks = work.pop()
            except IndexError:
                continue
            got = gather(chunks, np.arange(first, last + 1))["t"].to_pylist()  # type: ignore[arg-type]
            if got != list(range(first, last + 1)):
                wrong.append((first, last, got))
            buffer.unpin(chunks)  # type: ignore[arg-type]

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    r = random.Random(7)
    end = 0
    for _ in range(300):
        more = r.randint(1, 40)
        buffer.append(*events(end, end + more))
        end += more
        first = max(0, end - r.randint(1, 60))
        work.append((first, end - 1, buffer.pin(first, end - 1)))  # type: ignore[arg-type]
        buffer.release(max(0, end - 60))
    over.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    buffer.release(end)
    assert buffer.chunks <= 1


@pytest.mark.parametrize(
    "window",
    [W.sliding(100, 10), W.session(1), W.slide_by_tuple(50, 7), W.count(30, 3)],
    ids=str,
)
def test_the_buffer_does_not_grow_with_the_stream(window: W.Window) -> None:
    query = pf.Query(window, {"n": A.count()}, time="t")
    seen: list[int] = []
    with query.open(workers=2, strategy="agnostic") as stream:

        def look() -> None:
            list(stream.results())
            assert stream._core is not None
            strategy = stream._core._strategy
            assert isinstance(strategy, Agnostic)
            seen.append(len(strategy.buffer))

        for start in range(0, 400_000, 4000):
            stream.push(pa.table({"t": 2 * np.arange(start, start + 4000)}))
            look()
        while stream.metrics().waiting:
            look()
    # What workers have before them, what was just added, and chunks that are not yet full.
    assert 0 < max(seen) <= (UNDER_WAY + 1) * SHORT_STEP + 2 * CHUNK


def test_a_worker_that_is_slow_is_handed_fewer_windows() -> None:
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
    assert slow < min(others)


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
