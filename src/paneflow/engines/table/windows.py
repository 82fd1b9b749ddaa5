"""Slices become windows: merge each operator's partials, lower each aggregate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paneflow.aggregates._functions.roles import merging
from paneflow.aggregates.aggregate import Aggregate, Constant, Kinds, Multiset, Ordered
from paneflow.aggregates.defined import Defined
from paneflow.aggregates.holistic import Distinct, Mode, Quantiles, TopK
from paneflow.aggregates.lowering import Lowering
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.aggregates.sums import Sum
from paneflow.aggregates.values import Kind
from paneflow.compiling import in_any_order
from paneflow.engines.table.store import Store
from paneflow.merging import MERGERS, multiset
from paneflow.merging.flat_fat import FlatFat
from paneflow.planning.merge_choice import choose_merges
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.columns import Column
from paneflow.windows import Session, Sliding, Window


@dataclass(frozen=True, eq=False)
class Result:
    """One aggregate's values for many windows; `column` is their way back to a type, if any."""

    values: Array | pa.Array
    valid: Array | None
    column: Column | None = None


@dataclass(frozen=True, eq=False)
class Block:
    """Windows of one store: columns that place them, and their results.

    Columns are `key` and `seq`, and `label`, `start` and `end` unless there is only one window,
    whose extent follows from its number. The code that makes rows takes the columns out of a
    block, so that no column is held longer than needed.
    """

    columns: dict[str, Array]
    results: dict[str, Result]


def follows_from_number(windows: Mapping[str, Window]) -> bool:
    """Whether a window's number alone says when it starts and ends, and where its row belongs."""
    return len(windows) == 1 and all(isinstance(w, Sliding) for w in windows.values())


def is_scalar(aggregate: Aggregate, kinds: Kinds) -> bool:
    """Whether results are plain numbers, or ranks of texts, and not arrays of Arrow."""
    if isinstance(aggregate, Sum) and kinds[aggregate.columns[0]].family is Kind.DECIMAL:
        return False  # a sum of decimals has more digits than a number has room for
    if isinstance(aggregate, Multiset):
        return not isinstance(aggregate, TopK) and getattr(aggregate, "single", True)
    if isinstance(aggregate, Defined):
        return False  # a result may be anything that Python can give
    return isinstance(aggregate, Constant) and aggregate.scalar


def merge_windows(
    store: Store,
    windows: Mapping[str, Window],
    labels: Mapping[str, int],
    aggregates: Mapping[str, Aggregate],
    kinds: Kinds,
    merge: str,
) -> Block:
    """All windows of a store's keys, with their results."""
    found = store.ranges(list(windows.values()))
    every, spans = found.ranges, found.spans
    results = _Merging(store, every, spans, kinds, merge).results(aggregates)
    columns = {"key": every.key + np.int32(store.part.first_key), "seq": every.seq}
    if len(labels) > 1 or not follows_from_number(windows):
        label = np.repeat(
            np.array([labels[name] for name in windows], np.int32),
            [s.stop - s.start for s in spans],
        )
        start, end = _extents(list(windows.values()), every, spans, store)
        columns |= {"label": label, "start": start, "end": end}
    return Block(columns, results)


def _extents(
    windows: Sequence[Window], every: Ranges, spans: Sequence[slice], store: Store
) -> tuple[Array, Array]:
    """Start and end of the windows of every label."""
    start, end = np.empty_like(every.seq), np.empty_like(every.seq)
    for window, span in zip(windows, spans, strict=True):
        if isinstance(window, Sliding):
            # In place: there may be a thousand windows, or very many rows.
            np.multiply(every.seq[span], window.slide.value, out=start[span])
            start[span] += window.offset.value
            np.add(start[span], window.range.value, out=end[span])
        else:
            ranges = every.between(span.start, span.stop)
            start[span], end[span] = _extent_by_events(window, ranges, store)
    return start, end


def _extent_by_events(window: Window, ranges: Ranges, store: Store) -> tuple[Array, Array]:
    """Start and end of windows that take them from their events."""
    if len(ranges) == 0:
        return ranges.seq, ranges.seq
    first = store.part.t[ranges.lo]
    if isinstance(window, Session):
        # Rows that are slices may end later than the row behind them.
        return window.extent(ranges.seq, first, np.maximum.reduceat(store.part.last, ranges.lo))
    return window.extent(ranges.seq, first, store.part.t[ranges.hi - 1])


class _Merging:
    """The windows of one store, and how their partials are merged."""

    def __init__(
        self, store: Store, every: Ranges, spans: list[slice], kinds: Kinds, merge: str
    ) -> None:
        self._store = store
        self._every = every
        self._kinds = kinds
        self._merge = merge
        self._spans = spans
        self._slices: tuple[Array, Array] | None = None
        self._algorithms: dict[str, list[slice]] = {}

    def results(self, aggregates: Mapping[str, Aggregate]) -> dict[str, Result]:
        lowering = Lowering(aggregates, self._kinds)
        operators = lowering.operators
        merged = dict(zip(operators, in_any_order(self._merged, operators), strict=True))
        made: dict[str, Result] = {}
        for name, aggregate in aggregates.items():
            if isinstance(aggregate, Constant):
                n = self._store.counts(aggregate.columns, self._every.lo, self._every.hi)
                lowered = lowering.lower(name, n, merged)
                made[name] = Result(*lowered, self._held(name, lowering))
            elif isinstance(aggregate, Multiset):
                made[name] = self._multiset(aggregate)
            else:
                assert isinstance(aggregate, Ordered)
                arrays, at = self._store.sequences(aggregate.columns)
                lo, hi = at(self._every.lo), at(self._every.hi)
                made[name] = Result(*aggregate.lower_sequences(arrays, lo, hi))
        return made

    def _held(self, name: str, lowering: Lowering) -> Column | None:
        """The column whose values an aggregate gives back, if it does."""
        if lowering.aggregates[name].result_column is None:
            return None
        operator = lowering.first_operator(name)
        return self._store.held(operator, len(operator.components) - 1)

    def _merged(self, operator: Operator) -> Partials:
        """One operator's partials, merged for the windows of every label."""
        partials, at = self._store.partials(operator)
        if self._slices is None:
            self._slices = at(self._every.lo), at(self._every.hi)
            self._algorithms = self._by_algorithm(*self._slices, len(partials[0]))
        lo, hi = self._slices
        if len(self._spans) == 1:
            (name,) = self._algorithms
            return MERGERS[name](operator, partials).merge(lo, hi)
        merged = operator.empty(len(lo))
        with merging(operator, partials, lo, hi):
            for name, spans in self._algorithms.items():
                merger = MERGERS[name](operator, partials)
                for span in spans:
                    found = merger.merge(lo[span], hi[span])
                    for column, values in zip(merged, found, strict=True):
                        column[span] = values
        return merged

    def _by_algorithm(self, lo: Array, hi: Array, slices: int) -> dict[str, list[slice]]:
        """Which algorithm merges which rows."""
        ends = np.array([span.stop for span in self._spans])
        before = np.zeros(len(lo) + 1, np.int64)
        np.cumsum(hi - lo, out=before[1:])
        rows = np.diff(ends, prepend=0)
        lengths = np.diff(before[ends], prepend=0) / np.maximum(rows, 1)
        names = [self._merge] * len(ends)
        if self._merge == "auto":
            names = choose_merges(rows, lengths, slices)
        spans: dict[str, list[slice]] = {}
        for name, span in zip(names, self._spans, strict=True):
            chosen = spans.setdefault(name, [])
            if name == FlatFat.name and chosen and chosen[-1].stop == span.start:
                # A tree does not mind in which order it is asked: several windows are one call.
                chosen[-1] = slice(chosen[-1].start, span.stop)
            else:
                chosen.append(span)
        return spans

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
            values = each("quantiles", runs.column.reals(runs.values), qs)
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
        # Room for what the fullest window holds, not for what was asked.
        before = np.append(0, np.cumsum(runs.counts))
        most = int((before[hi] - before[lo]).max()) if len(lo) else 0
        tops = each("tops", distinct, min(aggregate.k, most))
        present = tops >= 0
        values = runs.column.decode(runs.values[tops[present]])
        return Result(_lists(values, present.sum(axis=1)), None)


def _lists(values: pa.Array, lengths: Array) -> pa.Array:
    """Consecutive values as lists of given lengths; a list of none is null."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    marks = pa.array(offsets, mask=np.append(lengths == 0, False))
    return pa.ListArray.from_arrays(marks, values)
