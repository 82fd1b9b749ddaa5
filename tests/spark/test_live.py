"""Streams without an engine: custom windows, early rows, late events, the end of an idle stream.

Nothing here starts Spark; it is what both of its streams are made of.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from examples.threshold_window import Threshold
from paneflow import aggregates as A, windows as W
from paneflow.engines.live.open_windows import Held, OpenWindows
from paneflow.windows import CLOSE_AFTER, CLOSE_BEFORE, KEEP, OPEN, Custom, WindowClass

END = 10**6
TOTALS = {"sum": A.sum("v"), "all": A.collect("v")}


@dataclass(frozen=True)
class Overlapping(Custom):
    """Opens with every second event; the oldest closes before, with or after every third."""

    window_class: ClassVar[WindowClass] = WindowClass.FCA
    columns: ClassVar[tuple[str, ...]] = ("v",)
    initial: ClassVar[tuple[Any, ...]] = (0, 0.0)

    @staticmethod
    def step(state: tuple[Any, ...], t: int, v: int) -> tuple[tuple[Any, ...], int]:
        seen, total = state
        mark = OPEN if seen % 2 == 0 else KEEP
        if seen % 3 == 2:
            mark |= CLOSE_BEFORE if v % 2 else CLOSE_AFTER
        return (seen + 1, total + v), mark


@dataclass(frozen=True)
class ByName(Custom):
    """Open from an "a" to the next "z": text, which is stepped through in plain Python."""

    window_class: ClassVar[WindowClass] = WindowClass.FCF
    columns: ClassVar[tuple[str, ...]] = ("s",)
    initial: ClassVar[tuple[Any, ...]] = (False,)

    @staticmethod
    def step(state: tuple[Any, ...], t: int, s: str) -> tuple[tuple[Any, ...], int]:
        (open_,) = state
        if open_:
            return (s != "z",), CLOSE_AFTER if s == "z" else KEEP
        return (s == "a",), OPEN if s == "a" else KEEP


def stream_of(random: np.random.Generator, disorder: int) -> pa.Table:
    """Events in the order they arrive, out of order by no more than `disorder`."""
    n = int(random.integers(1, 120))
    times = np.cumsum(random.integers(0, 4, n))
    arrival = np.argsort(times + random.integers(0, disorder + 1, n), kind="stable")
    events = pa.table(
        {
            "t": times,
            "v": pa.array(random.integers(0, 9, n), mask=random.random(n) < 0.1),
            "s": random.choice(list("abz"), n),
            "grown": times * 2,
            "mark": random.random(n) < 0.2,
            "k": pa.array(random.integers(0, 3, n), mask=random.random(n) < 0.1),
        }
    )
    return events.take(pa.array(arrival))


def in_batches(random: np.random.Generator, events: pa.Table) -> list[pa.Table]:
    cuts = np.sort(random.integers(1, len(events) + 1, int(random.integers(0, 12))))
    edges = [0, *np.unique(cuts).tolist(), len(events)]
    return [events.slice(a, b - a) for a, b in itertools.pairwise(edges) if b > a]


@dataclass
class Stream:
    """A stream that is told each batch, and what it has given so far."""

    query: pf.Query
    source: pa.Schema
    lateness: int = 0
    whole: bool = False

    def __post_init__(self) -> None:
        self.windows = OpenWindows(self.query, self.source, self.whole)
        self.held = Held(self.windows.layout.empty_table(), self.source.empty_table(), None)
        self.latest = -END
        self.watermark: int | None = None
        self.rows: list[Any] = []
        self.early: list[Any] = []
        self.late: list[Any] = []
        self.missed = 0

    def take(self, batch: pa.Table, watermark: int | None = None) -> None:
        if batch.num_rows:
            self.latest = max(self.latest, max(batch["t"].to_pylist()))
        to = self.latest - self.lateness if watermark is None else watermark
        sent = [self.windows.sent(batch)] if batch.num_rows else []
        slices, events = self.windows.received(sent)
        if self.windows.needs_events:
            late = self.windows.late(self.held, slices, events, self.watermark)
            self.late += events.filter(pa.array(late)).to_pylist()
        made, self.held, missed = self.windows.advance(
            self.held, slices, events, self.watermark, to
        )
        self.watermark = to
        self.missed += missed
        self.rows += made.to_pylist()
        self.early = self.windows.early(self.held, slices, events, to).to_pylist()

    def end(self) -> None:
        self.take(self.source.empty_table(), END)


def ordered(rows: list[Any]) -> list[str]:
    return sorted(repr(sorted(row.items(), key=str)) for row in rows)


def unnumbered(rows: list[Any]) -> list[Any]:
    return [row | ({"seq": None} if row["window"].startswith("session") else {}) for row in rows]


def oracle(query: pf.Query, events: pa.Table) -> list[Any]:
    rows: list[Any] = query.over(events, engine="oracle").to_pylist()
    return unnumbered(rows)


def some_windows(random: np.random.Generator) -> list[W.Window]:
    def some(low: int, high: int) -> int:
        return int(random.integers(low, high))

    every = [
        W.sliding(some(1, 30), some(1, 30), offset=some(0, 5)),
        W.session(some(0, 6)),
        W.count(some(1, 6), some(1, 9)),
        W.slide_by_tuple(some(1, 15), some(1, 6)),
        W.slide_by_time(some(1, 6), some(1, 9)),
        W.delta("grown", some(1, 12), some(0, 8)),
        W.punctuation("mark"),
        Threshold("v", 3.5),
        Overlapping(),
    ]
    return [every[i] for i in random.permutation(len(every))[: some(1, 4)]]


# Custom windows.


@pytest.mark.parametrize("window", [Threshold("v", 3.5), Overlapping(), ByName()], ids=str)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.filterwarnings("ignore::paneflow.aggregates.defined.SlowAggregateWarning")
def test_a_custom_window_in_any_batches_gives_the_rows_of_the_oracle(
    window: W.Window, seed: int
) -> None:
    random = np.random.default_rng(seed)
    disorder = int(random.integers(0, 12))
    events = stream_of(random, disorder)
    key = "k" if seed % 4 else None
    query = pf.Query([window, W.count(3, 2)], TOTALS, key, time="t")
    stream = Stream(query, events.schema, disorder)
    for batch in in_batches(random, events):
        stream.take(batch)
    stream.end()
    assert stream.missed == 0
    assert ordered(stream.rows) == ordered(oracle(query, events))


def test_no_event_is_stepped_through_twice_and_closed_windows_are_forgotten() -> None:
    t = np.arange(4000)
    events = pa.table({"t": t, "v": t % 7})
    stream = Stream(pf.Query(Threshold("v", 3.5), TOTALS, time="t"), events.schema)
    for k in range(0, 4000, 50):
        stream.take(events.slice(k, 50))
    assert stream.held.events.num_rows < 10
    assert len(stream.rows) == 4000 // 7


# Early rows.


@pytest.mark.parametrize("seed", range(40))
def test_early_rows_are_those_of_the_events_so_far(seed: int) -> None:
    random = np.random.default_rng(seed)
    disorder = int(random.integers(0, 12))
    events = stream_of(random, disorder)
    key = "k" if seed % 4 else None
    query = pf.Query(some_windows(random), TOTALS, key, time="t")
    stream = Stream(query, events.schema, disorder)
    shown: dict[str, str] = {}
    done = 0

    def name(row: dict[str, Any]) -> str:
        first = row["start"] if row["window"].startswith("session") else None
        return repr((row["window"], row.get("k"), row["seq"], first))

    for batch in in_batches(random, events):
        stream.take(batch)
        done += batch.num_rows
        now = oracle(query, events.slice(0, done))
        final = {name(row) for row in stream.rows}
        open_ = [row for row in now if name(row) not in final]
        assert {repr(row) for row in stream.early} <= {repr(row) for row in open_}
        # Whatever was shown before and has not changed need not be shown again.
        shown |= {name(row): repr(row) for row in stream.early}
        for row in open_:
            assert shown[name(row)] == repr(row)


def test_windows_that_a_batch_has_not_changed_are_not_shown_again() -> None:
    query = pf.Query([W.sliding(10, 5), W.session(2)], TOTALS, "k", time="t")
    both = pa.table({"t": [1, 1], "v": [1, 2], "k": [0, 1]})
    stream = Stream(query, both.schema, lateness=100)
    stream.take(both)
    assert {row["k"] for row in stream.early} == {0, 1}
    stream.take(pa.table({"t": [12], "v": [3], "k": [1]}))
    assert {(row["window"], row["k"], row["start"]) for row in stream.early} == {
        ("sliding(10, 5)", 1, 5),
        ("sliding(10, 5)", 1, 10),
        ("session(2)", 1, 12),
    }


# Late events.


@pytest.mark.parametrize("key", ["k", None])
def test_late_events_are_told_apart_one_by_one(key: str | None) -> None:
    query = pf.Query([W.tumbling(10), W.session(2)], TOTALS, key, time="t")
    early = pa.table({"t": [*range(30), 33], "v": [1] * 31, "k": [0] * 31})
    stream = Stream(query, early.schema, whole=True)
    stream.take(early)
    # 5: both are emitted. 32: its session and its tumbling window are open. 28: the session from
    # 0 to 29 is closed, [20, 30) as well.
    stream.take(pa.table({"t": [5, 32, 28], "v": [7, 8, 9], "k": [0] * 3}))
    assert [event["t"] for event in stream.late] == [5, 28]
    assert stream.missed == 2


def test_an_event_late_for_one_window_each_is_not_late() -> None:
    query = pf.Query([W.tumbling(100), W.session(3)], TOTALS, "k", time="t")
    chain = list(range(0, 191, 3))
    early = pa.table({"t": chain, "v": [1] * len(chain), "k": [0] * len(chain)})
    stream = Stream(query, early.schema, whole=True)
    stream.take(early)
    # Key 0 has one session, still open; key 1 had none, but its tumbling window is open.
    stream.take(pa.table({"t": [50, 150], "v": [7, 8], "k": [0, 1]}))
    assert (stream.late, stream.missed) == ([], 0)


def test_what_lies_between_two_windows_is_not_late_for_them() -> None:
    query = pf.Query([W.sliding(2, 10), W.session(1)], TOTALS, time="t")
    early = pa.table({"t": [0, 50], "v": [1, 2]})
    stream = Stream(query, early.schema, whole=True)
    stream.take(early)
    stream.take(pa.table({"t": [25], "v": [7]}))
    # No sliding window holds 25, and its session would have closed: every window it has is over.
    assert [event["t"] for event in stream.late] == [25]


def test_an_event_that_no_window_would_ever_hold_is_not_late() -> None:
    query = pf.Query(W.sliding(2, 10), TOTALS, time="t")
    early = pa.table({"t": [0, 50], "v": [1, 2]})
    stream = Stream(query, early.schema, whole=True)
    stream.take(early)
    stream.take(pa.table({"t": [25, 21], "v": [7, 8]}))
    assert [event["t"] for event in stream.late] == [21]
    assert stream.missed == 1


# The end of an idle stream.


@pytest.mark.parametrize("seed", range(12))
def test_at_the_horizon_every_window_has_closed(seed: int) -> None:
    random = np.random.default_rng(seed)
    events = stream_of(random, 0)
    query = pf.Query(some_windows(random), TOTALS, "k", time="t")
    stream = Stream(query, events.schema)
    stream.take(events, watermark=-END)
    assert stream.rows == []
    stream.take(events.slice(0, 0), stream.windows.horizon(stream.latest))
    assert ordered(stream.rows) == ordered(oracle(query, events))
