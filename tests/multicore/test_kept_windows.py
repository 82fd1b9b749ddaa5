"""Windows of a stream that overlap, kept merged by every algorithm: the rows are the oracle's."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates.values import kind_of
from paneflow.engines.multicore.completeness import no_rows
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.intake.key_codes import KeyCodes
from paneflow.engines.multicore.one_worker import sliding_windows
from paneflow.engines.multicore.one_worker.single import OpenStream
from paneflow.engines.multicore.pump.row_order import RowOrder
from paneflow.engines.multicore.ticks import BEFORE_ALL, END_OF_STREAM
from paneflow.planning.merge_choice import AVAILABLE, StreamMerge, choose_stream_merge
from paneflow.slicing.columns import read_column
from tests.multicore.straggler_model import Arrival, Case, digits
from tests.multicore.test_stragglers import check
from tests.properties.compare import assert_same_rows

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
WINDOWS = [W.sliding(40, 2), W.sliding(31, 5, 3), W.sliding(12, 4), W.tumbling(7)]


Aggregates = dict[str, A.Aggregate]
EXACT: Aggregates = {"sum": A.sum("v"), "n": A.count()}
FEW = EXACT | {"last": A.last("v")}
MORE: Aggregates = {"some": A.count("v"), "peak": A.max("v"), "spread": A.var("v")}

QUICK = ("subtract", "two_stacks", "daba", "slick_deque")
"""One of each kind, of which the kernels do not take long to compile."""


def lawful(merge: str, aggregates: Aggregates) -> Aggregates:
    """What an algorithm may merge by the laws it needs."""
    selective, others = {"peak"}, {"last", "spread"}
    if merge == "subtract":
        others |= selective
    elif merge != "slick_deque":
        others = set()
    return {name: made for name, made in aggregates.items() if name not in others}


def drawn(r: random.Random, merge: str, aggregates: Aggregates) -> tuple[pf.Query, pa.Table]:
    """A query of some windows, and events in order: bursts, holes, keys that come and go."""
    windows = r.sample(WINDOWS, r.randint(1, 3))
    t, events = 0, []
    for _ in range(r.choice([60, 200])):
        t += r.choice([0, 0, 1, 1, 1, 2, 9, 60])
        key = r.choice([0, 1, t // 50, None])
        events.append({"t": t, "k": key, "v": r.choice([None, 0, 1, 2, 2])})
    query = pf.Query(windows, lawful(merge, aggregates), key="k", time="t")
    return query, pa.Table.from_pylist(events, schema=SCHEMA)


class Opened:
    """Open windows without a stream around them."""

    def __init__(self, query: pf.Query, merge: str) -> None:
        kinds = {name: kind_of(type_, name) for name, type_ in query.types(SCHEMA).items()}
        self._keys = KeyCodes(query.key, SCHEMA)
        self._order = RowOrder(query, SCHEMA, self._keys)
        self.windows = OpenStream(query, kinds, merge)

    def events(self, table: pa.Table) -> Batch:
        (batch,) = table.combine_chunks().to_batches()
        read = {"v": read_column(table, "v")}
        return Batch(self._keys.encode(batch), table["t"].to_numpy(), batch, read, 0.0)

    def keep(self, rows: list[Any]) -> None:
        self.windows.settle()
        self._order.add(rows)

    def rows(self) -> pa.Table:
        self._order.add([no_rows(0.0, END_OF_STREAM)])
        collected = self._order.collect()
        assert collected is not None
        return collected.table


@pytest.mark.parametrize(
    "aggregates",
    [FEW, pytest.param(FEW | MORE, marks=pytest.mark.long)],
    ids=["few", "more"],
)
@pytest.mark.parametrize(
    "merge",
    ["auto", *(m if m in QUICK else pytest.param(m, marks=pytest.mark.long) for m in AVAILABLE)],
)
def test_rows_are_those_of_a_table_however_events_come(merge: str, aggregates: Aggregates) -> None:
    for seed in range(8):
        r = random.Random(f"{merge} {seed}")
        query, table = drawn(r, merge, aggregates)
        opened = Opened(query, merge)
        at, watermark = 0, BEFORE_ALL
        while at < len(table):
            some = opened.events(table.slice(at, r.choice([1, 1, 3, 30])))
            watermark = max(watermark, int(some.t[-1]))
            if r.random() < 0.1:  # what is undone leaves no trace
                opened.windows.take(some)
                opened.windows.advance(watermark + r.choice([0, 3, 1000]), 0.0)
                opened.windows.undo()
            opened.windows.take(some)
            opened.keep(opened.windows.advance(watermark, 0.0) if r.random() < 0.8 else [])
            at += len(some)
        opened.keep(opened.windows.advance(END_OF_STREAM, 0.0))
        assert_same_rows(query, opened.rows(), query.over(table, engine="oracle"))


@pytest.mark.parametrize("merge", ["auto", "fiba", "daba", "recalculate"])
@pytest.mark.parametrize("ordered", [False, True], ids=["any order", "in order"])
def test_stragglers_enter_windows_that_are_kept_merged(
    merge: str, ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Late by some slices, again and again; also where a combine needs the order of events."""
    entered: list[str] = []

    def chosen(window: Any, operator: Any, *, late: int, asked: str) -> StreamMerge:
        found = choose_stream_merge(window, operator, late=late, asked=merge)
        entered.append(found.name)
        return found

    monkeypatch.setattr(sliding_windows, "choose_stream_merge", chosen)
    for seed in range(6):
        r = random.Random(f"late {merge} {seed}")
        t, arrivals = 0, []
        for _ in range(120):
            t += r.choice([0, 1, 1, 2])
            late = r.choice([0, 0, 0, 2, 9, 30, 50])
            event = {"t": t - late, "k": r.choice([0, 1, 2]), "v": r.choice([0, 1, 2])}
            event |= {"x": 0.0, "grown": 0, "mark": False}
            arrivals.append(Arrival(0, event))
        made = {"digits": digits("v")} if ordered else FEW
        query = pf.Query(r.sample(WINDOWS[:3], 2), made, key="k", time="t")
        check(Case(query, 1, arrivals), r, "single", 1, 0)
    if merge == "auto" and not ordered:
        assert "fiba" in entered and "daba" in entered
