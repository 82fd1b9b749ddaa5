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
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds import find_ranges
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.closed import ended_sessions, missed_by_time
from paneflow.slicing.columns import read_column
from paneflow.slicing.events import Events, order_events
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.live_steps import Replay, first_states, step_through, still_wanted
from paneflow.slicing.times import read_times
from paneflow.windows import (
    Count,
    Custom,
    Delta,
    Punctuation,
    Session,
    SlideByTime,
    SlideByTuple,
    Sliding,
    Window,
)

if TYPE_CHECKING:
    from paneflow.query import Query

NEVER = np.iinfo(np.int64).max
UNSTEPPED = -1
"""The mark of an event that its custom window has not seen, because it is not final."""
UNKNOWN = -1
"""The mark of an event of which it is not written whether its session has closed."""
STRAGGLER = "paneflow:straggler"
"""The column that tells stragglers, where there are windows that they may not join."""


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

    def __init__(self, query: Query) -> None:
        self._query = query
        self._customs: dict[int, Custom] = {}
        self._each: list[tuple[Window, Query]] = []
        for k, (label, window) in enumerate(query.windows.items()):
            asked = window.without_partial()
            if isinstance(window, Custom):
                self._customs[k] = window
                asked = Replay(_mark(k))
            self._each.append((window, query.with_windows({label: asked})))
        open_ended = [_by_time(window) for window, _ in self._each]
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
        if held.num_rows and any(_over(k) not in held.column_names for k in self._sessions):
            held, marks = self._known(self._marked(held, UNKNOWN), marks).forget()
        known = self._known(
            pa.concat_tables([self._marked(held), self._marked(fresh, behind=behind)]), marks
        )
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
        soonest = np.full(known.size, NEVER)
        if fresh.num_rows and len(known.t):
            np.minimum.at(soonest, known.codes_of(fresh), read_times(fresh, self._query.time)[0])
            for k, (window, query) in enumerate(self._each):
                if isinstance(window, Custom):
                    known.step(k, window, known.in_place)
                rows.append(self._open(known, k, window, query, soonest, watermark))
        return pa.concat_tables(rows)

    def _known(
        self, events: pa.Table, marks: pa.Table | None, others: pa.Table | None = None
    ) -> _Keys:
        """The events in order; keys of `others` are known, too."""
        return _Keys(
            self._query, events, marks, len(self._each), self._customs, self._sessions, others
        )

    def _marked(self, events: pa.Table, over: int = 0, behind: Array | None = None) -> pa.Table:
        """Events with a mark for each custom window, as far as it has seen them.

        And with those that tell stragglers, and events of closed sessions.
        """
        for k in self._sessions:
            if _over(k) not in events.column_names:
                mark = pa.array(np.full(events.num_rows, over, np.int8))
                events = events.append_column(_over(k), mark)
        if self._mixed and STRAGGLER not in events.column_names:
            unmarked = np.zeros(events.num_rows, np.bool_)
            straggler = pa.array(unmarked if behind is None else behind)
            events = events.append_column(STRAGGLER, straggler)
        for k in self._customs:
            if _mark(k) not in events.column_names:
                unseen = pa.array(np.full(events.num_rows, UNSTEPPED, np.int8))
                events = events.append_column(_mark(k), unseen)
        return events

    def _open(
        self,
        known: _Keys,
        k: int,
        window: Window,
        query: Query,
        soonest: Array,
        watermark: int | None,
    ) -> pa.Table:
        """The rows of one window that are not final, and may have changed."""
        _, numbered, emitted = known.marks[k]
        rows = query.over(known.seen_by(k, known.wanted_by(k, window)))
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
        # What a window holds depends on no event behind its end, but whether it has ended may.
        ends_later = isinstance(window, Custom | Delta)
        changed = ~final & ((soonest[code] < NEVER) if ends_later else (end >= soonest[code]))
        place = rows.schema.get_field_index("seq")
        return rows.set_column(place, "seq", seq).filter(pa.array(changed))

    def _emit(
        self,
        known: _Keys,
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
        rows = query.over(events)
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
            known.pass_over(k, chosen, gone)
            numbered += windows
        else:
            found, ordered = _ranges(window, query, events)
            gone, windows = forgotten(window, found, ordered, watermark)
            mine = known.codes_of(ordered.keys) if query.key else np.zeros(1, np.int64)
            of_all = np.zeros(known.size, np.int64)
            of_all[mine[: len(gone)]] = gone
            known.pass_over(k, chosen, of_all)
            numbered[mine[: len(gone)]] += windows
        place = rows.schema.get_field_index("seq")
        return rows.set_column(place, "seq", seq).filter(pa.array(past))


class _Keys:
    """All events in total order, and the marks of their keys."""

    def __init__(
        self,
        query: Query,
        events: pa.Table,
        marks: pa.Table | None,
        windows: int,
        customs: dict[int, Custom],
        sessions: list[int],
        others: pa.Table | None,
    ) -> None:
        self._query = query
        n = 0 if marks is None else marks.num_rows
        key = list(query.key)
        tables = [table.select(key) for table in (marks, events, others) if table is not None]
        if key:
            codes, self.keys = encode_keys(pa.concat_tables(tables).combine_chunks(), query.key)
            codes = codes[: n + events.num_rows]
        else:
            codes, self.keys = np.zeros(n + events.num_rows, np.int64), pa.table({})
        t, _ = read_times(events, query.time)
        order = self._order = np.lexsort((t, codes[n:]))
        self.events = events.take(pa.array(order)).combine_chunks()
        self.t, self.code = t[order], codes[n:][order]
        size = self.size = self.keys.num_rows if key else 1
        starts = np.searchsorted(self.code, np.arange(size))
        self.ordinal = np.arange(len(order)) - starts[self.code]
        self.in_place = np.ones(len(order), np.bool_)
        """Which events are no stragglers."""
        if STRAGGLER in events.column_names:
            self.in_place = ~self.events.column(STRAGGLER).to_numpy()
        self.stepped = {k: _numbers(self.events, _mark(k)) for k in customs}
        self.states = {k: first_states(custom, size) for k, custom in customs.items()}
        self.marks = [np.zeros((3, size), np.int64) for _ in range(windows)]
        if marks is not None:
            for k in range(windows):
                for i in range(3):
                    self.marks[k][i, codes[:n]] = marks.column(f"{k}:{i}").to_numpy()
            for k, states in self.states.items():
                for i, state in enumerate(states):
                    state[codes[:n]] = marks.column(f"{k}:state:{i}").to_numpy()
        self.over = {k: _numbers(self.events, _over(k)) for k in sessions}
        """Which events are of sessions that have closed; others may stand before them."""
        for k, over in self.over.items():
            passed = self.ordinal < self.marks[k][0][self.code]
            self.over[k] = np.where(over == UNKNOWN, passed, over > 0)

    def wanted_by(self, k: int, window: Window) -> Array:
        """The events that a window has not done with yet, and may see."""
        if k in self.over:
            return ~self.over[k]
        wanted: Array = self.ordinal >= self.marks[k][0][self.code]
        return wanted if _by_time(window) else wanted & self.in_place

    def make_way(self, held: int) -> None:
        """Count again how many events to pass over: stragglers may stand among those held."""
        there = self._order < held
        until = np.cumsum(there, dtype=np.int64)
        starts = np.searchsorted(self.code, np.arange(self.size))
        until -= np.append(0, until)[starts][self.code]
        for skip, _, _ in self.marks:
            last = there & (until == skip[self.code])
            skip[self.code[last]] = self.ordinal[last] + 1

    def pass_over(self, k: int, chosen: Array, gone: Array) -> None:
        """Pass over so many of the chosen events of each key, and all before them."""
        code, skip = self.code[chosen], self.marks[k][0]
        starts = np.searchsorted(code, np.arange(self.size))
        if k in self.over:
            first = np.arange(len(code)) - starts[code] < gone[code]
            self.over[k][np.flatnonzero(chosen)[first]] = True
            skip[:] = len(self.t)
            wanted = ~self.over[k]
            np.minimum.at(skip, self.code[wanted], self.ordinal[wanted])
            np.minimum(skip, np.bincount(self.code, minlength=self.size), out=skip)
            return
        some = gone > 0
        skip[some] = self.ordinal[chosen][(starts + gone - 1)[some]] + 1

    def step(self, k: int, window: Custom, wanted: Array) -> None:
        """Show a custom window those of the wanted events that it has not seen."""
        unseen = wanted & (self.stepped[k] == UNSTEPPED)
        code = self.code[unseen]
        offsets = np.searchsorted(code, np.arange(self.size + 1))
        events = self.events.filter(pa.array(unseen))
        self.stepped[k][unseen] = step_through(
            window, events, self.t[unseen], offsets, self.states[k]
        )

    def seen_by(self, k: int, chosen: Array) -> pa.Table:
        """Some of the events, with what a custom window has made of them."""
        events = self.events.filter(pa.array(chosen))
        if k not in self.stepped:
            return events
        place = events.schema.get_field_index(_mark(k))
        return events.set_column(place, _mark(k), pa.array(self.stepped[k][chosen]))

    def codes_of(self, rows: pa.Table) -> Array:
        """The keys' codes of rows that have none but known keys."""
        key = self._query.key
        if not key:
            return np.zeros(rows.num_rows, np.int64)
        both = pa.concat_tables([self.keys, rows.select(list(key)).cast(self.keys.schema)])
        codes, _ = encode_keys(both.combine_chunks(), key)
        # Known keys come first, each once and in order, so their codes are themselves.
        return codes[self.keys.num_rows :]

    def forget(self) -> tuple[pa.Table, pa.Table]:
        """The events that some window needs, and the marks as they are then."""
        gone = np.minimum.reduce([mark[0] for mark in self.marks])
        kept = self.ordinal >= gone[self.code]
        columns = {name: self.keys.column(name) for name in self._query.key}
        for k, mark in enumerate(self.marks):
            for i in range(3):
                columns[f"{k}:{i}"] = pa.array(mark[i] - (gone if i == 0 else 0))
        for k, states in self.states.items():
            columns |= {f"{k}:state:{i}": pa.array(state) for i, state in enumerate(states)}
        events = self.events
        for k, stepped in self.stepped.items():
            place = events.schema.get_field_index(_mark(k))
            events = events.set_column(place, _mark(k), pa.array(stepped.astype(np.int8)))
        for k, over in self.over.items():
            place = events.schema.get_field_index(_over(k))
            events = events.set_column(place, _over(k), pa.array(over.astype(np.int8)))
        return events.filter(pa.array(kept)), pa.table(columns)


def _by_time(window: Window) -> bool:
    """Whether it may be open for an event behind the watermark."""
    return isinstance(window, Sliding | Session)


def _mark(k: int) -> str:
    """The column that holds what the k-th window, a custom one, has made of an event."""
    return f"paneflow:mark:{k}"


def _over(k: int) -> str:
    """The column that tells events of closed sessions, where the k-th window is one."""
    return f"paneflow:over:{k}"


def _numbers(table: pa.Table, column: str) -> Array:
    numbers: Array = table.column(column).to_numpy().astype(np.int64)
    return numbers


def _ranges(window: Window, query: Query, events: pa.Table) -> tuple[Ranges, Events]:
    """The windows of events, as ranges of their positions in order."""
    codes, keys = encode_keys(events, query.key)
    t, _ = read_times(events, query.time)
    ordered = order_events(codes, keys, t, t)
    columns = {name: read_column(events, name) for name in window.columns}
    (part,) = ordered.parts(1)
    stated = next(iter(query.windows.values()))
    return find_ranges([stated], part, Arranged(ordered, columns)).ranges, ordered


def forgotten(
    window: Window, found: Ranges, ordered: Events, watermark: int
) -> tuple[Array, Array]:
    """For each key, how many events no later window needs, and how many windows go with them."""
    offsets = ordered.key_offsets
    starts, counts = offsets[:-1], np.diff(offsets)
    none = np.zeros(len(counts), np.int64)
    windows = np.bincount(found.key, minlength=len(counts)).astype(np.int64)
    if len(ordered.t) == 0:
        return none, none
    if isinstance(window, Count):
        windows = np.minimum(windows, counts // window.slide)
        return windows * window.slide, windows
    if isinstance(window, SlideByTuple):
        last = ordered.t[offsets[1:] - 1]
        old = ordered.t < np.repeat(last - window.range.value, counts)
        windows = np.add.reduceat(old, starts, dtype=np.int64) // window.every
        return windows * window.every, windows
    if isinstance(window, SlideByTime):
        return np.maximum(counts - window.size, 0), none
    if isinstance(window, Punctuation):
        done = none.copy()
        np.maximum.at(done, found.key, found.hi - starts[found.key])
        return done, windows
    if isinstance(window, Delta):
        return _before_a_trigger(found, starts)
    if isinstance(window, Session):
        closed = ordered.t[found.hi - 1] + window.gap.value < watermark
        done = none.copy()
        np.maximum.at(done, found.key[closed], (found.hi - starts[found.key])[closed])
        return done, none
    assert isinstance(window, Sliding)
    offset, slide = window.offset.value, window.slide.value
    passed = offset + (ordered.t - offset) // slide * slide + window.range.value <= watermark
    return np.add.reduceat(passed, starts, dtype=np.int64), none


def _before_a_trigger(found: Ranges, starts: Array) -> tuple[Array, Array]:
    """Delta windows can be taken up at a trigger, behind which everything needed lies.

    A window ends where its trigger stands. Later windows need nothing before the last one's start.
    """
    gone, windows = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    if len(found) == 0:
        return gone, windows
    last_start = np.zeros(len(starts), np.int64)
    np.maximum.at(last_start, found.key, found.lo)
    fit = found.hi <= last_start[found.key]
    np.maximum.at(gone, found.key[fit], (found.hi - starts[found.key])[fit])
    np.maximum.at(windows, found.key[fit], found.seq[fit])
    return gone, windows
