"""The table engine from end to end: parts of the keys are answered side by side."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa

from paneflow.aggregates.aggregate import Constant
from paneflow.aggregates.values import Kind, kind_of
from paneflow.engines.table.cutting import layout_of
from paneflow.engines.table.from_events import EventStore
from paneflow.engines.table.from_slices import read_slices
from paneflow.engines.table.placing import can_be_placed, count_by_number, ordered, place_rows
from paneflow.engines.table.rows import assemble
from paneflow.engines.table.store import Store
from paneflow.engines.table.windows import (
    Block,
    is_scalar,
    merge_windows,
)
from paneflow.merging import MERGERS
from paneflow.planning.merge_choice import check_merge
from paneflow.slicing import threads
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds.counting import count_all, guard_rows
from paneflow.slicing.bounds.ranges import Ends
from paneflow.slicing.checking import whole
from paneflow.slicing.columns import read_column
from paneflow.slicing.events import Part, read_events
from paneflow.slicing.layout import check_cuttable, identity_of
from paneflow.slicing.slices import Slices
from paneflow.windows import Sliding, Window
from paneflow.windows.many_rows import MAX_ROWS, RowCount

if TYPE_CHECKING:
    from paneflow.query import Query

EVENTS_PER_PART = 250_000
FEWEST_PARTS = 4
"""Parts of a table that is worth several threads, whatever the number of cores."""
WINDOWS_PER_PART = 16
WORTH_A_THREAD = 100_000
ROWS_PER_PART = 10_000

Work = list[tuple[Store, Mapping[str, Window]]]
"""Stores, and the windows that are merged from each."""


def answer(
    query: Query,
    table: pa.Table,
    *,
    merge: str = "auto",
    max_rows: int | None = MAX_ROWS,
    stacklevel: int | None = None,
) -> pa.Table:
    """The rows of a query over a finite table, ordered by (end, window, seq, key).

    `stacklevel` says which call a warning is about; without it there are no warnings.
    """
    schema = query.result_schema(table.schema)
    check_laws(query, table.schema, merge)
    if table.num_rows == 0:
        return schema.empty_table()
    names = dict.fromkeys(c for a in query.aggregates.values() for c in a.columns)
    names |= dict.fromkeys(c for w in query.windows.values() for c in w.columns)
    events = read_events(table, query.key, query.time)
    level = None if stacklevel is None else stacklevel + 1
    guard_rows(query.windows, events.t, events.key_offsets, max_rows, stacklevel=level)
    arranged = Arranged(events, {name: read_column(table, name) for name in names})
    kinds = _kinds(query, table.schema)
    scalar = all(is_scalar(aggregate, kinds) for aggregate in query.aggregates.values())
    if scalar and can_be_placed(query.windows, arranged.events):
        return _placed(query, arranged, schema, merge)
    parts = arranged.events.parts(_parts(table.num_rows, len(query.windows)))
    work: Work = [(EventStore(part, arranged), query.windows) for part in parts]
    keys = arranged.events.keys
    del arranged, parts, events
    return _rows(query, keys, work, schema, table.schema, merge)


def _placed(query: Query, arranged: Arranged, schema: pa.Schema, merge: str) -> pa.Table:
    """The rows of a single sliding window, written to their places a few keys at a time."""
    ((label, window),) = query.windows.items()
    assert isinstance(window, Sliding)
    events = arranged.events
    kinds = {name: column.kind for name, column in arranged.columns.items()}

    def merged(part: Part) -> Block:
        store = EventStore(part, arranged)
        return merge_windows(store, query.windows, {label: 0}, query.aggregates, kinds, merge)

    n, several = len(events.t), _threads(len(events.t))
    with ThreadPoolExecutor(several) as pool:
        least, counts = count_by_number(window, events, several, pool)
        # Many rows to an event need smaller parts, so that a part stays small beside the input.
        small = int(counts.sum()) // max(ROWS_PER_PART, n // 32)
        blocks = ordered(merged, events.parts(max(_parts(n, 1), small)), pool)
        return place_rows(blocks, window, label, least, counts, events.keys, schema)


def count(query: Query, table: pa.Table) -> RowCount:
    """The number of rows a query gives; an upper bound unless all windows slide by time."""
    events = read_events(table, query.key, query.time)
    return count_all(query.windows, events.t, events.key_offsets)


def finish(
    query: Query,
    slices: Slices,
    *,
    merge: str = "auto",
    ends_in: Ends = (None, None),
    max_rows: int | None = MAX_ROWS,
) -> pa.Table:
    """The rows that slices amount to; of sliding windows only those that end in a span."""
    check_cuttable(query)
    slices.require(identity_of(query), query)
    query.check(slices.source)
    if not slices.whole:
        slices = whole(query, slices, layout_of(query, slices.source))
    schema = query.result_schema(slices.source)
    check_laws(query, slices.source, merge)
    if slices.table.num_rows == 0:
        return schema.empty_table()
    keys, stores = read_slices(query, slices, ends_in)
    for store, windows in stores:
        guard_rows(windows, store.part.t, store.part.offsets, max_rows, ends_in)
    return _rows(query, keys, [*stores], schema, slices.source, merge)


def _rows(
    query: Query,
    keys: pa.Table,
    work: Work,
    schema: pa.Schema,
    source: pa.Schema,
    merge: str,
) -> pa.Table:
    """Merge the windows of every store, side by side, and put all rows in order.

    Stores are dropped as soon as their windows are merged: rows may need the room.
    """
    kinds = _kinds(query, source)
    labels = {label: k for k, label in enumerate(sorted(query.windows))}
    several = _threads(sum(len(store.part.t) for store, _ in work))

    def merged(job: tuple[Store, Mapping[str, Window]]) -> Block:
        return merge_windows(*job, labels, query.aggregates, kinds, merge)

    with ThreadPoolExecutor(several) as pool:
        blocks = list(pool.map(merged, work))
        work.clear()
        return assemble(blocks, query.windows, labels, keys, schema, pool)


def _kinds(query: Query, source: pa.Schema) -> dict[str, Kind]:
    return {name: kind_of(type_, name) for name, type_ in query.types(source).items()}


def check_laws(query: Query, source: pa.Schema, merge: str) -> None:
    """Refuse a merge algorithm whose law an aggregate breaks, before anything is computed."""
    check_merge(merge)
    if merge == "auto":
        return
    kinds = _kinds(query, source)
    for aggregate in query.aggregates.values():
        if isinstance(aggregate, Constant):
            for operator in aggregate.operators(kinds):
                MERGERS[merge].check(operator)


def _parts(events: int, windows: int) -> int:
    """How many parts to split the keys into: enough for several cores, small enough for the cache.

    Every part asks for every window, so with many windows there are fewer parts. A part's size
    may decide how its sums are grouped, so it must not depend on the machine.
    """
    size = EVENTS_PER_PART * (1 + windows // WINDOWS_PER_PART)
    fewest = min(FEWEST_PARTS, 2 * (events // WORTH_A_THREAD))
    return max(1, fewest, events // size)


def _threads(events: int) -> int:
    return 1 if events < WORTH_A_THREAD else threads.available()
