"""Time windows of a stream, by slices: each event joins its slice once, each slice its windows.

Fresh events are folded into fresh slices, which are kept in runs (`slice_runs.py`). When the
watermark reaches the end of a window, it closes for all keys at once. Windows that overlap a lot
are kept merged from one watermark to the next (`kept_windows.py`), and only what enters and leaves
is merged. Others, and any that close in large numbers, are merged anew from their slices, by the
finders and mergers that finite tables use. `planning/merge_choice.py` decides.

Stragglers are folded and combined like others, whenever they come: `first`, `last` and their like
hold the time of what they hold. Only where a user's combine needs the order of events are these
kept beside their slices, and slices that stragglers fall into are folded anew.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paneflow.aggregates.aggregate import Aggregate, Constant, Kinds
from paneflow.aggregates.defined import Defined
from paneflow.aggregates.lowering import Lowering
from paneflow.aggregates.operator import Array, Operator, Partials
from paneflow.aggregates.values import Kind
from paneflow.compiling import compiled
from paneflow.engines.multicore.contract import Batch, Result, Rows
from paneflow.engines.multicore.one_worker.folding import folded
from paneflow.engines.multicore.one_worker.kept_events import Read, joined, keep
from paneflow.engines.multicore.one_worker.slice_runs import Block, SliceRuns, merge
from paneflow.engines.multicore.one_worker.sliding_windows import SlidingWindows
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.planning.merge_choice import StreamMerge, choose_merges, choose_stream_merge
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds.by_time import sliding
from paneflow.slicing.ends import first_open, last_ended
from paneflow.slicing.events import Events as Ordered, Part
from paneflow.slicing.ordering import places_by_code
from paneflow.windows import Sliding

if TYPE_CHECKING:
    from paneflow.query import Query


def timed_by_slices(query: Query, kinds: Kinds) -> dict[str, Sliding]:
    """The windows of a query that are answered here: by time, if partials hold no texts.

    A text is held by its rank among the texts of a batch, and another batch has other ranks.
    """
    foldable = all(
        isinstance(a, Constant) and all(kinds[c] is not Kind.TEXT for c in a.columns)
        for a in query.aggregates.values()
    )
    timed = {label: w for label, w in query.windows.items() if isinstance(w, Sliding)}
    return timed if foldable else {}


def merge_reasons(query: Query, kinds: Kinds, asked: str = "auto") -> list[str]:
    """By what the slices of each time window are merged, for which aggregates, and why."""
    lowering = Lowering(query.aggregates, kinds)
    reasons = []
    for label, window in timed_by_slices(query, kinds).items():
        users: dict[StreamMerge, list[str]] = {}
        for name in lowering.aggregates:
            sources: list[Operator | None] = [*lowering.sources(name)]
            for operator in sources or [None]:
                chosen = choose_stream_merge(window, operator, asked=asked)
                users.setdefault(chosen, []).append(name)
        for chosen, names in users.items():
            served = ", ".join(dict.fromkeys(names))
            reasons.append(f"{label} is merged by {chosen.name} for {served}: {chosen.reason}")
    return reasons


class BySlices:
    """The open time windows of a stream."""

    def __init__(
        self, query: Query, kinds: Kinds, labels: Mapping[str, int], asked: str = "auto"
    ) -> None:
        """`asked`: the algorithm to merge with, or auto."""
        self._lowering = Lowering(query.aggregates, kinds)
        self._asked = asked
        self._windows = [
            SlidingWindows(labels[name], window, self._lowering, asked)
            for name, window in query.windows.items()
            if isinstance(window, Sliding)
        ]
        edges = sorted({edge for each in self._windows for edge in each.window.edges})
        self._edges = np.array(edges, np.int64).reshape(-1, 2)
        self._before = BEFORE_ALL
        self._slices = SliceRuns()
        self._ordered = any(map(needs_order, query.aggregates.values()))
        self._kept: list[Read] = []
        """What the slices were made of, where it may have to be put in order again."""

    @property
    def held(self) -> int:
        """How many slices are remembered."""
        return len(self._slices)

    def copy(self) -> BySlices:
        """As it is now; what is kept merged is not copied, but can be built again."""
        other = copy.copy(self)
        other._slices, other._kept = self._slices.copy(), list(self._kept)
        other._windows = [each.copy() for each in self._windows]
        return other

    def take(self, events: Batch) -> None:
        """Fold events into slices."""
        came = Read(events.key, events.t, events.moments, events.columns)
        self.take_read(came, events.behind)

    def take_read(self, came: Read, behind: bool) -> None:
        """Fold events into slices; `behind` says whether they are stragglers."""
        if self._ordered:
            keep(self._kept, came)
            if behind:
                came = self._again(came)
        block = self._folded(came)
        self._slices.put(block)
        if behind:
            self._join_behind(block, block.start)

    def put(self, block: Block) -> None:
        """Take slices that were folded elsewhere, in order and each once; none is of stragglers."""
        self._slices.put(block)

    def advance(self, watermark: int, arrived: float) -> list[Rows]:
        """The windows that the watermark has reached."""
        before, self._before = self._before, watermark
        if watermark <= before:
            return []
        rows = []
        anew = []
        for each in self._windows:
            if last_ended(each.window, before) < last_ended(each.window, watermark):
                if each.keeps(before, watermark):
                    rows += self._from_kept(each, before, watermark, arrived)
                else:
                    each.drop()
                    anew.append(each)
        if anew:
            rows += self._anew(anew, before, watermark, arrived)
        if rows or anew:
            self._forget(watermark)
        return rows

    def _join_behind(self, block: Block, behind: Array) -> None:
        """Let slices of stragglers join windows; `behind` is when those of all stragglers begin."""
        for each in self._windows:
            if each.is_behind(behind, self._before):
                each.take_behind(block, self._before, replaced=self._ordered)

    def _again(self, stragglers: Read) -> Read:
        """All events of the slices that stragglers fall into, in order; the slices are dropped."""
        key, start = np.unique(stragglers.key), np.unique(self._starts(stragglers.t))
        every = joined([kept.at(self._within(kept, key, start)) for kept in self._kept])
        self._slices.drop(key, start)
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
        key = keys[:found] if distinct is None else distinct[keys[:found]]
        edges = np.append(begins[:found], n)
        counted, partials = folded(self._lowering, arranged, moments, edges)
        return Block(key, starts[:found].copy(), counted, partials)

    def _from_kept(
        self, each: SlidingWindows, before: int, watermark: int, arrived: float
    ) -> list[Rows]:
        """The windows of a label that end after one watermark and by another."""
        closed = each.slide(self._slices, before, watermark)
        if len(closed.key) == 0:
            return []
        results = {
            name: Result(*self._lowering.lower(name, closed.counts[columns], closed.merged))
            for name, columns in self._counted_by_name()
        }
        label = np.full(len(closed.key), each.label, np.int32)
        start, end = each.window.extent(closed.seq, closed.seq, closed.seq)
        rows = Rows(label, closed.key, closed.seq, start, end, results, arrived, BEFORE_ALL)
        return [rows]

    def _counted_by_name(self) -> list[tuple[str, tuple[str, ...]]]:
        """The aggregates, and the columns that an event must have for them."""
        return [(name, self._lowering.columns(name)) for name in self._lowering.aggregates]

    def _anew(
        self, windows: list[SlidingWindows], before: int, to: int, arrived: float
    ) -> list[Rows]:
        """The same of several labels, from slices alone."""
        first = BEFORE_ALL
        if before != BEFORE_ALL:
            first = min(first_open(each.window, before) for each in windows)
        held = self._slices.since(first)
        if held is None:
            return []
        heads = np.ones(len(held), np.bool_)
        heads[1:] = held.key[1:] != held.key[:-1]
        begins = np.flatnonzero(heads)
        offsets = np.append(begins, len(held))
        ordered = Ordered(pa.table({}), offsets, None, held.start, held.start)
        part = Part(ordered, 0, len(begins))
        after = None if before == BEFORE_ALL else before
        found = sliding([each.window for each in windows], part, (after, to))
        every = found.ranges
        label, start, end = (
            np.empty(len(every), np.int32),
            np.empty(len(every), np.int64),
            np.empty(len(every), np.int64),
        )
        for each, span in zip(windows, found.spans, strict=True):
            label[span] = each.label
            seq = every.seq[span]
            start[span], end[span] = each.window.extent(seq, seq, seq)
        merged = self._merged(held, every.lo, every.hi, found.spans)
        results = {}
        for name, columns in self._counted_by_name():
            before_each = np.append(0, np.cumsum(held.counts[columns]))
            n = before_each[every.hi] - before_each[every.lo]
            results[name] = Result(*self._lowering.lower(name, n, merged))
        key = held.key[begins][every.key]
        return [Rows(label, key, every.seq, start, end, results, arrived, BEFORE_ALL)]

    def _merged(
        self, held: Block, lo: Array, hi: Array, spans: list[slice]
    ) -> Mapping[Operator, Partials]:
        rows = np.array([span.stop - span.start for span in spans])
        lengths = np.array(
            [float((hi[s] - lo[s]).mean()) if s.stop > s.start else 0.0 for s in spans]
        )
        names = self._merges(rows, lengths, len(held))
        merged = {}
        for operator, partials in held.partials.items():
            out = operator.empty(len(lo))
            for name, span in zip(names, spans, strict=True):
                made = merge(name, operator, partials, lo[span], hi[span])
                for column, values in zip(out, made, strict=True):
                    column[span] = values
            merged[operator] = out
        return merged

    def _merges(self, rows: Array, lengths: Array, slices: int) -> list[str]:
        """The algorithm for each label: its windows are so many, of so many slices each."""
        if self._asked == "auto":
            return choose_merges(rows, lengths, slices)
        return [self._asked] * len(rows)

    def _forget(self, watermark: int) -> None:
        """Drop slices that no open window begins before."""
        first = min(first_open(each.window, watermark) for each in self._windows)
        self._slices.forget(first)
        while self._kept and self._kept[0].t.max() < first:
            self._kept = self._kept[1:]


def needs_order(aggregate: Aggregate) -> bool:
    """Whether its partials must be combined in the order of events, whatever they hold."""
    return isinstance(aggregate, Defined) and not aggregate.laws.commutative


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
