"""Windows of one worker and of agnostic workers: found from what comes, and nothing else."""

from __future__ import annotations

import random
import time
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from bench.multicore import held
from paneflow import aggregates as A, windows as W
from paneflow.aggregates.values import Kind, kind_of
from paneflow.engines.multicore.choosing import without_partial
from paneflow.engines.multicore.completeness import no_rows
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.intake.key_codes import KeyCodes
from paneflow.engines.multicore.one_worker.single import OpenStream
from paneflow.engines.multicore.pump.row_order import RowOrder
from paneflow.engines.multicore.ticks import END_OF_STREAM
from paneflow.engines.multicore.topologies.parts.cells import Cells
from paneflow.engines.multicore.topologies.parts.question import Inputs, Question
from paneflow.engines.multicore.tuning import tuning
from paneflow.slicing.columns import Column, read_column
from paneflow.slicing.times import read_times
from tests.multicore.refusals import served_windows
from tests.multicore.stream_cases import check, draw_stream
from tests.properties.cases import draw_case
from tests.properties.compare import assert_same_rows


@pytest.fixture
def dropping(monkeypatch: pytest.MonkeyPatch) -> None:
    """What no window needs is dropped at once, and the rest gets new places all the time."""
    for name in ("spare_slots", "spare_sessions", "spare_silent"):
        monkeypatch.setattr(tuning, name, 0)
    monkeypatch.setattr(tuning, "joined_events", 3)


@pytest.mark.filterwarnings("ignore::paneflow.aggregates.defined.SlowAggregateWarning")
@pytest.mark.usefixtures("dropping")
@pytest.mark.parametrize("strategy", ["auto", "active", "agnostic"])
@pytest.mark.parametrize("seed", range(12))
def test_dropping_events_changes_no_row(strategy: str, seed: int) -> None:
    r = random.Random(f"dropping {seed}")
    windows = served_windows(strategy)
    check(draw_stream(r, windows, most=80), r, strategy, 1 if strategy == "auto" else 2)


class Opened:
    """Open windows without a stream around them."""

    def __init__(self, query: pf.Query, table: pa.Table) -> None:
        self.query = query
        names = [query.time, *query.key, *(c for w in query.windows.values() for c in w.columns)]
        names += [c for a in query.aggregates.values() for c in a.columns]
        table = table.select(list(dict.fromkeys(names)))
        self.keys = KeyCodes(query.key, table.schema)
        kinds = {name: kind_of(type_, name) for name, type_ in query.types(table.schema).items()}
        self.windows = OpenStream(query, kinds)
        self.collector = RowOrder(query, table.schema, self.keys)
        self._read = {
            c
            for each in (*query.windows.values(), *query.aggregates.values())
            for c in each.columns
            if kind_of(table.schema.field(c).type, c) is not Kind.TEXT
        }
        self.table = table

    def events(self, table: pa.Table) -> Batch:
        """Some of the events, all final."""
        (batch,) = table.select(self.table.column_names).combine_chunks().to_batches()
        read = {name: read_column(table, name) for name in self._read}
        t, _ = read_times(table, self.query.time)
        key = self.keys.encode(batch)
        return Batch(key, t, batch, read, 0.0)

    def rows(self) -> pa.Table:
        """All rows that were given out."""
        self.collector.add([no_rows(0.0, END_OF_STREAM)])
        collected = self.collector.collect()
        empty = self.query.result_schema(self.table.schema).empty_table()
        return empty if collected is None else collected.table


@pytest.mark.filterwarnings("ignore::paneflow.aggregates.defined.SlowAggregateWarning")
@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_what_is_undone_leaves_no_trace(
    seed: int, drop: bool, request: pytest.FixtureRequest
) -> None:
    if drop:
        request.getfixturevalue("dropping")
    r = random.Random(f"undone {seed}")
    case = draw_case(r, most=60)
    query = without_partial(case.query)
    table = case.table.sort_by("t")
    opened = Opened(query, table)
    at = 0
    while at < len(table):
        for attempt in (False, True):
            size = r.choice([1, 2, 5, 20])
            some = opened.events(table.slice(at, size))
            ahead = 0 if attempt else r.choice([0, 0, 10**9])
            opened.windows.take(some)
            rows = opened.windows.advance(int(some.t[-1]) + ahead, 0.0)
            if attempt:
                opened.windows.settle()
                opened.collector.add(rows)
                at += size
            else:
                opened.windows.undo()
    opened.collector.add(opened.windows.advance(END_OF_STREAM, 0.0))
    assert_same_rows(query, opened.rows(), query.over(table, engine="oracle"))


POOL = pa.default_memory_pool()
COUNTED: list[Any] = []
"""Pools must outlive what was allocated from them."""


def bytes_of_a_push(holding: held.Holding, strategy: str, size: int) -> float:
    """What a push allocates at its height, once so many events are held."""
    line = held.Line(holding, strategy, held.events(holding, 0, 1).schema)
    peaks = []
    try:
        for start in range(0, size, 1000):
            line.push(held.events(holding, start, start + 1000))
        for start in range(size, size + 3100, 100):
            batch = held.events(holding, start, start + 100)
            time.sleep(0.001)
            COUNTED.append(pa.proxy_memory_pool(POOL))
            pa.set_memory_pool(COUNTED[-1])
            tracemalloc.start()
            line.push(batch)
            peaks.append(tracemalloc.get_traced_memory()[1] + COUNTED[-1].max_memory())
            tracemalloc.stop()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(POOL)
        line.stop()
    return float(np.median(peaks))


CASES = [
    pytest.param(holding, strategy, id=f"{holding.name}, {strategy}")
    for holding in held.HOLDINGS
    for strategy in holding.strategies
    if strategy in ("single", "agnostic", "hash_once")
]


@pytest.mark.parametrize(("holding", "strategy"), CASES)
def test_a_push_allocates_no_more_where_more_is_held(holding: held.Holding, strategy: str) -> None:
    few, many = (bytes_of_a_push(holding, strategy, n) for n in (2000, 20_000))
    assert many <= 2 * few + 20_000


def test_a_session_is_one_cell_however_long_it_is() -> None:
    query = pf.Query(W.session(5), {"sum": A.sum("v")}, key="k", time="t")
    table = pa.table({"t": np.arange(3000), "k": np.arange(3000) % 3, "v": np.ones(3000)})
    opened = Opened(query, table)
    for at in range(0, 3000, 100):
        opened.windows.take(opened.events(table.slice(at, 100)))
        assert opened.windows.advance(at + 99, 0.0) == []
        opened.windows.settle()
        assert opened.windows.held == 3
    opened.collector.add(opened.windows.advance(END_OF_STREAM, 0.0))
    assert opened.rows()["sum"].to_pylist() == [1000.0] * 3


@pytest.mark.parametrize("seed", range(10))
def test_cells_that_leave_one_by_one_are_those_asked_for(seed: int) -> None:
    r = random.Random(seed)
    query = pf.Query(W.count(3), {"sum": A.sum("v")}, key="k", time="t")
    question = Question(query, {"v": Kind.FLOAT})
    cells = Cells(question, watched=True)
    expected: dict[tuple[int, int], float] = {}
    for _ in range(60):
        n = r.choice([1, 3, 40])
        key = np.array([r.randrange(30) for _ in range(n)])
        numbers = np.array([r.randrange(20) for _ in range(n)])
        v = np.array([r.randrange(100) for _ in range(n)], np.float64)
        t = np.zeros(n, np.int64)
        columns = {"v": Column("v", pa.float64(), Kind.FLOAT, v, None)}
        events = Inputs(question, key, t, t, columns)
        cells.absorb(events, np.arange(n), numbers)
        for pair in zip(numbers.tolist(), key.tolist(), v.tolist(), strict=True):
            expected[pair[:2]] = expected.get(pair[:2], 0.0) + pair[2]
        touched = cells.touched()
        held = cells.contents()
        pairs = list(zip(held.number.tolist(), held.key.tolist(), strict=True))
        assert {pairs[at] for at in touched} >= set(
            zip(numbers.tolist(), key.tolist(), strict=True)
        )
        leaving = np.array([at for at in touched if r.random() < 0.5], np.int64)
        staying = np.setdiff1d(touched, leaving)
        asked = [pairs[at] for at in staying]
        removed = cells.remove_at(leaving, staying)
        for number, k, total in zip(
            removed.number.tolist(), removed.key.tolist(), removed.partials[0][0], strict=True
        ):
            assert expected.pop((number, k)) == total
        held = cells.contents()
        pairs = list(zip(held.number.tolist(), held.key.tolist(), strict=True))
        assert dict(zip(pairs, held.partials[0][0].tolist(), strict=True)) == expected
        again = cells.touched()
        assert sorted(pairs[at] for at in again) == sorted(asked)
        cells.remove_at(again[:0], again)
