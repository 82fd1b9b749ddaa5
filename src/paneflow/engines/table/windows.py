"""Slices become windows: merge each operator's partials, lower each aggregate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paneflow.aggregates.aggregate import Aggregate, Constant, Kinds, Lowered, Multiset, Ordered
from paneflow.aggregates.holistic import Distinct, Mode, Quantiles, TopK
from paneflow.aggregates.operator import Array, Operator, Partials, share
from paneflow.engines.table.store import Store
from paneflow.merging import multiset
from paneflow.merging.contract import Merger
from paneflow.merging.flat_fat import FlatFat
from paneflow.merging.sba import Sba
from paneflow.planning.merge_choice import choose_merge
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.columns import Column
from paneflow.windows import Session, Sliding, Window

MERGERS: dict[str, type[Merger]] = {"sba": Sba, "flat_fat": FlatFat}


@dataclass(frozen=True, eq=False)
class Result:
    """One aggregate's values for many windows; `column` is their way back to a type, if any."""

    values: Array | pa.Array
    valid: Array | None
    column: Column | None = None


@dataclass(frozen=True, eq=False)
class Block:
    """Windows of one store: label, key, number, extent, and their results."""

    label: Array
    key: Array
    seq: Array
    start: Array
    end: Array
    results: dict[str, Result]


def merge_windows(
    store: Store,
    windows: Mapping[str, Window],
    labels: Mapping[str, int],
    aggregates: Mapping[str, Aggregate],
    kinds: Kinds,
    merge: str,
) -> Block:
    """All windows of a store's keys, with their results."""
    found = [store.ranges(window) for window in windows.values()]
    store.settle(found)
    every = Ranges.joined(found)
    lengths = [len(r) for r in found]
    merging = _Merging(store, every, lengths, kinds, merge)
    extents = [_extent(w, r, store) for w, r in zip(windows.values(), found, strict=True)]
    return Block(
        np.repeat(np.array([labels[label] for label in windows], np.int32), lengths),
        every.key + np.int32(store.part.first_key),
        every.seq,
        np.concatenate([start for start, _ in extents]),
        np.concatenate([end for _, end in extents]),
        merging.results(aggregates),
    )


def _extent(window: Window, ranges: Ranges, store: Store) -> tuple[Array, Array]:
    """Start and end of each window."""
    if isinstance(window, Sliding) or len(ranges) == 0:
        return window.extent(ranges.seq, ranges.seq, ranges.seq)
    first = store.part.t[ranges.lo]
    if isinstance(window, Session):
        # Rows that are slices may end later than the row behind them.
        return window.extent(ranges.seq, first, np.maximum.reduceat(store.part.last, ranges.lo))
    return window.extent(ranges.seq, first, store.part.t[ranges.hi - 1])


class _Merging:
    """The windows of one store, and how their partials are merged."""

    def __init__(
        self, store: Store, every: Ranges, lengths: list[int], kinds: Kinds, merge: str
    ) -> None:
        self._store = store
        self._every = every
        self._kinds = kinds
        self._merge = merge
        self._slices: tuple[Array, Array] | None = None
        ends = np.cumsum(lengths)
        self._spans = [
            slice(int(end) - length, int(end)) for end, length in zip(ends, lengths, strict=True)
        ]

    def results(self, aggregates: Mapping[str, Aggregate]) -> dict[str, Result]:
        wanted: dict[str, tuple[Operator, ...]] = {
            name: a.operators(self._kinds)
            for name, a in aggregates.items()
            if isinstance(a, Constant)
        }
        shared = share([op for ops in wanted.values() for op in ops])
        merged = {source: self._merged(source) for source, _ in dict(shared.values()).items()}
        made: dict[str, Result] = {}
        for name, aggregate in aggregates.items():
            if isinstance(aggregate, Constant):
                parts = []
                for op in wanted[name]:
                    source, which = shared[op]
                    parts.append(tuple(merged[source][k] for k in which))
                made[name] = self._constant(aggregate, wanted[name], parts)
            elif isinstance(aggregate, Multiset):
                made[name] = self._multiset(aggregate)
            else:
                assert isinstance(aggregate, Ordered)
                arrays, at = self._store.sequences(aggregate.columns)
                lowered = aggregate.lower_sequences(arrays, at(self._every.lo), at(self._every.hi))
                made[name] = Result(*lowered)
        return made

    def _constant(
        self, aggregate: Constant, operators: tuple[Operator, ...], parts: list[Partials]
    ) -> Result:
        n = self._store.counts(aggregate.columns, self._every.lo, self._every.hi)
        lowered: Lowered = aggregate.lower(n, parts, self._kinds)
        if aggregate.result_column is None:
            return Result(*lowered)
        last = len(operators[0].components) - 1
        return Result(*lowered, self._store.held(operators[0], last))

    def _merged(self, operator: Operator) -> Partials:
        """One operator's partials, merged for the windows of every label."""
        partials, at = self._store.partials(operator)
        if self._slices is None:
            self._slices = at(self._every.lo), at(self._every.hi)
        lo, hi = self._slices
        slices = len(partials[0])
        mergers: dict[str, Merger] = {}
        merged = []
        for span in self._spans:
            rows = span.stop - span.start
            name = self._merge
            if name == "auto":
                length = int((hi[span] - lo[span]).sum()) / max(rows, 1)
                name = choose_merge(rows, slices, length)
            if name not in mergers:
                mergers[name] = MERGERS[name](operator, partials)
            merged.append(mergers[name].merge(lo[span], hi[span]))
        if len(merged) == 1:
            return merged[0]
        return tuple(np.concatenate(columns) for columns in zip(*merged, strict=True))

    def _multiset(self, aggregate: Multiset) -> Result:
        runs = self._store.runs(aggregate.columns[0])
        lo, hi = runs.at(self._every.lo), runs.at(self._every.hi)
        n = hi - lo
        distinct = len(runs.values)

        def each(read: str, *arguments: object) -> Array:
            function = getattr(multiset, read)
            parts = [
                function(runs.ranks, runs.counts, lo[span], hi[span], *arguments)
                for span in self._spans
            ]
            return np.concatenate(parts)

        if isinstance(aggregate, Quantiles):
            qs = np.array(aggregate.qs)
            values = each("quantiles", runs.values.astype(np.float64), qs)
            if aggregate.single:
                return Result(values[:, 0], n > 0)
            counted = n > 0
            flat = pa.array(values[counted].ravel())
            return Result(_lists(flat, np.where(counted, len(qs), 0)), None)
        if isinstance(aggregate, Mode):
            return Result(runs.values[each("modes", distinct)], n > 0, runs.column)
        if isinstance(aggregate, Distinct):
            return Result(each("distincts", distinct), None)
        assert isinstance(aggregate, TopK)
        tops = each("tops", distinct, aggregate.k)
        present = tops >= 0
        values = runs.column.decode(runs.values[tops[present]])
        return Result(_lists(values, present.sum(axis=1)), None)


def _lists(values: pa.Array, lengths: Array) -> pa.Array:
    """Consecutive values as lists of given lengths; a list of none is null."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    marks = pa.array(offsets, mask=np.append(lengths == 0, False))
    return pa.ListArray.from_arrays(marks, values)
