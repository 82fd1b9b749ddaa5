"""Slices of an unbounded stream: what is still open, what has closed, what came too late.

`Live` is the whole memory of a stream of time windows and sessions. It takes slices as they come
and a watermark, gives the rows of the windows that have closed, and drops slices that no open
window needs. Whoever holds it keeps it in what way suits: a Spark state store, a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.operator import Array
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds.by_time import session
from paneflow.slicing.events import order_events
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.slices import LAST, ROWS, SLICING, START, TIME_SLICES, Slices
from paneflow.windows import Session, Sliding

if TYPE_CHECKING:
    from paneflow.query import Query

NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Advance:
    """What a step of the watermark brought."""

    rows: pa.Table
    kept: pa.Table
    """The slices that are still needed."""
    late: int
    """Events of which every window had been emitted before they came."""


class Live:
    """The open windows of a stream, for some of its keys."""

    def __init__(self, query: Query, layout: pa.Schema) -> None:
        self._query = query
        self._layout = layout
        self._sliding = [w for w in query.windows.values() if isinstance(w, Sliding)]
        self._sessions = {str(w): w for w in query.windows.values() if isinstance(w, Session)}

    def advance(
        self, held: pa.Table, fresh: pa.Table, before: int | None, watermark: int | None
    ) -> Advance:
        """Take fresh slices, and move the watermark from `before`."""
        empty = self._query.finish(self._slices(held.slice(0, 0)))
        late = []
        if before is not None and self._sliding:
            fresh, missed = self._in_time(fresh, before)
            late.append(missed)
        slices = pa.concat_tables([held, fresh]) if fresh.num_rows else held
        if before is not None and self._sessions:
            closed = self._closed_sessions(slices, before)
            late += [_events(slices, lost) for lost in closed]
            slices = slices.filter(pa.array(~np.logical_or.reduce(closed)))
        # An event is in a slice of every slicing. It is late if it is late in all of them.
        missed = min(late, default=0)
        if watermark is None or (before is not None and watermark <= before):
            return Advance(empty, slices, missed)
        rows = self._closing(slices, before, watermark)
        return Advance(rows, self.still_open(slices, watermark), missed)

    def still_open(self, slices: pa.Table, watermark: int) -> pa.Table:
        """Slices without those whose windows have all closed."""
        over = self._passed(slices, watermark)
        for closed in self._closed_sessions(slices, watermark):
            over |= closed
        return slices.filter(pa.array(~over)) if over.any() else slices

    def _slices(self, table: pa.Table) -> Slices:
        return Slices(table.replace_schema_metadata(self._layout.metadata))

    def _in_time(self, fresh: pa.Table, before: int) -> tuple[pa.Table, int]:
        """Fresh slices with an open window, and how many events have none."""
        passed = self._passed(fresh, before)
        # What lies in the gap between two windows is in none, and not late for any.
        late = passed & (self._last_end(fresh) > NEVER)
        return fresh.filter(pa.array(~passed)), _events(fresh, late)

    def _passed(self, slices: pa.Table, watermark: int) -> Array:
        """Time slices whose last window has ended."""
        ended = self._last_end(slices) <= watermark
        passed: Array = _equal(slices, SLICING, TIME_SLICES) & ended
        return passed

    def _last_end(self, slices: pa.Table) -> Array:
        """When the last window that a time slice is in ends."""
        start = _ticks(slices, START)
        ends = np.full(len(start), NEVER)
        for window in self._sliding:
            offset, slide = window.offset.value, window.slide.value
            latest = offset + (start - offset) // slide * slide + window.range.value
            np.maximum(ends, np.where(latest > start, latest, NEVER), out=ends)
        return ends

    def _closed_sessions(self, slices: pa.Table, watermark: int) -> list[Array]:
        """For each session window, which slices are of sessions that have closed."""
        return [self._closed(slices, *one, watermark) for one in self._sessions.items()]

    def _closed(self, slices: pa.Table, label: str, window: Session, watermark: int) -> Array:
        closed = np.zeros(slices.num_rows, np.bool_)
        rows = np.flatnonzero(_equal(slices, SLICING, label))
        if len(rows):
            mine = slices.take(pa.array(rows))
            codes, keys = encode_keys(mine, tuple(f"key:{name}" for name in self._query.key))
            events = order_events(codes, keys, _ticks(mine, START), _ticks(mine, LAST))
            (part,) = events.parts(1)
            found = session(window, part, Arranged(events, {}))
            last = np.maximum.reduceat(part.last, found.lo)
            done = np.repeat(last + window.gap.value < watermark, found.hi - found.lo)
            closed[rows[events.arrange(np.arange(len(rows)))[done]]] = True
        return closed

    def _closing(self, slices: pa.Table, before: int | None, watermark: int) -> pa.Table:
        """The rows of windows that close between two watermarks."""
        needed = _ticks(slices, START) < watermark
        rows = self._query.finish(
            self._slices(slices.filter(pa.array(needed))), after=before, until=watermark
        )
        if not self._sessions:
            return rows
        by_session = np.zeros(rows.num_rows, np.bool_)
        for label, window in self._query.windows.items():
            if isinstance(window, Session):
                by_session |= _equal(rows, "window", label)
        open_ = by_session & (_ticks(rows, "end") >= watermark)
        # A session's number would need every session before it: unbounded streams leave it out.
        seq = pa.array(rows.column("seq").to_numpy(), mask=by_session)
        place = rows.schema.get_field_index("seq")
        return rows.set_column(place, "seq", seq).filter(pa.array(~open_))


def _ticks(table: pa.Table, column: str) -> Array:
    ticks: Array = table.column(column).cast(pa.int64()).to_numpy()
    return ticks


def _equal(table: pa.Table, column: str, text: str) -> Array:
    values = table.column(column)
    equal: Array = pc.equal(values.cast(pa.string()), text).to_numpy()
    return equal


def _events(slices: pa.Table, chosen: Array) -> int:
    return int(slices.column(ROWS).to_numpy()[chosen].sum())
