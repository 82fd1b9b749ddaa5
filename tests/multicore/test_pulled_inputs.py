"""Inputs that a stream reads by itself: what they may be, and how they end, fail and stop."""

from __future__ import annotations

import gc
import io
import queue
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.engines.multicore.tuning import tuning
from tests.waiting import wait_until

QUERY = pf.Query(
    {"recent": W.sliding(20, 5), "visit": W.session(3)},
    {"sum": A.sum("v"), "last": A.last("v")},
    key="k",
    time="t",
)


def events(start: int, end: int) -> pa.Table:
    t = np.arange(start, end)
    return pa.table({"t": t, "v": t % 7, "k": t % 3})


TABLE = events(0, 500)
EXPECTED = QUERY.over(TABLE)


def batches(table: pa.Table = TABLE) -> list[pa.Table]:
    return [table.slice(start, 60) for start in range(0, table.num_rows, 60)]


def carried(table: pa.Table) -> bytes:
    """A table as the bytes of an Arrow stream."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in batches(table):
            writer.write_table(batch)
    return sink.getvalue()


def ours() -> list[str]:
    return sorted(t.name for t in threading.enumerate() if t.name.startswith("paneflow-s"))


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = ours()
    yield
    wait_until(lambda: ours() == before or (gc.collect() and False))


class Fed:
    """An iterator that waits for what a test gives it."""

    def __init__(self) -> None:
        self._given: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.asked = 0

    def give(self, batch: Any) -> None:
        self._given.put(batch)

    def __iter__(self) -> Iterator[Any]:
        while True:
            self.asked += 1
            batch = self._given.get()
            if batch is None:
                return
            if isinstance(batch, Exception):
                raise batch
            yield batch


def rows_of(stream: Any) -> pa.Table:
    return pa.concat_tables(stream.results())


IN_MEMORY: dict[str, Callable[[], Any]] = {
    "an iterator": lambda: iter(batches()),
    "a list of tables": batches,
    "an iterator of lists of dicts": lambda: (batch.to_pylist() for batch in batches()),
    "a list of dicts": TABLE.to_pylist,
    "a table": lambda: TABLE,
    "a reader": TABLE.to_reader,
    "pandas": TABLE.to_pandas,
    "polars": lambda: pl.from_arrow(TABLE),
    "an iterator of pandas": lambda: (batch.to_pandas() for batch in batches()),
    "an open file": lambda: io.BytesIO(carried(TABLE)),
}


@pytest.mark.parametrize("given", IN_MEMORY.values(), ids=IN_MEMORY)
def test_an_input_is_read_to_its_end(given: Callable[[], Any]) -> None:
    with QUERY.open() as stream:
        stream.pull(given())
        stream.finish()
        assert rows_of(stream).equals(EXPECTED)


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "events.parquet": pa.parquet.write_table,
    "events.arrow": lambda table, path: pa.feather.write_feather(table, str(path)),
    "events.feather": lambda table, path: pa.feather.write_feather(table, str(path)),
    "events.orc": pa.orc.write_table,
    "events.CSV": pa.csv.write_csv,
    "events.jsonl": lambda table, path: pl.from_arrow(table).write_ndjson(path),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_file_is_read_to_its_end(name: str, kind: type, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](TABLE, path)
    with QUERY.open() as stream:
        stream.pull(kind(path))
        stream.finish()
        assert rows_of(stream).equals(EXPECTED)


def test_a_socket_carries_an_arrow_stream() -> None:
    here, there = socket.socketpair()
    with here, there, QUERY.open() as stream:
        stream.pull(here)
        sent = carried(TABLE)
        there.sendall(sent[: len(sent) // 2])
        there.sendall(sent[len(sent) // 2 :])
        stream.finish()
        assert rows_of(stream).equals(EXPECTED)


@pytest.mark.parametrize("workers", [1, 3])
def test_several_inputs_are_merged_by_time(workers: int) -> None:
    by_key = [TABLE.filter(pa.compute.equal(TABLE["k"], key)) for key in range(3)]
    with QUERY.open(workers=workers, sources=4) as stream:
        for source, table in enumerate(by_key):
            stream.pull(iter(batches(table)), source)
        stream.push(events(500, 520), source=3)
        stream.finish()
        assert rows_of(stream).equals(QUERY.over(events(0, 520)))


def test_rows_can_be_read_while_inputs_are_open() -> None:
    fed = Fed()
    with QUERY.open() as stream:
        stream.pull(fed)
        fed.give(TABLE)
        assert next(stream.results(wait=60)).num_rows
        fed.give(None)


def test_finish_waits_for_no_input_but_results_do() -> None:
    fed = Fed()
    with QUERY.open() as stream:
        stream.pull(fed)
        stream.finish()
        results = stream.results()
        fed.give(TABLE)
        got = [next(results)]
        fed.give(None)
        assert pa.concat_tables([*got, *results]).equals(EXPECTED)


def test_an_input_without_events_leaves_no_rows() -> None:
    with QUERY.open() as stream:
        stream.pull(iter(()))
        stream.finish()
        assert list(stream.results()) == []


def test_a_finished_stream_whose_inputs_had_no_events_yet_waits_for_them() -> None:
    fed = Fed()
    with QUERY.open() as stream:
        stream.pull(fed)
        stream.finish()
        threading.Timer(0.05, lambda: (fed.give(TABLE), fed.give(None))).start()
        assert rows_of(stream).equals(EXPECTED)


def test_an_input_is_read_no_faster_than_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "most_unread", 100)
    monkeypatch.setattr(tuning, "most_waiting", 100)
    # A push by hand would be refused before anything is read.
    monkeypatch.setattr(tuning, "patience", 0.0)
    monkeypatch.setattr(tuning, "stuck_look", 0.001)
    asked = iter(batches(events(0, 60_000)))
    taken: list[int] = []

    def counted() -> Iterator[pa.Table]:
        for batch in asked:
            taken.append(batch.num_rows)
            yield batch

    with QUERY.open() as stream:
        stream.pull(counted())
        wait_until(lambda: stream.metrics().unread >= 100)
        wait_until(lambda: stream.metrics().waiting > 0)
        time.sleep(0.2)
        assert len(taken) < 1000
        stream.finish()
        assert rows_of(stream).equals(QUERY.over(events(0, 60_000)))


def test_an_input_that_fails_ends_the_stream_and_keeps_the_rows_before() -> None:
    fed = Fed()
    with QUERY.open(sources=2) as stream:
        stream.pull(iter(batches()), source=0)
        stream.pull(fed, source=1)
        fed.give(events(0, 100))
        fed.give(OSError("the sensor is gone"))
        with pytest.raises(pf.PaneflowError, match=r"input of source 1 .* the sensor is gone") as e:
            list(stream.results(wait=60))
        assert isinstance(e.value.__cause__, OSError)
        with pytest.raises(pf.PaneflowError, match="the sensor is gone"):
            stream.finish()
        assert stream.metrics().sources[1].error == "OSError: the sensor is gone"


def test_an_input_that_fails_before_any_event_ends_the_stream() -> None:
    fed = Fed()
    with QUERY.open() as stream:
        stream.pull(fed)
        fed.give(OSError("the sensor is gone"))
        with pytest.raises(pf.PaneflowError, match="the sensor is gone"):
            list(stream.results(wait=60))


def test_a_batch_that_does_not_fit_is_a_failure_of_its_input() -> None:
    with QUERY.open() as stream:
        stream.pull(iter([TABLE.drop_columns(["v"])]))
        with pytest.raises(pf.PaneflowError, match=r"input of source 0 .* column 'v' is needed"):
            list(stream.results(wait=60))


def test_with_idle_a_failed_input_falls_silent_and_the_rest_goes_on() -> None:
    fed = Fed()
    with QUERY.open(sources=2, idle="20 ms") as stream:
        stream.pull(fed, source=1)
        fed.give(OSError("the sensor is gone"))
        stream.push(TABLE, source=0)
        assert next(stream.results(wait=60)).num_rows
        assert stream.metrics().sources[1].error == "OSError: the sensor is gone"
        assert stream.metrics().sources[0].error is None
        stream.finish()
        list(stream.results())


def test_metrics_show_which_source_holds_the_others_back() -> None:
    fed = Fed()
    with QUERY.open(sources=3) as stream:
        stream.pull(iter(batches()), source=0)
        stream.pull(fed, source=1)
        fed.give(events(0, 50))
        wait_until(lambda: stream.metrics().sources[0].ended)
        fed.give(events(10, 20))
        wait_until(lambda: stream.metrics().sources[1].pushed == 60)
        first, slow, unheard = stream.metrics().sources
        assert (first.pushed, first.latest, first.ended) == (500, 499, True)
        assert (slow.latest, slow.ended) == (49, False)
        assert slow.silent_for is not None and slow.silent_for >= 0
        assert (unheard.pushed, unheard.latest, unheard.silent_for) == (0, None, None)
        fed.give(None)


def test_a_closed_stream_takes_nothing_more_from_its_inputs() -> None:
    fed = Fed()
    with QUERY.open() as stream:
        stream.pull(fed)
        fed.give(events(0, 100))
        wait_until(lambda: fed.asked == 2)
    fed.give(events(100, 200))
    fed.give(None)
    assert stream.metrics().pushed == 100


def test_a_closed_stream_stops_waiting_for_a_socket() -> None:
    here, there = socket.socketpair()
    with here, there:
        with QUERY.open() as stream:
            stream.pull(here)
            there.sendall(carried(TABLE)[:-8])  # without the mark of the end
            wait_until(lambda: stream.metrics().pushed == 500)
        wait_until(lambda: not any(name == "paneflow-source-0" for name in ours()))


def test_a_dropped_stream_takes_nothing_more_from_its_inputs() -> None:
    fed = Fed()
    stream = QUERY.open()
    stream.pull(fed)
    fed.give(events(0, 100))
    wait_until(lambda: fed.asked == 2)
    held = weakref.ref(stream)
    del stream
    wait_until(lambda: gc.collect() + (held() is None))
    fed.give(events(100, 200))
    fed.give(events(200, 300))
    wait_until(lambda: not any(name == "paneflow-source-0" for name in ours()))
    assert fed.asked == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (5, "is not an input of a stream"),
        (None, "is not an input of a stream"),
        (b"t,v,k", "is not an input of a stream"),
        ({"t": [1]}, "is not an input of a stream"),
        ("missing.parquet", "'missing.parquet' is not a file"),
        ("events.txt", "none of the endings .arrow, .csv"),
    ],
    ids=repr,
)
def test_what_is_no_input_is_refused_at_once(given: Any, words: str) -> None:
    with QUERY.open() as stream:
        with pytest.raises(pf.InputError, match=words):
            stream.pull(given)
        stream.pull(iter(batches()))
        stream.finish()
        assert rows_of(stream).equals(EXPECTED)


def test_bytes_that_are_no_arrow_stream_are_a_failure_of_their_input() -> None:
    with QUERY.open() as stream:
        stream.pull(io.BytesIO(b"t,v,k\n1,2,3\n"))
        with pytest.raises(pf.PaneflowError, match="does not carry an Arrow stream"):
            list(stream.results(wait=60))


def test_a_source_has_one_input() -> None:
    fed = Fed()
    with QUERY.open(sources=2) as stream:
        stream.pull(fed, source=1)
        with pytest.raises(pf.InputError, match="source 1 is pulled from an input"):
            stream.pull(iter(batches()), source=1)
        with pytest.raises(pf.InputError, match="source 1 is pulled from an input"):
            stream.push(TABLE, source=1)
        with pytest.raises(pf.InputError, match="source 1 is pulled from an input"):
            stream.end_source(1)
        fed.give(None)


def test_missing_values_of_pandas_are_null() -> None:
    frame = pd.DataFrame({"t": [1, 2], "v": [1.0, float("nan")], "k": [1, 1]})
    with QUERY.open() as stream:
        stream.pull(iter([frame]))
        stream.finish()
        assert rows_of(stream).equals(QUERY.over(pa.table(frame)))
