"""Drives a strategy without a stream around it: batches of a table in, rows as a table out."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import paneflow as pf
from paneflow.aggregates.values import Kind, kind_of
from paneflow.engines.multicore.choosing import BY_NAME, without_partial
from paneflow.engines.multicore.contract import Batch, Rows, Strategy
from paneflow.engines.multicore.tuning import tuning
from paneflow.slicing.columns import Column, one_chunk, read_column
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.times import TimeType, read_times
from tests.waiting import PATIENCE

LINES = ("handshake", "round_robin")
RINGS = ("hash_once", "round_robin_cyclic")
ONE_WORKER = ("single", "multi_queue", "multi_queue_lock_free", "tuple_gate")
"""Those that answer in one thread, and differ in how events are put in order."""
PANES = ("pane_ring", "pane_line")
TOPOLOGIES: dict[str, type[Strategy]] = {name: BY_NAME[name] for name in (*LINES, *RINGS, *PANES)}
HIVES: dict[str, type[Strategy]] = {
    name: BY_NAME[name] for name in ("window_hive", "slice_hive", "tuple_gate_parallel")
}
UNORDERED = ("window_hive", "slice_hive")
"""Those that refuse aggregates which depend on the order of events."""


def asked_of(name: str, windows: list[pf.windows.Window]) -> list[pf.windows.Window]:
    """The windows that a strategy can be asked for, of some by time and by count."""
    return [w for w in windows if name not in HIVES or isinstance(w, pf.windows.Sliding)]


class Fed:
    """A table as a stream: sorted, with keys coded in the order of their first appearance."""

    def __init__(self, query: pf.Query, table: pa.Table) -> None:
        query = without_partial(query)  # as a stream asks
        self.query = query
        self.table = table
        types = query.types(table.schema)
        self.kinds: dict[str, Kind] = {name: kind_of(type_, name) for name, type_ in types.items()}
        t, _ = read_times(table, query.time)
        order = np.argsort(t, kind="stable")
        table = table.select(list(query.columns)).take(pa.array(order)).combine_chunks()
        every = (*query.windows.values(), *query.aggregates.values())
        names = dict.fromkeys(column for each in every for column in each.columns)
        self.columns: dict[str, Column] = {name: read_column(table, name) for name in names}
        codes, keys = encode_keys(table, query.key)
        codes = np.asarray(codes, np.int64)
        _, first = np.unique(codes, return_index=True)
        appearing = codes[np.sort(first)]
        rank = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
        rank[appearing] = np.arange(len(appearing))
        self._whole = Batch(
            rank[codes],
            t[order],
            pa.RecordBatch.from_arrays([one_chunk(c) for c in table.columns], schema=table.schema),
            {name: c for name, c in self.columns.items() if c.kind is not Kind.TEXT},
            0.0,
        )
        self.keys = keys.take(pa.array(appearing)) if query.key else keys

    def __len__(self) -> int:
        return len(self._whole)

    def batches(self, cuts: list[int]) -> Iterator[Batch]:
        """The events between each two cuts."""
        for a, b in itertools.pairwise([0, *sorted(cuts), len(self)]):
            yield dataclasses.replace(self._whole.between(a, b), arrived=time.perf_counter())

    def rows(self, parts: list[Rows]) -> pa.Table:
        """Rows as the table that the query promises; they must come in order of their ends."""
        passed = -(2**63)
        for part in parts:
            assert len(part) == 0 or part.end.min() >= passed, "a row came too late"
            passed = max(passed, part.passed)
        schema = self.query.result_schema(self.table.schema)
        labels = sorted(self.query.windows)
        moment = TimeType(schema.field("end").type)
        tables = []
        for part in filter(len, parts):
            columns: dict[str, Any] = {
                "window": pa.DictionaryArray.from_arrays(pa.array(part.label), pa.array(labels)),
                "seq": pa.array(part.seq),
                "start": moment.restore(part.start),
                "end": moment.restore(part.end),
            }
            for name in self.query.key:
                columns[name] = self.keys.column(name).combine_chunks().take(pa.array(part.key))
            for name, aggregate in self.query.aggregates.items():
                result = part.results[name]
                mask = None if result.valid is None else ~result.valid
                if isinstance(result.values, pa.Array):
                    at = pa.array(np.arange(len(part)), mask=mask)
                    columns[name] = result.values.take(at)
                elif aggregate.result_column is not None:
                    held = self.columns[aggregate.columns[aggregate.result_column]]
                    columns[name] = held.decode(result.values, result.valid)
                else:
                    columns[name] = pa.array(result.values, mask=mask)
            tables.append(pa.table([columns[f.name].cast(f.type) for f in schema], schema=schema))
        whole = pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()

        def place(row: int) -> Any:
            keys = [whole[name][row].as_py() for name in self.query.key]
            order = [whole[name][row].as_py() for name in ("end", "window", "seq")]
            return (*order, *((k is not None, k if k is not None else 0) for k in keys))

        order = sorted(range(whole.num_rows), key=place)
        return whole.take(pa.array(order, pa.int64()))


def expected(query: pf.Query, table: pa.Table) -> pa.Table:
    """The oracle's rows; a stream has no end at which `partial` could have an effect."""
    rows: pa.Table = without_partial(query).over(table, engine="oracle")
    return rows


def run(
    strategy: type[Strategy],
    fed: Fed,
    workers: int,
    cuts: list[int],
    pauses: Callable[[int], None] | None = None,
    watermarks: bool = False,
) -> tuple[pa.Table, Strategy]:
    """All rows of a stream, and the strategy as it is when it has ended."""
    parts: list[Rows] = []
    running = strategy(fed.query, fed.kinds, workers, pauses)
    try:
        for batch in fed.batches(cuts):
            running.feed(batch)
            if watermarks and len(batch):
                running.advance(int(batch.t[-1]))
            parts += running.take()
        running.finish()
        parts += running.take()
    finally:
        running.stop()
    return fed.rows(parts), running


def soon(running: Strategy, rows: int) -> list[Rows]:
    """Take rows until there are so many, or time is up."""
    parts: list[Rows] = []
    end = time.monotonic() + PATIENCE
    while sum(map(len, parts)) < rows and time.monotonic() < end:
        parts += running.take()
        time.sleep(0.001)
    return parts


@contextlib.contextmanager
def random_helping(r: random.Random) -> Iterator[None]:
    """PUs that are asleep are never helped, or always, or if their messages are very short."""
    before = tuning.short_message
    tuning.short_message = r.choice([0.0, 0.0001, 1.0])
    try:
        yield
    finally:
        tuning.short_message = before


def random_pauses(seed: int) -> Callable[[int], None]:
    """Sleeps now and then, for each PU in its own rhythm."""
    dice: dict[int, random.Random] = {}

    def pause(rank: int) -> None:
        mine = dice.setdefault(rank, random.Random(f"{seed} {rank}"))
        if mine.random() < 0.1:
            time.sleep(mine.choice([0.0, 0.0001, 0.001]))

    return pause


def threads() -> list[threading.Thread]:
    """The PUs' threads that run now."""
    names = tuple(f"paneflow-{name}-" for name in BY_NAME)
    return [thread for thread in threading.enumerate() if thread.name.startswith(names)]
