"""The events that a stream's windows may still need, by key and in total order, with their marks.

Marks say how far each window is with the events of a key: how many to pass over, how many windows
are forgotten, how many emitted. Events have marks too: what a custom window has made of them,
whether their session has closed, whether they are stragglers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.live.replayed_steps import first_states, step_through
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.times import read_times
from paneflow.windows import Custom, Session, Sliding, Window

if TYPE_CHECKING:
    from paneflow.query import Query

UNSTEPPED = -1
"""The mark of an event that its custom window has not seen, because it is not final."""
UNKNOWN = -1
"""The mark of an event of which it is not written whether its session has closed."""
STRAGGLER = "paneflow:straggler"
"""The column that tells stragglers, where there are windows that they may not join."""


class Keys:
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
        self.stepped = {k: _numbers(self.events, mark_of(k)) for k in customs}
        self.states = {k: first_states(custom, size) for k, custom in customs.items()}
        self.marks = [np.zeros((3, size), np.int64) for _ in range(windows)]
        if marks is not None:
            for k in range(windows):
                for i in range(3):
                    self.marks[k][i, codes[:n]] = marks.column(f"{k}:{i}").to_numpy()
            for k, states in self.states.items():
                for i, state in enumerate(states):
                    state[codes[:n]] = marks.column(f"{k}:state:{i}").to_numpy()
        self.over = {k: _numbers(self.events, over_of(k)) for k in sessions}
        """Which events are of sessions that have closed; others may stand before them."""
        for k, over in self.over.items():
            passed = self.ordinal < self.marks[k][0][self.code]
            self.over[k] = np.where(over == UNKNOWN, passed, over > 0)

    def wanted_by(self, k: int, window: Window) -> Array:
        """The events that a window has not done with yet, and may see."""
        if k in self.over:
            return ~self.over[k]
        wanted: Array = self.ordinal >= self.marks[k][0][self.code]
        return wanted if by_time(window) else wanted & self.in_place

    def make_way(self, held: int) -> None:
        """Count again how many events to pass over: stragglers may stand among those held."""
        there = self._order < held
        until = np.cumsum(there, dtype=np.int64)
        starts = np.searchsorted(self.code, np.arange(self.size))
        until -= np.append(0, until)[starts][self.code]
        for skip, _, _ in self.marks:
            last = there & (until == skip[self.code])
            skip[self.code[last]] = self.ordinal[last] + 1

    def passover_of(self, k: int, chosen: Array, gone: Array) -> None:
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
        place = events.schema.get_field_index(mark_of(k))
        return events.set_column(place, mark_of(k), pa.array(self.stepped[k][chosen]))

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
            place = events.schema.get_field_index(mark_of(k))
            events = events.set_column(place, mark_of(k), pa.array(stepped.astype(np.int8)))
        for k, over in self.over.items():
            place = events.schema.get_field_index(over_of(k))
            events = events.set_column(place, over_of(k), pa.array(over.astype(np.int8)))
        return events.filter(pa.array(kept)), pa.table(columns)


def by_time(window: Window) -> bool:
    """Whether it may be open for an event behind the watermark."""
    return isinstance(window, Sliding | Session)


def mark_of(k: int) -> str:
    """The column that holds what the k-th window, a custom one, has made of an event."""
    return f"paneflow:mark:{k}"


def over_of(k: int) -> str:
    """The column that tells events of closed sessions, where the k-th window is one."""
    return f"paneflow:over:{k}"


def _numbers(table: pa.Table, column: str) -> Array:
    numbers: Array = table.column(column).to_numpy().astype(np.int64)
    return numbers
