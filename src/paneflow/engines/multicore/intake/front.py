"""The front of a stream: everything about arrival is dealt with here, once.

Sources, lateness and disorder end here. What leaves are batches of events in total order (time,
source, position in the source), all final: no later event comes before them. Every strategy
therefore sees one stream in one order.

The frontier of a source is the largest time it has shown. The watermark is the smallest frontier of
the sources that have neither ended nor fallen silent, minus the query's lateness. An event that
arrives behind the watermark may still find a window open, and then leaves in a batch of stragglers.
If it finds none it is late (`stragglers.py`). Both depend on what arrived before it, event by
event, and not on how events were cut into batches.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.aggregates.values import Kind, kind_of
from paneflow.compiling import compiled
from paneflow.engines.live.closed import horizon
from paneflow.engines.multicore.completeness import all_by_time
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.intake.as_pushed import Pushed, chosen_across
from paneflow.engines.multicore.intake.held_events import HeldEvents, SortedRun
from paneflow.engines.multicore.intake.key_codes import KeyCodes
from paneflow.engines.multicore.intake.stragglers import Stragglers
from paneflow.engines.multicore.ticks import BEFORE_ALL, END_OF_STREAM
from paneflow.errors import UnsupportedError
from paneflow.slicing.columns import Reader, numbers_of
from paneflow.slicing.ordering import is_sorted
from paneflow.slicing.times import time_type

if TYPE_CHECKING:
    from paneflow.query import Query


SILENT = END_OF_STREAM - 1
"""The frontier of a source that has fallen silent: it holds nothing back."""


class Added(NamedTuple):
    """Events that a design's own merging stage has got, as far as it could take them."""

    batch: pa.RecordBatch
    """The query's columns."""
    t: Array
    first: int
    """The position of the first of them in that stage."""
    merged: int
    """How many of them it has taken."""


class Arrival(NamedTuple):
    """What one push brought, or that a source has ended or fallen silent."""

    source: int
    batch: pa.RecordBatch | None
    """None if the source ends here, or falls silent."""
    places: list[int] | None
    """The positions of the query's columns in the batch; None if it has no other columns."""
    rows: int
    arrived: float
    due: bool
    """Whether it may have ended windows."""
    whole: Pushed | None = None
    """The events with all their columns, if late events are returned."""
    silent: bool = False
    """Whether the source falls silent here."""
    added: Added | None = None
    """What the pushing thread has given to a front that merges by itself."""
    span: tuple[int, int] | None = None
    """The first and the last time, if times are known never to decrease."""
    push: tuple[pa.RecordBatch, int] | None = None
    """The push that this is a piece of, and where it begins in it; None if it is the whole."""


class Behind(NamedTuple):
    """Events that came behind the watermark, and where it stood then."""

    batch: pa.RecordBatch
    t: Array
    source: Array
    limit: Array
    whole: list[pa.Table]
    """The same events with all their columns, if late events are returned."""


class Front:
    """Puts what arrives in order, and releases what is final."""

    def __init__(
        self, query: Query, schema: pa.Schema, sources: int, updates: bool = False
    ) -> None:
        """`updates`: rows are shown whenever they change, so it is noted which events are fresh."""
        self._query = query
        self._single = sources == 1
        self._lateness = query.lateness.value
        self._moment = time_type(schema.field(query.time).type, query.time).type
        self._frontiers = np.full(sources, BEFORE_ALL)
        self._watermark = np.array([BEFORE_ALL])
        self._asleep: dict[int, int] = {}
        """For each silent source the frontier it had before."""
        self._latest = BEFORE_ALL
        """The largest time shown by a source that has since ended or fallen silent."""
        self._held = HeldEvents()
        read = [c for w in query.windows.values() for c in w.columns]
        read += [c for a in query.aggregates.values() for c in a.columns]
        types = {name: schema.field(name).type for name in read}
        self._readers = {
            name: (schema.get_field_index(name), Reader(type_, name))
            for name, type_ in types.items()
            if kind_of(type_, name) is not Kind.TEXT
        }
        self.keys = KeyCodes(query.key, schema)
        self._stragglers = Stragglers(query, self._single)
        in_order = any(a.laws.in_order for a in query.aggregates.values())
        told_apart = not self._single and self._stragglers.possible and in_order
        self._shift = (sources - 1).bit_length() if told_apart else None
        """How many bits the source takes in a number that holds time and source."""
        self._behind: list[Behind] = []
        self._too_late: list[pa.Table] = []
        self._updates = updates
        self._fresh: list[tuple[Array, Array]] = []
        """Keys and times of events that have joined windows since they were last asked for."""
        self.late = 0

    @property
    def watermark(self) -> int:
        """Events before this time join only windows that are still open."""
        return int(self._watermark[0])

    @property
    def held(self) -> int:
        """Events that are waiting to become final."""
        return len(self._held)

    def late_events(self) -> list[pa.Table]:
        """The late events since the last call, as they were pushed, in the order of arrival."""
        late, self._too_late = self._too_late, []
        return late

    def fresh_events(self) -> tuple[Array, Array] | None:
        """Keys and times of events that have joined windows since the last call, if any have."""
        fresh, self._fresh = self._fresh, []
        if not fresh:
            return None
        return np.concatenate([key for key, _ in fresh]), np.concatenate([t for _, t in fresh])

    def held_events(self) -> Batch | None:
        """The events that are waiting to become final, in order."""
        run = self._held.all()
        if run is None:
            return None
        return self._read(run, self.keys.encode(run.batch), time.perf_counter())

    def take(self, arrivals: list[Arrival]) -> list[Batch | int]:
        """Take in what has arrived; returns the batches to feed and the watermarks, in order."""
        if not arrivals:
            return []
        before = self.watermark
        fresh: list[Arrival] = []
        for arrival in arrivals:
            if arrival.batch is not None and arrival.source not in self._asleep:
                fresh.append(arrival)
                continue
            self._let_in(fresh)
            fresh = []
            if arrival.batch is not None:
                self._come_back(arrival.source)
                fresh.append(arrival)
            else:
                self._pass_over(arrival)
        self._let_in(fresh)
        ending = next((a for a in arrivals if a.due), arrivals[0])
        final = self._final(ending.arrived)
        if self._behind:
            return self._with_stragglers(final, ending.arrived, before)
        if final is None:
            return [self.watermark] if self.watermark > before else []
        self._stragglers.note(final.key, final.t)
        return [final, self.watermark]

    def _come_back(self, source: int) -> None:
        """Wait again for a source that was silent."""
        self._frontiers[source] = self._asleep.pop(source)

    def _pass_over(self, arrival: Arrival) -> None:
        """Stop waiting for a source that has ended or fallen silent."""
        source = arrival.source
        reached = self._asleep.pop(source, int(self._frontiers[source]))
        if arrival.silent:
            self._asleep[source] = reached
        self._latest = max(self._latest, reached)
        self._frontiers[source] = SILENT if arrival.silent else END_OF_STREAM
        least = int(self._frontiers.min())
        if least == SILENT:
            self._watermark[0] = max(self.watermark, self._closing_all())
        elif least > BEFORE_ALL:
            wm = END_OF_STREAM if least == END_OF_STREAM else least - self._lateness
            self._watermark[0] = max(self.watermark, wm)

    def _closing_all(self) -> int:
        """The watermark that closes all windows of the events so far."""
        if self._latest == BEFORE_ALL:
            return BEFORE_ALL
        windows = self._query.windows.values()
        # A row that ends at the watermark itself leaves only if all windows are by time.
        return horizon(windows, self._latest) + (not all_by_time(windows))

    def _with_stragglers(
        self, final: Batch | None, arrived: float, before: int
    ) -> list[Batch | int]:
        """Final events, cut where stragglers have to be fed between them."""
        came, self._behind = self._behind, []
        batch = pa.concat_batches([each.batch for each in came])
        t = np.concatenate([each.t for each in came])
        source = np.concatenate([each.source for each in came])
        limit = np.concatenate([each.limit for each in came])
        key = self.keys.encode(batch)
        none = np.empty(0, np.int64)
        known = (none, none) if final is None else (final.key, final.t)
        groups = self._stragglers.grouped(key, t, limit, known, before)
        self._note_late([table for each in came for table in each.whole], groups.late)
        joining = groups.of >= 0
        if self._updates and joining.any():
            self._fresh.append((key[joining], t[joining]))
        steps: list[Batch | int] = []
        fed = 0
        fields = (t, groups.of) if self._single else (source, t, groups.of)
        order = np.lexsort(fields)
        starts = np.searchsorted(groups.of[order], np.arange(len(groups.cuts) + 1))
        for k, (cut, feed, watermark) in enumerate(
            zip(groups.cuts, groups.feeds, groups.watermarks, strict=True)
        ):
            if final is not None and cut > fed:
                steps.append(final.between(fed, cut))
            if watermark != BEFORE_ALL:
                steps.append(int(watermark))
            if final is not None and feed > cut:
                steps.append(final.between(cut, feed))
            fed = int(feed)
            mine = order[starts[k] : starts[k + 1]]
            of = source if self._single else source[mine]
            run = SortedRun(batch.take(pa.array(mine)), t[mine], of)
            steps.append(replace(self._read(run, key[mine], arrived), behind=True))
        if final is not None and fed < len(final):
            steps.append(final.between(fed, len(final)))
        return [*steps, self.watermark] if steps or self.watermark > before else []

    def _let_in(self, arrivals: list[Arrival]) -> None:
        if not arrivals:
            return
        batch = joined(arrivals)
        t = self._times(batch.column(0))
        source = self._sources_of(arrivals)
        behind, limit = self._arrive(t, source)
        if behind is not None:
            self._set_aside(arrivals, batch, t, source, behind, limit)
            batch, t = batch.filter(pa.array(~behind)), t[~behind]
            source = source if self._single else source[~behind]
        if self._updates and len(t):
            self._fresh.append((self.keys.encode(batch), t))
        self._held.add(batch, t, source)

    def _sources_of(self, arrivals: list[Arrival]) -> Array:
        """The source of each event; nothing if there is only one."""
        if self._single:
            return np.zeros(0, np.int64)
        return np.repeat([a.source for a in arrivals], [a.rows for a in arrivals])

    def _arrive(self, t: Array, source: Array) -> tuple[Array | None, Array]:
        """Move the watermark; which events are behind it, if any, and the watermarks they met."""
        limit = np.empty(len(t), np.int64)
        if self._single and t[0] >= self.watermark and is_sorted(t):
            self._frontiers[0] = max(self._frontiers[0], t[-1])
            self._watermark[0] = max(self.watermark, int(self._frontiers[0]) - self._lateness)
            return None, limit
        behind = np.zeros(len(t), np.bool_)
        arrive(t, source, self._frontiers, self._watermark, self._lateness, behind, limit)
        return behind if behind.any() else None, limit

    def _set_aside(
        self,
        arrivals: list[Arrival],
        batch: pa.RecordBatch,
        t: Array,
        source: Array,
        behind: Array,
        limit: Array,
    ) -> None:
        """Keep events behind the watermark apart, or count them as late if no window is open."""
        whole = [a.whole for a in arrivals if a.whole is not None]
        if not self._stragglers.possible:
            self._note_late(whole, behind)
            return
        of = source if self._single else source[behind]
        late = batch.filter(pa.array(behind))
        pushed = chosen_across(whole, behind)
        self._behind.append(Behind(late, t[behind], of, limit[behind], pushed))

    def _note_late(self, events: Iterable[Pushed], late: Array) -> None:
        """Count late events, and keep them if they are to be returned."""
        self.late += int(np.count_nonzero(late))
        if late.any():
            self._too_late += chosen_across(events, late)

    def _times(self, column: pa.Array) -> Array:
        """Times in ticks."""
        if column.type != self._moment:
            column = column.cast(self._moment)
        return numbers_of(column)

    def _final(self, arrived: float) -> Batch | None:
        # With several sources, another event of the watermark's own time may still come first.
        final = self._held.release(self.watermark + self._single)
        if final is None:
            return None
        return self._read(final, self.keys.encode(final.batch), arrived)

    def _read(self, run: SortedRun, key: Array, arrived: float) -> Batch:
        given = run.batch
        readers = self._readers.items()
        return Batch(
            key,
            run.t,
            given,
            {name: reader.read(given.column(at)) for name, (at, reader) in readers},
            arrived,
            order=None if self._shift is None else self._ordered(run),
        )

    def _ordered(self, run: SortedRun) -> Array:
        """Time and source as one number for each event."""
        assert self._shift is not None
        most = 2 ** (62 - self._shift)
        if len(run) and max(-int(run.t.min()), int(run.t.max())) >= most:
            raise UnsupportedError(
                f"times beyond {most} cannot be told apart by source in a stream of "
                f"{len(self._frontiers)} sources with aggregates that depend on the order of "
                f"events: use fewer sources, or a coarser unit of time"
            )
        order: Array = (run.t << self._shift) + run.source
        return order


def joined(arrivals: list[Arrival]) -> pa.RecordBatch:
    """The query's columns of all batches, concatenated."""
    batches: list[Any] = [a.batch for a in arrivals]
    places = arrivals[0].places
    if any(a.places is not places for a in arrivals):
        batches = [
            b if a.places is None else b.select(a.places)
            for a, b in zip(arrivals, batches, strict=True)
        ]
        places = None
    elif any(a.push is not None for a in arrivals):
        batches = [_whole(pieces) for pieces in _by_push(arrivals)]
    if len(batches) == 1:
        return batches[0] if places is None else batches[0].select(places)
    # As a table: to select from each batch, or to concatenate column by column, takes the
    # interpreter lock again and again.
    table = pa.Table.from_batches(batches)
    (whole,) = (table if places is None else table.select(places)).combine_chunks().to_batches()
    return whole


def _whole(pieces: list[Arrival]) -> pa.RecordBatch:
    """Pieces of one push that follow each other, without a copy."""
    if len(pieces) == 1 or pieces[0].push is None:
        return pieces[0].batch
    push, begin = pieces[0].push
    return push.slice(begin, sum(piece.rows for piece in pieces))


def _by_push(arrivals: list[Arrival]) -> Iterator[list[Arrival]]:
    """Arrivals in order; pieces of one push together."""
    pieces: list[Arrival] = []
    push = None
    for arrival in arrivals:
        if pieces and (arrival.push is None or arrival.push[0] is not push):
            yield pieces
            pieces = []
        push = None if arrival.push is None else arrival.push[0]
        pieces.append(arrival)
    yield pieces


@compiled
def arrive(t, source, frontiers, watermark, lateness, behind, limit):  # type: ignore[no-untyped-def]
    """Move frontiers and watermark event by event, and mark the events behind the watermark.

    `limit` gets the watermark that each of these met.
    """
    single = len(frontiers) == 1
    wm = watermark[0]
    for i in range(len(t)):
        if t[i] < wm:
            behind[i] = True
            limit[i] = wm
        s = 0 if single else source[i]
        before = frontiers[s]
        # An event behind the watermark moves a frontier only if its source was silent.
        if t[i] > before:
            frontiers[s] = t[i]
            if before == BEFORE_ALL or before - lateness <= wm:
                least = frontiers.min()
                if least > BEFORE_ALL:
                    wm = max(wm, least - lateness)
    watermark[0] = wm
