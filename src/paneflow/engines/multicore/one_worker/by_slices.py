"""Time windows of a stream, by slices: each event joins its slice once, each slice its windows.

Fresh events are folded into fresh slices, which are held in runs, each by columns and ordered by
(key, start); short runs are joined with their neighbours. Slices that two batches share are
combined, the earlier first, so that combines which need the order of events have it. Windows are
found and merged when the watermark reaches the end of one, for all keys at once, by the same
finders and mergers that finite tables use, and from no slices before the first of these windows.

Stragglers are folded and combined like others, whenever they come: `first`, `last` and their like
hold the time of what they hold. Only where a user's combine needs the order of events are these
kept beside their slices, and slices that stragglers fall into are folded anew.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from paneflow.aggregates._roles import merging
from paneflow.aggregates.aggregate import Aggregate, Constant, Kinds
from paneflow.aggregates.defined import Defined
from paneflow.aggregates.operator import TIME, Array, Operator, Partials, share
from paneflow.aggregates.values import Kind
from paneflow.compiling import compiled
from paneflow.engines.multicore.contract import Batch, Result, Rows
from paneflow.engines.multicore.one_worker.kept_events import Read, joined, keep
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.engines.multicore.tracing import lower_plainly
from paneflow.engines.multicore.tuning import tuning
from paneflow.merging import MERGERS
from paneflow.planning.merge_choice import choose_merges
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds.by_time import sliding
from paneflow.slicing.events import Events as Ordered, Part, Presence
from paneflow.slicing.fold import fold
from paneflow.slicing.layout import column_set
from paneflow.slicing.ordering import places_by_code, stable_order
from paneflow.windows import Sliding

if TYPE_CHECKING:
    from paneflow.query import Query


def sliceable(query: Query, kinds: Kinds) -> bool:
    """Whether all windows are by time, and all aggregates have partials that are no texts.

    A text is held by its rank among the texts of a batch, and another batch has other ranks.
    """
    return (
        all(isinstance(w, Sliding) for w in query.windows.values())
        and all(isinstance(a, Constant) for a in query.aggregates.values())
        and all(kinds[c] is not Kind.TEXT for a in query.aggregates.values() for c in a.columns)
    )


@dataclass(frozen=True, eq=False)
class Block:
    """Slices by columns, ordered by (key, start)."""

    key: Array
    start: Array
    counts: dict[tuple[str, ...], Array]
    """For each set of columns, how many events had a value in all of them."""
    partials: dict[Operator, Partials]

    def __len__(self) -> int:
        return len(self.key)

    def without(self, key: Array, start: Array) -> Block:
        """The slices but those with one of these keys and one of these starts."""
        return self.at(~(np.isin(self.key, key) & np.isin(self.start, start)))

    def at(self, chosen: Array) -> Block:
        """Some of the slices, by position or by mask."""
        return Block(
            self.key[chosen],
            self.start[chosen],
            {columns: n[chosen] for columns, n in self.counts.items()},
            {op: tuple(c[chosen] for c in parts) for op, parts in self.partials.items()},
        )


class SliceRun(NamedTuple):
    """Slices of a few pushes, and when the first and the last of them begin."""

    block: Block
    earliest: int
    latest: int

    @classmethod
    def of(cls, block: Block) -> SliceRun:
        """A run of some slices."""
        return cls(block, int(block.start.min()), int(block.start.max()))


class BySlices:
    """The open time windows of a stream."""

    def __init__(self, query: Query, kinds: Kinds, labels: Mapping[str, int]) -> None:
        self._labels = labels
        self._windows = {label: w for label, w in query.windows.items() if isinstance(w, Sliding)}
        self._aggregates = {n: a for n, a in query.aggregates.items() if isinstance(a, Constant)}
        self._kinds = kinds
        self._wanted = {name: a.operators(kinds) for name, a in self._aggregates.items()}
        self._shared = share([op for ops in self._wanted.values() for op in ops])
        self._operators = list(dict.fromkeys(source for source, _ in self._shared.values()))
        self._counted = list(
            dict.fromkeys(column_set(a.columns) for a in self._aggregates.values())
        )
        edges = sorted({edge for w in self._windows.values() for edge in w.edges})
        self._edges = np.array(edges, np.int64).reshape(-1, 2)
        self._before = BEFORE_ALL
        self._runs: list[SliceRun] = []
        self._fresh: list[Block] = []
        self._loose = 0
        self._ordered = any(map(needs_order, self._aggregates.values()))
        self._kept: list[Read] = []
        """What the slices were made of, where it may have to be put in order again."""

    @property
    def held(self) -> int:
        """How many slices are remembered."""
        return self._loose + sum(len(run.block) for run in self._runs)

    def copy(self) -> BySlices:
        """As it is now; slices themselves are never changed."""
        other = copy.copy(self)
        other._runs, other._fresh = list(self._runs), list(self._fresh)
        other._kept = list(self._kept)
        return other

    def take(self, events: Batch) -> None:
        """Fold events into slices."""
        came = Read(events.key, events.t, events.moments, events.columns)
        if self._ordered:
            keep(self._kept, came)
            if events.behind:
                came = self._again(came)
        block = self._folded(came)
        self._fresh.append(block)
        self._loose += len(block)
        if self._loose > tuning.loose_slices:
            self._join()

    def advance(self, watermark: int, arrived: float) -> Rows | None:
        """The windows that the watermark has reached, if there are any."""
        before, self._before = self._before, watermark
        closing = [
            w
            for w in self._windows.values()
            if _last_number(w, before) < _last_number(w, watermark)
        ]
        if watermark <= before or not closing:
            return None
        self._join()
        held = self._since(BEFORE_ALL if before == BEFORE_ALL else _first_start(closing, before))
        rows = None if held is None else self._rows(held, before, watermark, arrived)
        self._forget(watermark)
        return rows

    def _again(self, stragglers: Read) -> Read:
        """All events of the slices that stragglers fall into, in order; the slices are dropped."""
        key, start = np.unique(stragglers.key), np.unique(self._starts(stragglers.t))
        every = joined([kept.at(self._within(kept, key, start)) for kept in self._kept])
        blocks = [*(run.block for run in self._runs), *self._fresh]
        self._runs = []
        self._fresh = [block.without(key, start) for block in blocks]
        self._loose = sum(map(len, self._fresh))
        return every.at(np.argsort(every.moments, kind="stable"))

    def _within(self, kept: Read, key: Array, start: Array) -> Array:
        """Which events are in slices with one of these keys and one of these starts."""
        return np.isin(kept.key, key) & np.isin(self._starts(kept.t), start)

    def _starts(self, t: Array) -> Array:
        """Where the slices of events begin."""
        edges = [t - (t - phase) % step for phase, step in self._edges]
        starts: Array = np.maximum.reduce(edges)
        return starts

    def _folded(self, events: Read) -> Block:
        """The slices of a batch."""
        codes, n = events.key, len(events.t)
        highest = int(codes.max())
        distinct = None
        if highest > 4 * n + 1024:
            distinct, codes = np.unique(codes, return_inverse=True)
            highest = len(distinct) - 1
        places, counts = places_by_code(codes, highest + 1)
        offsets = np.append(0, np.cumsum(counts))
        ordered = Ordered(pa.table({}), offsets, places, events.t, events.t)
        arranged = Arranged(ordered, events.columns)
        t = ordered.arrange(events.t)
        moments = t if events.moments is events.t else ordered.arrange(events.moments)
        begins, starts, keys = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
        found = _cut(t, offsets, self._edges, begins, starts, keys)
        edges = np.append(begins[:found], n)
        key = keys[:found] if distinct is None else distinct[keys[:found]]
        presences = {c: presence_of(c, arranged) for c in self._counted}
        partials = {}
        for operator in self._operators:
            presence = presences.get(column_set(operator.columns))
            if presence is None:
                presence = presence_of(operator.columns, arranged)
            inputs = [
                presence.keep(moments if i.column == TIME else arranged.form(i.column, i.form))
                for i in operator.inputs
            ]
            places = presence.position(edges)
            partials[operator] = fold(operator, inputs, places)
        counted = {c: np.diff(p.position(edges)) for c, p in presences.items()}
        return Block(key, starts[:found].copy(), counted, partials)

    def _join(self) -> None:
        """Let what is fresh be a run, and let there be few runs."""
        if self._loose:
            fresh = self._fresh[0] if len(self._fresh) == 1 else self._once(_together(self._fresh))
            self._runs.append(SliceRun.of(fresh))
        self._fresh, self._loose = [], 0
        while len(self._runs) > 1:
            before, last = self._runs[-2:]
            n = len(last.block)
            if len(before.block) >= min(2 * n, tuning.longest_run - n):
                return
            self._runs[-2:] = [SliceRun.of(self._once(_together([before.block, last.block])))]

    def _since(self, first: int) -> Block | None:
        """The slices from a time on in order, each once, and perhaps some before it."""
        parts = []
        for run in self._runs:
            if run.latest < first:
                continue
            later = run.block.start >= first if run.earliest < first else None
            if later is not None and 2 * np.count_nonzero(later) < len(later):
                parts.append(run.block.at(later))
            else:
                parts.append(run.block)
        if not parts:
            return None
        block = parts[0] if len(parts) == 1 else self._once(_together(parts))
        if len(parts) == len(self._runs) and all(
            part is run.block for part, run in zip(parts, self._runs, strict=True)
        ):
            self._runs = [SliceRun.of(block)]
        return block

    def _once(self, block: Block) -> Block:
        order = stable_order([block.key, block.start], len(block))
        if order is not None:
            block = block.at(order)
        again = np.ones(len(block), np.bool_)
        again[1:] = (block.key[1:] != block.key[:-1]) | (block.start[1:] != block.start[:-1])
        lo = np.flatnonzero(again)
        if len(lo) == len(block):
            return block
        hi = np.append(lo[1:], len(block))
        return Block(
            block.key[lo],
            block.start[lo],
            {columns: np.add.reduceat(n, lo) for columns, n in block.counts.items()},
            {op: _merge("recalculate", op, parts, lo, hi) for op, parts in block.partials.items()},
        )

    def _rows(self, held: Block, before: int, to: int, arrived: float) -> Rows:
        """The windows that end after one watermark and by another."""
        heads = np.ones(len(held), np.bool_)
        heads[1:] = held.key[1:] != held.key[:-1]
        first = np.flatnonzero(heads)
        offsets = np.append(first, len(held))
        ordered = Ordered(pa.table({}), offsets, None, held.start, held.start)
        part = Part(ordered, 0, len(first))
        after = None if before == BEFORE_ALL else before
        found = sliding(list(self._windows.values()), part, (after, to))
        every = found.ranges
        label, start, end = (
            np.empty(len(every), np.int32),
            np.empty(len(every), np.int64),
            np.empty(len(every), np.int64),
        )
        for (name, window), span in zip(self._windows.items(), found.spans, strict=True):
            label[span] = self._labels[name]
            seq = every.seq[span]
            start[span], end[span] = window.extent(seq, seq, seq)
        merged = self._merged(held, every.lo, every.hi, found.spans)
        results = {}
        for name, aggregate in self._aggregates.items():
            before_each = np.append(0, np.cumsum(held.counts[column_set(aggregate.columns)]))
            n = before_each[every.hi] - before_each[every.lo]
            parts = []
            for operator in self._wanted[name]:
                source, which = self._shared[operator]
                parts.append(tuple(merged[source][k] for k in which))
            try:
                results[name] = Result(*aggregate.lower(n, parts, self._kinds))
            except Exception:
                lower_plainly(aggregate, n, parts)
                raise
        key = held.key[first][every.key]
        return Rows(label, key, every.seq, start, end, results, arrived, BEFORE_ALL)

    def _merged(
        self, held: Block, lo: Array, hi: Array, spans: list[slice]
    ) -> Mapping[Operator, Partials]:
        rows = np.array([span.stop - span.start for span in spans])
        lengths = np.array(
            [float((hi[s] - lo[s]).mean()) if s.stop > s.start else 0.0 for s in spans]
        )
        names = choose_merges(rows, lengths, len(held))
        merged = {}
        for operator, partials in held.partials.items():
            out = operator.empty(len(lo))
            for name, span in zip(names, spans, strict=True):
                made = _merge(name, operator, partials, lo[span], hi[span])
                for column, values in zip(out, made, strict=True):
                    column[span] = values
            merged[operator] = out
        return merged

    def _forget(self, watermark: int) -> None:
        """Drop slices that no open window begins before."""
        first = _first_start(self._windows.values(), watermark)
        runs = []
        for run in self._runs:
            if run.earliest >= first:
                runs.append(run)
            elif run.latest >= first:
                runs.append(SliceRun.of(run.block.at(run.block.start >= first)))
        self._runs = runs
        while self._kept and self._kept[0].t.max() < first:
            self._kept = self._kept[1:]


def needs_order(aggregate: Aggregate) -> bool:
    """Whether its partials must be combined in the order of events, whatever they hold."""
    return isinstance(aggregate, Defined) and not aggregate.laws.commutative


def _merge(name: str, operator: Operator, partials: Partials, lo: Array, hi: Array) -> Partials:
    with merging(operator, partials, lo, hi):
        return MERGERS[name](operator, partials).merge(lo, hi)


def _together(blocks: list[Block]) -> Block:
    """Blocks one behind the other."""
    counts = {
        columns: np.concatenate([b.counts[columns] for b in blocks]) for columns in blocks[0].counts
    }
    partials = {
        op: tuple(
            np.concatenate(column) for column in zip(*(b.partials[op] for b in blocks), strict=True)
        )
        for op in blocks[0].partials
    }
    key = np.concatenate([b.key for b in blocks])
    return Block(key, np.concatenate([b.start for b in blocks]), counts, partials)


def presence_of(columns: tuple[str, ...], arranged: Arranged) -> Presence:
    """Which events have a value in all of some columns."""
    masks = [m for m in map(arranged.valid, columns) if m is not None]
    return Presence(np.logical_and.reduce(masks) if masks else None)


def _first_start(windows: Iterable[Sliding], watermark: int) -> int:
    """When the first window begins that ends after a watermark."""
    return min(w.offset.value + (_last_number(w, watermark) + 1) * w.slide.value for w in windows)


def _last_number(window: Sliding, watermark: int) -> int:
    """The number of the last window that ends by a watermark."""
    return (watermark - window.offset.value - window.range.value) // window.slide.value


@compiled
def _cut(t, offsets, edges, begins, starts, keys):  # type: ignore[no-untyped-def]
    """Where slices begin among events in order of (key, time), and the edge that each begins at."""
    found = 0
    for k in range(len(offsets) - 1):
        until = 0
        for i in range(offsets[k], offsets[k + 1]):
            if i > offsets[k] and t[i] < until:
                continue
            start = t[i] - (t[i] - edges[0, 0]) % edges[0, 1]
            until = start + edges[0, 1]
            for e in range(1, len(edges)):
                edge = t[i] - (t[i] - edges[e, 0]) % edges[e, 1]
                start = max(start, edge)
                until = min(until, edge + edges[e, 1])
            begins[found] = i
            starts[found] = start
            keys[found] = k
            found += 1
    return found
