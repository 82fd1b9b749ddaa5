"""Rows of one sliding window, written straight to where they belong.

A query with a single sliding window can have hundreds of times as many rows as events. Then even
one more copy of them is too much. But the number of a window says where its row belongs: first
all windows are counted by number, then the windows of a few keys at a time are merged and their
rows written to their places, and nothing is held twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.engines.table.rows import as_result, in_schema, key_columns, window_columns
from paneflow.engines.table.windows import Block, Result, follows_from_number
from paneflow.slicing.bounds.by_time import count_sliding
from paneflow.slicing.columns import Column
from paneflow.slicing.events import Events
from paneflow.windows import Sliding, Window

FEW_NUMBERS = 65_536
AHEAD = 2
"""Blocks that are merged ahead of the one whose rows are being written."""


def can_be_placed(windows: Mapping[str, Window], events: Events) -> bool:
    """Whether there is one window, with rows enough that counting them first is worth it."""
    if not follows_from_number(windows):
        return False
    (window,) = windows.values()
    assert isinstance(window, Sliding)
    n, several = len(events.t), len(numbers(window, events))
    most = min((len(events.key_offsets) - 1) * several, n * window.overlap)
    return several <= n + FEW_NUMBERS and 2 * most > n


def numbers(window: Sliding, events: Events) -> range:
    """The numbers that windows of these events can have."""
    first, last = events.span()
    return range(window.assigned(first).start, window.assigned(last).stop)


def count_by_number(
    window: Sliding, events: Events, threads: int, pool: Executor
) -> tuple[int, Array]:
    """The least window number, and how many windows have each number."""
    every = numbers(window, events)
    count = partial(count_sliding, window, first=every.start, several=len(every))
    counts: Array = np.sum(list(pool.map(count, events.parts(threads))), axis=0)
    return every.start, counts


def ordered(work: Callable[[Any], Any], jobs: Sequence[Any], pool: Executor) -> Iterator[Any]:
    """Results in the order of the jobs, worked on side by side, but only a few ahead."""
    waiting: deque[Future[Any]] = deque()
    for job in jobs:
        waiting.append(pool.submit(work, job))
        if len(waiting) > AHEAD:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def place_rows(
    blocks: Iterator[Block],
    window: Sliding,
    label: str,
    least: int,
    counts: Array,
    keys: pa.Table,
    schema: pa.Schema,
) -> pa.Table:
    """One table from blocks that come in the order of their keys."""
    following = np.cumsum(counts) - counts
    total = int(counts.sum())
    key = np.empty(total, np.int32)
    results: dict[str, _Column] = {}
    for block in blocks:
        places = np.empty(len(block.columns["seq"]), np.int64)
        _take_places(block.columns["seq"], least, following, places)
        _write(block.columns["key"], places, key)
        for name, result in block.results.items():
            results.setdefault(name, _Column(total)).write(result, places)
    # Keys first: their codes are let go before the columns below need the room.
    columns = key_columns(key, keys)
    del key
    seq = np.repeat(np.arange(least, least + len(counts)), counts)
    alike = np.zeros(total, np.int32)
    columns |= window_columns(alike, [label], seq, window.extent(seq, seq, seq), schema)
    for name in list(results):
        columns[name] = results.pop(name).array()
    return in_schema(columns, schema)


class _Column:
    """An aggregate's column, as far as it is written."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._values: Array | None = None
        self._valid: Array | None = None
        self._held: Column | None = None

    def write(self, result: Result, places: Array) -> None:
        if self._values is None:
            self._values = np.empty(self._rows, result.values.dtype)
            self._held = result.column
        _write(result.values, places, self._values)
        if result.valid is not None and not result.valid.all():
            if self._valid is None:
                self._valid = np.ones(self._rows, np.bool_)
            _write(result.valid, places, self._valid)

    def array(self) -> pa.Array:
        assert self._values is not None
        return as_result(self._values, self._valid, self._held)


@compiled
def _take_places(seq, least, following, places):  # type: ignore[no-untyped-def]
    for i in range(len(seq)):
        places[i] = following[seq[i] - least]
        following[seq[i] - least] += 1


@compiled
def _write(values, places, out):  # type: ignore[no-untyped-def]
    for i in range(len(places)):
        out[places[i]] = values[i]
