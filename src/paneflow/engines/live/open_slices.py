"""Slices of an unbounded stream: what is still open, what has closed, what came too late.

`Live` is the whole memory of a stream of time windows and sessions. It takes slices as they come
and a watermark, gives the rows of the windows that have closed, and drops slices that no open
window needs. Where they are stored is up to the caller: a Spark state store, a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.operator import Array
from paneflow.engines.live.changed import touched
from paneflow.engines.live.closed import IN_NO_WINDOW, ended_sessions, last_ends, missed_by_time
from paneflow.engines.table import finish
from paneflow.slicing.bounds.ranges import Ends
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.slices import LAST, ROWS, SLICING, START, TIME_SLICES, Slices
from paneflow.slicing.slicings import slicings
from paneflow.slicing.times import read_times
from paneflow.windows import Session, Sliding

if TYPE_CHECKING:
    from paneflow.query import Query


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

    def __init__(self, query: Query, layout: pa.Schema, max_rows: int | None) -> None:
        self._query = query
        self._max_rows = max_rows
        self._own = Slices(layout.empty_table())
        self._sliding = [w for w in query.windows.values() if isinstance(w, Sliding)]
        self._sessions = {str(w): w for w in query.windows.values() if isinstance(w, Session)}

    def advance(
        self, held: pa.Table, fresh: pa.Table, before: int | None, watermark: int | None
    ) -> Advance:
        """Take fresh slices, and move the watermark from `before`."""
        empty = self._query.result_schema(self._own.source).empty_table()
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

    def late_for(
        self, events: pa.Table, held: pa.Table, fresh: pa.Table, before: int
    ) -> list[tuple[Array, Array]]:
        """For each slicing: which events are too late for it, and which are in none of its windows.

        `fresh` are the slices of the batch that brought the events.
        """
        t, _ = read_times(events, self._query.time)
        found = []
        if self._sliding:
            found.append(missed_by_time(self._sliding, t, before))
        # An event is in the session of the slice it was cut into, so it may stand beside it.
        slices = pa.concat_tables([held.select(fresh.column_names), fresh])
        names = [f"key:{name}" for name in self._query.key]
        for label, window in self._sessions.items():
            mine = slices.filter(pa.array(_equal(slices, SLICING, label)))
            keys = pa.concat_tables(
                [mine.select(names), _renamed(events.select(list(self._query.key)), mine, names)]
            )
            start, last = (np.append(_ticks(mine, column), t) for column in (START, LAST))
            closed = self._ended(keys, start, last, window, before)[mine.num_rows :]
            found.append((closed, np.zeros(len(t), np.bool_)))
        return found

    def early(self, kept: pa.Table, fresh: pa.Table, watermark: int | None) -> pa.Table:
        """The rows, as they stand, of open windows that a batch's slices have changed."""
        fresh = fresh if watermark is None else self.still_open(fresh, watermark)
        if fresh.num_rows == 0:
            return self._query.result_schema(self._own.source).empty_table()
        rows = self._unnumbered(self._rows(kept, (watermark, None)))
        changed = np.zeros(rows.num_rows, np.bool_)
        for slicing, windows in slicings(self._query).items():
            of_rows = np.logical_or.reduce([_equal(rows, "window", label) for label in windows])
            cut = fresh.filter(pa.array(_equal(fresh, SLICING, slicing)))
            within = slicing != TIME_SLICES  # the last event may stand at a session's end
            changed[of_rows] = self._hit(rows.filter(pa.array(of_rows)), cut, within)
        return rows.filter(pa.array(changed))

    def _hit(self, rows: pa.Table, fresh: pa.Table, within: bool) -> Array:
        """Which rows are of a window that some fresh slice of their key starts in."""
        names = [f"key:{name}" for name in self._query.key]
        mine = _renamed(rows.select(list(self._query.key)), fresh, names)
        codes = np.zeros(len(rows) + len(fresh), np.int64)
        if names:
            both = pa.concat_tables([mine, fresh.select(names)])
            codes, _ = encode_keys(both.combine_chunks(), tuple(names))
        n = len(rows)
        of_rows = (codes[:n], _ticks(rows, "start"), _ticks(rows, "end"))
        return touched(*of_rows, (codes[n:], _ticks(fresh, START)), within)

    def still_open(self, slices: pa.Table, watermark: int) -> pa.Table:
        """Slices without those whose windows have all closed."""
        over = self._passed(slices, watermark)
        for closed in self._closed_sessions(slices, watermark):
            over |= closed
        return slices.filter(pa.array(~over)) if over.any() else slices

    def _rows(self, slices: pa.Table, ends_in: Ends) -> pa.Table:
        """What slices amount to; of sliding windows those that end in a span."""
        mine = self._own.with_table(slices)
        return finish(self._query, mine, ends_in=ends_in, max_rows=self._max_rows)

    def _in_time(self, fresh: pa.Table, before: int) -> tuple[pa.Table, int]:
        """Fresh slices with an open window, and how many events have none."""
        passed = self._passed(fresh, before)
        # What lies in the gap between two windows is in none, and not late for any.
        late = passed & (self._last_end(fresh) > IN_NO_WINDOW)
        return fresh.filter(pa.array(~passed)), _events(fresh, late)

    def _passed(self, slices: pa.Table, watermark: int) -> Array:
        """Time slices whose last window has ended."""
        ended = self._last_end(slices) <= watermark
        passed: Array = _equal(slices, SLICING, TIME_SLICES) & ended
        return passed

    def _last_end(self, slices: pa.Table) -> Array:
        """When the last window that a time slice is in ends."""
        return last_ends(self._sliding, _ticks(slices, START))

    def _closed_sessions(self, slices: pa.Table, watermark: int) -> list[Array]:
        """For each session window, which slices are of sessions that have closed."""
        return [self._closed(slices, *one, watermark) for one in self._sessions.items()]

    def _closed(self, slices: pa.Table, label: str, window: Session, watermark: int) -> Array:
        closed = np.zeros(slices.num_rows, np.bool_)
        rows = np.flatnonzero(_equal(slices, SLICING, label))
        if len(rows):
            mine = slices.take(pa.array(rows))
            keys = mine.select([f"key:{name}" for name in self._query.key])
            ended = self._ended(keys, _ticks(mine, START), _ticks(mine, LAST), window, watermark)
            closed[rows[ended]] = True
        return closed

    def _ended(
        self, keys: pa.Table, start: Array, last: Array, window: Session, watermark: int
    ) -> Array:
        """Which spans of time are of sessions that have closed."""
        codes = np.zeros(len(start), np.int64)
        if keys.column_names:
            codes, _ = encode_keys(keys.combine_chunks(), tuple(keys.column_names))
        return ended_sessions(codes, start, last, window, watermark)

    def _closing(self, slices: pa.Table, before: int | None, watermark: int) -> pa.Table:
        """The rows of windows that close between two watermarks."""
        needed = _ticks(slices, START) < watermark
        rows = self._rows(slices.filter(pa.array(needed)), (before, watermark))
        if not self._sessions:
            return rows
        open_ = self._of_sessions(rows) & (_ticks(rows, "end") >= watermark)
        return self._unnumbered(rows.filter(pa.array(~open_)))

    def _unnumbered(self, rows: pa.Table) -> pa.Table:
        """Rows without the numbers of sessions: they would need every session before."""
        seq = pa.array(rows.column("seq").to_numpy(), mask=self._of_sessions(rows))
        return rows.set_column(rows.schema.get_field_index("seq"), "seq", seq)

    def _of_sessions(self, rows: pa.Table) -> Array:
        """Which rows are of session windows."""
        found = np.zeros(rows.num_rows, np.bool_)
        for label, window in self._query.windows.items():
            if isinstance(window, Session):
                found |= _equal(rows, "window", label)
        return found


def _ticks(table: pa.Table, column: str) -> Array:
    ticks: Array = table.column(column).cast(pa.int64()).to_numpy()
    return ticks


def _equal(table: pa.Table, column: str, text: str) -> Array:
    values = table.column(column)
    equal: Array = pc.equal(values.cast(pa.string()), text).to_numpy()
    return equal


def _renamed(keys: pa.Table, like: pa.Table, names: list[str]) -> pa.Table:
    """Key columns under the names and in the types that slices have them in."""
    return keys.rename_columns(names).cast(like.select(names).schema)


def _events(slices: pa.Table, chosen: Array) -> int:
    return int(slices.column(ROWS).to_numpy()[chosen].sum())
