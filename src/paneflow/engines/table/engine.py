"""The table engine from end to end: parts of the keys are answered side by side."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa

from paneflow.aggregates.aggregate import Constant
from paneflow.aggregates.values import Kind, kind_of
from paneflow.engines.table.cutting import check_cuttable, identity_of
from paneflow.engines.table.from_events import EventStore
from paneflow.engines.table.from_slices import read_slices
from paneflow.engines.table.rows import assemble
from paneflow.engines.table.store import Store
from paneflow.engines.table.windows import merge_windows
from paneflow.merging import MERGERS
from paneflow.merging.flat_fat import FlatFat
from paneflow.merging.sba import Sba
from paneflow.planning import Plan
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.columns import read_column
from paneflow.slicing.events import read_events
from paneflow.slicing.slices import Slices
from paneflow.windows import Window

if TYPE_CHECKING:
    from paneflow.query import Query

EVENTS_PER_PART = 500_000
WINDOWS_PER_PART = 16
WORTH_A_THREAD = 100_000


def answer(query: Query, table: pa.Table, plan: Plan) -> pa.Table:
    """The rows of a query over a finite table."""
    schema = query.result_schema(table.schema)
    _check_laws(query, table.schema, plan.merge)
    if table.num_rows == 0:
        return schema.empty_table()
    names = dict.fromkeys(c for a in query.aggregates.values() for c in a.columns)
    names |= dict.fromkeys(c for w in query.windows.values() for c in w.columns)
    columns = {name: read_column(table, name) for name in names}
    events = read_events(table, query.key, query.time)
    arranged = Arranged(events, columns)
    parts = events.parts(_parts(len(events.t), len(query.windows)))
    stores = [EventStore(part, arranged) for part in parts]
    work = [(store, query.windows) for store in stores]
    return _rows(query, work, events.keys, schema, table.schema, plan)


def finish(query: Query, slices: Slices, plan: Plan) -> pa.Table:
    """The rows that slices amount to."""
    check_cuttable(query)
    slices.require(identity_of(query), query)
    schema = query.result_schema(slices.source)
    _check_laws(query, slices.source, plan.merge)
    if slices.table.num_rows == 0:
        return schema.empty_table()
    keys, work = read_slices(query, slices)
    return _rows(query, work, keys, schema, slices.source, plan)


def _rows(
    query: Query,
    work: Sequence[tuple[Store, Mapping[str, Window]]],
    keys: pa.Table,
    schema: pa.Schema,
    source: pa.Schema,
    plan: Plan,
) -> pa.Table:
    """Merge the windows of every store, side by side, and put all rows in order."""
    kinds = _kinds(query, source)
    labels = {label: k for k, label in enumerate(sorted(query.windows))}
    with ThreadPoolExecutor(_threads(sum(len(store.part.t) for store, _ in work))) as pool:
        blocks = pool.map(
            lambda job: merge_windows(job[0], job[1], labels, query.aggregates, kinds, plan.merge),
            work,
        )
        return assemble(list(blocks), query.windows, labels, keys, schema, pool)


def _kinds(query: Query, source: pa.Schema) -> dict[str, Kind]:
    return {name: kind_of(type_, name) for name, type_ in query.types(source).items()}


def _check_laws(query: Query, source: pa.Schema, merge: str) -> None:
    """Refuse a merge algorithm whose law an aggregate breaks, before anything is computed."""
    if merge in ("auto", Sba.name, FlatFat.name):
        return
    kinds = _kinds(query, source)
    for aggregate in query.aggregates.values():
        if isinstance(aggregate, Constant):
            for operator in aggregate.operators(kinds):
                MERGERS[merge](operator, operator.empty(0))


def _parts(events: int, windows: int) -> int:
    """How many parts to deal the keys into: enough for all cores, small enough for the cache.

    Every part asks for every window, so with many windows there are fewer parts.
    """
    size = EVENTS_PER_PART * (1 + windows // WINDOWS_PER_PART)
    return max(_threads(events), events // size)


def _threads(events: int) -> int:
    return 1 if events < WORTH_A_THREAD else os.cpu_count() or 1
