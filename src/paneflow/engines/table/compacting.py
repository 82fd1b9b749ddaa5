"""Slices of several parts become fewer: those of one key and one stretch are merged into one.

What comes out is a table of slices like those that went in, and amounts to the same rows. A node
that collects slices of many parts sends on one where it got many.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.aggregates.values import kind_of
from paneflow.engines.table.cutting import written
from paneflow.engines.table.from_slices import SliceStore, read_slices
from paneflow.engines.table.store import Held, Positions
from paneflow.merging import MERGERS
from paneflow.planning.merge_choice import choose_merges
from paneflow.slicing.columns import Column
from paneflow.slicing.slices import Slices
from paneflow.slicing.times import time_type
from paneflow.windows import Session, Window

if TYPE_CHECKING:
    from paneflow.query import Query


def compact(query: Query, slices: Slices) -> pa.Table:
    """Slices of which no two are of one key and one stretch; sessions that touch are one.

    Of slices that are merged, those that come first in the table hold the earlier of events of
    equal time.
    """
    if slices.table.num_rows < 2:
        return slices.table
    kinds = {name: kind_of(type_, name) for name, type_ in query.types(slices.source).items()}
    moment = time_type(slices.source.field(query.time).type, query.time)
    keys, work = read_slices(query, slices, (None, None))
    blocks = []
    for store, windows in work:
        begins = _begins(store, windows)
        starts = store.part.t[begins]
        merged = _Merged(store, begins)
        blocks.append(written(query, store.slicing, keys, merged, begins, starts, kinds, moment))
    return pa.concat_tables(blocks).cast(slices.table.schema)


def _begins(store: SliceStore, windows: Mapping[str, Window]) -> Array:
    """The first of each run of slices that are merged into one."""
    (first, *_) = windows.values()
    if isinstance(first, Session):
        return store.ranges([first]).ranges.lo
    t, offsets = store.part.t, store.part.offsets
    fresh = np.ones(len(t), np.bool_)
    fresh[1:] = t[1:] != t[:-1]
    fresh[offsets[:-1][offsets[:-1] < len(t)]] = True
    return np.flatnonzero(fresh)


class _Merged:
    """A store of slices whose partials are merged from one begin to the next."""

    def __init__(self, store: SliceStore, begins: Array) -> None:
        self.part = store.part
        self._store = store
        self._begins = begins

    def counts(self, columns: tuple[str, ...], lo: Array, hi: Array) -> Array:
        return self._store.counts(columns, lo, hi)

    def partials(self, operator: Operator) -> tuple[Partials, object]:
        partials, at = self._store.partials(operator)
        lo, n = self._begins, len(self.part.t)
        hi = np.append(lo[1:], n)[: len(lo)]
        (name,) = choose_merges(np.array([len(lo)]), np.array([n / max(len(lo), 1)]), n)
        return MERGERS[name](operator, partials).merge(lo, hi), at

    def values(self, column: str) -> Held:
        return self._store.values(column)

    def sequences(self, columns: tuple[str, ...]) -> tuple[list[pa.Array], Positions]:
        return self._store.sequences(columns)

    def times(self, columns: tuple[str, ...]) -> Array:
        return self._store.times(columns)

    def held(self, operator: Operator, component: int) -> Column:
        return self._store.held(operator, component)
