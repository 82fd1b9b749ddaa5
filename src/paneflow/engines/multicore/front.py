"""The front of a stream: everything that is about arrival happens here, once.

Sources, lateness and order end here. What leaves are batches of events in total order (time,
source, position in the source), all final: no later event will come before them. So whoever
works on them, whatever the strategy, sees one stream in one order.

The frontier of a source is the largest time it has shown. The watermark is the least frontier of
the sources that have not ended, less the query's lateness. An event that comes when the watermark
has passed it is late, and counted; whether it is late depends on what came before it, event by
event, and not on how events were cut into batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.aggregates.values import Kind, kind_of
from paneflow.compiling import compiled
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.held_events import HeldEvents
from paneflow.engines.multicore.keys import KeyCodes
from paneflow.engines.multicore.passing import FOREVER, NEVER
from paneflow.slicing.columns import Column, Reader, numbers_of
from paneflow.slicing.ordering import is_sorted
from paneflow.slicing.times import time_type

if TYPE_CHECKING:
    from paneflow.query import Query


class Arrival(NamedTuple):
    """What one push brought, or that a source has ended."""

    source: int
    batch: pa.RecordBatch | None
    """None if the source ends here."""
    places: list[int] | None
    """Where the query's columns are among those of the batch; None: it has no others."""
    rows: int
    arrived: float
    due: bool
    """Whether windows may have ended by it."""


@dataclass(frozen=True, eq=False)
class Events(Batch):
    """A batch that also has the events as they came, and its columns as aggregates read them.

    `arrived` is when the first of the pushes that it was made of came by which windows may have
    ended; if there is none, the first of them.
    """

    given: pa.RecordBatch
    """The query's columns."""
    read: dict[str, Column]
    """All but the texts among the columns of windows and aggregates."""
    keys: KeyCodes

    @property
    def table(self) -> pa.Table:
        """The events as a table."""
        return pa.Table.from_batches([self.given])

    def chosen(self, mask: Array | None) -> Events:
        """Some of the events; all of them (None) are not copied."""
        if mask is None:
            return self
        read = {
            name: replace(
                column,
                values=column.values[mask],
                valid=None if column.valid is None else column.valid[mask],
            )
            for name, column in self.read.items()
        }
        return Events(
            key=self.key[mask],
            t=self.t[mask],
            columns={name: column.values for name, column in read.items()},
            valid={name: c.valid for name, c in read.items() if c.valid is not None},
            arrived=self.arrived,
            given=self.given.filter(pa.array(mask)),
            read=read,
            keys=self.keys,
        )


class Front:
    """Puts what arrives in order, and lets go of what is final."""

    def __init__(self, query: Query, schema: pa.Schema, sources: int) -> None:
        self._query = query
        self._single = sources == 1
        self._lateness = query.lateness.value
        self._moment = time_type(schema.field(query.time).type, query.time).type
        self._frontiers = np.full(sources, NEVER)
        self._watermark = np.array([NEVER])
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
        self.late = 0

    @property
    def watermark(self) -> int:
        """No event before this time will be let in."""
        return int(self._watermark[0])

    @property
    def held(self) -> int:
        """Events that are waiting to become final."""
        return len(self._held)

    def take(self, arrivals: list[Arrival]) -> Events | None:
        """Let in what has arrived; the events that are final now, if there are any."""
        if not arrivals:
            return None
        fresh: list[Arrival] = []
        for arrival in arrivals:
            if arrival.batch is not None:
                fresh.append(arrival)
                continue
            self._let_in(fresh)
            fresh = []
            self._frontiers[arrival.source] = FOREVER
            least = int(self._frontiers.min())
            if least > NEVER:
                wm = FOREVER if least == FOREVER else least - self._lateness
                self._watermark[0] = max(self.watermark, wm)
        self._let_in(fresh)
        ending = next((a for a in arrivals if a.due), arrivals[0])
        return self._final(ending.arrived)

    def _let_in(self, arrivals: list[Arrival]) -> None:
        if not arrivals:
            return
        batch = _joined(arrivals)
        t = self._times(batch.column(0))
        if self._single:
            source = np.zeros(0, np.int64)
        else:
            source = np.repeat([a.source for a in arrivals], [a.rows for a in arrivals])
        if self._single and t[0] >= self.watermark and is_sorted(t):
            self._frontiers[0] = max(self._frontiers[0], t[-1])
            self._watermark[0] = max(self.watermark, int(self._frontiers[0]) - self._lateness)
        else:
            late = np.zeros(len(t), np.bool_)
            _arrive(t, source, self._frontiers, self._watermark, self._lateness, late)
            missed = int(np.count_nonzero(late))
            if missed:
                self.late += missed
                batch, t = batch.filter(pa.array(~late)), t[~late]
                source = source if self._single else source[~late]
        self._held.add(batch, t, source)

    def _times(self, column: pa.Array) -> Array:
        """Times in ticks."""
        if column.type != self._moment:
            column = column.cast(self._moment)
        return numbers_of(column)

    def _final(self, arrived: float) -> Events | None:
        # Of one source nothing can come between events of one time; of several it can.
        final = self._held.release(self.watermark + self._single)
        if final is None:
            return None
        given = final.batch
        codes = self.keys.encode(given)
        read = {name: reader.read(given.column(at)) for name, (at, reader) in self._readers.items()}
        return Events(
            key=codes,
            t=final.t,
            columns={name: column.values for name, column in read.items()},
            valid={name: c.valid for name, c in read.items() if c.valid is not None},
            arrived=arrived,
            given=given,
            read=read,
            keys=self.keys,
        )


def _joined(arrivals: list[Arrival]) -> pa.RecordBatch:
    """The query's columns of all batches, one behind the other."""
    batches: list[Any] = [a.batch for a in arrivals]
    places = arrivals[0].places
    if any(a.places is not places for a in arrivals) or _has_more(batches[0], places):
        batches = [
            b if a.places is None else b.select(a.places)
            for a, b in zip(arrivals, batches, strict=True)
        ]
        places = None
    joined = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    return joined if places is None else joined.select(places)


def _has_more(batch: pa.RecordBatch, places: list[int] | None) -> bool:
    """Whether it has columns that nobody asked for, which would be joined in vain."""
    return places is not None and len(places) < batch.num_columns


@compiled
def _arrive(t, source, frontiers, watermark, lateness, late):  # type: ignore[no-untyped-def]
    """Move frontiers and watermark event by event, and mark what comes behind the watermark."""
    single = len(frontiers) == 1
    wm = watermark[0]
    for i in range(len(t)):
        if t[i] < wm:
            late[i] = True
            continue
        s = 0 if single else source[i]
        before = frontiers[s]
        if t[i] > before:
            frontiers[s] = t[i]
            if before == NEVER or before - lateness <= wm:
                least = frontiers.min()
                if least > NEVER:
                    wm = max(wm, least - lateness)
    watermark[0] = wm
