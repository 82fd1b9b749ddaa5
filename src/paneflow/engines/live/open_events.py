"""Events of an unbounded stream, for windows that cannot be sliced part by part.

Where a window begins may depend on every event before it: on positions, marks, growing values.
Events are final once the watermark has reached them; the windows of the final events are found
anew at each step, from the last event of a key at which its windows can be taken up again. What
lies before that event is forgotten, and remembered only as a number of windows.

An event that comes behind the watermark has no place among events that are final, but time windows
and sessions may still be open for it. Where there are both, it is marked as a straggler, which
only these see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.live.changed import may_have_changed, soonest
from paneflow.engines.live.closed import ended_sessions, missed_by_time
from paneflow.engines.live.forgetting import forgotten
from paneflow.engines.live.keyed_events import (
    STRAGGLER,
    UNKNOWN,
    UNSTEPPED,
    Keys,
    by_time,
    mark_of,
    over_of,
)
from paneflow.engines.live.replayed_steps import Replay, still_wanted
from paneflow.engines.table import answer
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds import find_ranges
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.columns import read_column
from paneflow.slicing.events import Events, order_events
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.times import read_times
from paneflow.windows import (
    Custom,
    Session,
    SlideByTime,
    Sliding,
    Window,
)

if TYPE_CHECKING:
    from paneflow.query import Query


@dataclass(frozen=True)
class EventsAdvance:
    """What a step of the watermark brought."""

    rows: pa.Table
    events: pa.Table
    """The events that are still needed, in total order."""
    marks: pa.Table
    """For each key and window: events to pass over, windows forgotten, windows emitted."""


class LiveEvents:
    """The open windows of a stream, for some of its keys."""

    def __init__(self, query: Query, max_rows: int | None) -> None:
        self._query = query
        self._max_rows = max_rows
        self._customs: dict[int, Custom] = {}
        self._each: list[tuple[Window, Query]] = []
        for k, (label, window) in enumerate(query.windows.items()):
            asked = window.without_partial()
            if isinstance(window, Custom):
                self._customs[k] = window
                asked = Replay(mark_of(k))
            self._each.append((window, query.with_windows({label: asked})))
        open_ended = [by_time(window) for window, _ in self._each]
        self._joinable, self._mixed = any(open_ended), any(open_ended) and not all(open_ended)
        # Where one window is alone, events of closed sessions are forgotten at once.
        alone = len(self._each) == 1
        self._sessions = [
            k for k, (w, _) in enumerate(self._each) if isinstance(w, Session) and not alone
        ]

    def advance(
        self,
        held: pa.Table,
        marks: pa.Table | None,
        fresh: pa.Table,
        before: int | None,
        watermark: int | None,
    ) -> EventsAdvance:
        """Take fresh events, and move the watermark from `before`."""
        behind = np.zeros(fresh.num_rows, np.bool_)
        if before is not None and fresh.num_rows:
            behind = read_times(fresh, self._query.time)[0] < before
        if behind.any() and not self._joinable:
            fresh = fresh.filter(pa.array(~behind))
        if held.num_rows and any(over_of(k) not in held.column_names for k in self._sessions):
            held, marks = self._known(self._marked(held, UNKNOWN), marks).forget()
        came = self._marked(fresh, behind=behind)
        there = self._marked(held).select(came.column_names)
        known = self._known(pa.concat_tables([there, came]), marks)
        if behind.any() and self._joinable:
            known.make_way(held.num_rows)
        rows = [self._query.result_schema(held.schema).empty_table()]
        if watermark is not None:
            for k, (window, query) in enumerate(self._each):
                if isinstance(window, Custom):
                    known.step(k, window, (known.t <= watermark) & known.in_place)
                rows.append(self._emit(known, k, window, query, before, watermark))
        events, marks = known.forget()
        return EventsAdvance(pa.concat_tables(rows), events, marks)

    def late_for(
        self, held: pa.Table, marks: pa.Table | None, events: pa.Table, before: int
    ) -> list[tuple[Array, Array]]:
        """For windows of some events behind the watermark: too late for which, in none of which."""
        t = read_times(events, self._query.time)[0]
        none, every = np.zeros(len(t), np.bool_), np.ones(len(t), np.bool_)
        found = [] if self._joinable and not self._mixed else [(every, none)]
        timed = [window for window, _ in self._each if isinstance(window, Sliding)]
        if timed:
            found.append(missed_by_time(timed, t, before))
        if any(isinstance(window, Session) for window, _ in self._each):
            known = self._known(self._marked(held, UNKNOWN), marks, events)
            mine = known.codes_of(events)
            for k, (window, _) in enumerate(self._each):
                if isinstance(window, Session):
                    seen = known.wanted_by(k, window)
                    code, at = (
                        np.append(a[seen], b) for a, b in ((known.code, mine), (known.t, t))
                    )
                    closed = ended_sessions(code, at, at, window, before)[-len(t) :]
                    found.append((closed, none))
        return found

    def early(
        self, held: pa.Table, marks: pa.Table | None, fresh: pa.Table, watermark: int | None
    ) -> pa.Table:
        """The rows, as they stand, of open windows that a batch may have changed.

        `held` and `marks` are those after the batch that brought the fresh events.
        """
        rows = [self._query.result_schema(held.schema).empty_table()]
        known = self._known(self._marked(held, UNKNOWN), marks)
        if fresh.num_rows and len(known.t):
            t = read_times(fresh, self._query.time)[0]
            first = soonest(known.size, known.codes_of(fresh), t)
            for k, (window, query) in enumerate(self._each):
                if isinstance(window, Custom):
                    known.step(k, window, known.in_place)
                rows.append(self._open(known, k, window, query, first, watermark))
        return pa.concat_tables(rows)

    def _known(
        self, events: pa.Table, marks: pa.Table | None, others: pa.Table | None = None
    ) -> Keys:
        """The events in order; keys of `others` are known, too."""
        return Keys(
            self._query, events, marks, len(self._each), self._customs, self._sessions, others
        )

    def _marked(self, events: pa.Table, over: int = 0, behind: Array | None = None) -> pa.Table:
        """Events with a mark for each custom window, as far as it has seen them.

        And with those that tell stragglers, and events of closed sessions.
        """
        for k in self._sessions:
            if over_of(k) not in events.column_names:
                mark = pa.array(np.full(events.num_rows, over, np.int8))
                events = events.append_column(over_of(k), mark)
        if self._mixed and STRAGGLER not in events.column_names:
            unmarked = np.zeros(events.num_rows, np.bool_)
            straggler = pa.array(unmarked if behind is None else behind)
            events = events.append_column(STRAGGLER, straggler)
        for k in self._customs:
            if mark_of(k) not in events.column_names:
                unseen = pa.array(np.full(events.num_rows, UNSTEPPED, np.int8))
                events = events.append_column(mark_of(k), unseen)
        return events

    def _open(
        self,
        known: Keys,
        k: int,
        window: Window,
        query: Query,
        first: Array,
        watermark: int | None,
    ) -> pa.Table:
        """The rows of one window that are not final, and may have changed."""
        _, numbered, emitted = known.marks[k]
        seen = known.seen_by(k, known.wanted_by(k, window))
        rows = answer(query, seen, max_rows=self._max_rows)
        code = known.codes_of(rows)
        end = rows.column("end").cast(pa.int64()).to_numpy()
        if isinstance(window, Session | SlideByTime | Sliding):
            final = np.zeros(len(end), np.bool_) if watermark is None else end <= watermark
            if isinstance(window, Session) and watermark is not None:
                final = end < watermark
            session = isinstance(window, Session)
            seq = pa.nulls(len(rows), pa.int64()) if session else rows.column("seq")
        else:
            number = rows.column("seq").to_numpy() + numbered[code]
            final, seq = number < emitted[code], pa.array(number)
        changed = ~final & may_have_changed(window, end, first[code])
        place = rows.schema.get_field_index("seq")
        return rows.set_column(place, "seq", seq).filter(pa.array(changed))

    def _emit(
        self,
        known: Keys,
        k: int,
        window: Window,
        query: Query,
        before: int | None,
        watermark: int,
    ) -> pa.Table:
        """The rows of one window that are final now; what it needs no more is marked."""
        _, numbered, emitted = known.marks[k]
        chosen = (known.t <= watermark) & known.wanted_by(k, window)
        events = known.seen_by(k, chosen)
        rows = answer(query, events, max_rows=self._max_rows)
        code = known.codes_of(rows)
        if isinstance(window, Session | SlideByTime | Sliding):
            end = rows.column("end").cast(pa.int64()).to_numpy()
            session = isinstance(window, Session)
            past = end < watermark if session else end <= watermark
            if before is not None:
                past &= end >= before if session else end > before
            seq = rows.column("seq") if not session else pa.nulls(len(rows), pa.int64())
        else:
            number = rows.column("seq").to_numpy() + numbered[code]
            past = number >= emitted[code]
            np.maximum.at(emitted, code[past], number[past] + 1)
            seq = pa.array(number)
        if isinstance(window, Custom):
            windows = np.bincount(code, minlength=known.size)
            gone, marks = still_wanted(known.stepped[k][chosen], known.code[chosen], windows)
            known.stepped[k][chosen] = marks
            known.passover_of(k, chosen, gone)
            numbered += windows
        else:
            found, ordered = _ranges(window, query, events)
            gone, windows = forgotten(window, found, ordered, watermark)
            mine = known.codes_of(ordered.keys) if query.key else np.zeros(1, np.int64)
            of_all = np.zeros(known.size, np.int64)
            of_all[mine[: len(gone)]] = gone
            known.passover_of(k, chosen, of_all)
            numbered[mine[: len(gone)]] += windows
        place = rows.schema.get_field_index("seq")
        return rows.set_column(place, "seq", seq).filter(pa.array(past))


def _ranges(window: Window, query: Query, events: pa.Table) -> tuple[Ranges, Events]:
    """The windows of events, as ranges of their positions in order."""
    codes, keys = encode_keys(events, query.key)
    t, _ = read_times(events, query.time)
    ordered = order_events(codes, keys, t, t)
    columns = {name: read_column(events, name) for name in window.columns}
    (part,) = ordered.parts(1)
    stated = next(iter(query.windows.values()))
    return find_ranges([stated], part, Arranged(ordered, columns)).ranges, ordered
