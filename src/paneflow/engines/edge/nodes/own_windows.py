"""The windows of a child node's own events, as slices that are matched with those of other nodes.

Which events are in which window is asked of the open windows of a stream: a query that collects
the numbers of events. The events of each window are then cut into one slice.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates import collect
from paneflow.aggregates.operator import Array
from paneflow.engines.edge.interpreting import GAPS
from paneflow.engines.edge.layouts import OVER, opening_of
from paneflow.engines.edge.matching import GROUP, LABEL, Matching, restated
from paneflow.engines.edge.nodes.held import HeldWindows
from paneflow.engines.edge.nodes.node import below
from paneflow.engines.edge.parts.contract import Tables
from paneflow.engines.edge.parts.slices import ticks
from paneflow.engines.edge.parts.waiting import FROM, Waiting
from paneflow.engines.edge.records import BEFORE_ALL
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.slices import SLICING, START
from paneflow.slicing.times import read_times, time_type

NUMBER = "event:number"


class OwnWindows:
    """Events wait until the watermark has passed them; windows that close become slices."""

    def __init__(self, matching: Matching, source: pa.Schema) -> None:
        self._matching = matching
        query = matching.query
        self._time = query.time
        numbered = source.append(pa.field(NUMBER, pa.int64()))
        self._waiting = Waiting(numbered)
        self._kept = numbered.empty_table()
        """Events that some window may still hold, in the order of their numbers."""
        self._next = 0
        self._windows = {
            label: HeldWindows(
                restated(query, {label: window}, {NUMBER: collect(NUMBER)}, query.key), numbered
            )
            for label, window in query.windows.items()
        }
        self._told = opening_of(matching.layout.schema).empty_table()

    def take(self, events: pa.Table) -> None:
        """Take events."""
        numbers = np.arange(self._next, self._next + events.num_rows)
        self._next += events.num_rows
        self._waiting.add("", events.append_column(NUMBER, pa.array(numbers)))

    def advance(self, watermark: int) -> tuple[pa.Table, pa.Table, int]:
        """Slices of windows that have closed, openings of others, and events that were late."""
        if watermark == BEFORE_ALL:
            none = self._matching.cut(self._matching.source.empty_table())
            return none, self._told.slice(0, 0), 0
        later = read_times(self._waiting.all(), self._time)[0] >= watermark
        ready = self._waiting.keep(later).drop_columns(FROM)
        self._kept = pa.concat_tables([self._kept, ready]).sort_by(NUMBER)
        found, lates = [], []
        for windows in self._windows.values():
            rows, late = windows.take_events(ready, watermark)
            found.append(self._spread(rows))
            lates.append(late)
        slices = self._matching.cut(pa.concat_tables(found))
        openings = self._openings()
        needed = [windows.events.column(NUMBER) for windows in self._windows.values()]
        first = min((pc.min(column).as_py() for column in needed if len(column)), default=None)
        numbers = self._kept.column(NUMBER).to_numpy()
        self._kept = self._kept.filter(
            pa.array(numbers >= (self._next if first is None else first))
        )
        return slices, openings, min(lates)

    def _spread(self, rows: pa.Table) -> pa.Table:
        """The events of each row's window, with the window's label and group."""
        lists = rows.column(NUMBER).combine_chunks()
        numbers = lists.flatten().to_numpy()
        window = np.repeat(np.arange(len(lists)), pc.list_value_length(lists).to_numpy())
        at = np.searchsorted(self._kept.column(NUMBER).to_numpy(), numbers)
        group = self._matching.group(rows.column("seq").to_numpy(), ticks(rows, "end"))
        events = self._kept.take(pa.array(at)).drop_columns(NUMBER)
        labels = rows.column("window").cast(pa.string()).take(pa.array(window))
        return events.append_column(LABEL, labels).append_column(GROUP, pa.array(group[window]))

    def _openings(self) -> pa.Table:
        """When windows that have not closed began, as far as that was not told before."""
        if self._matching.way != GAPS:
            return self._told.slice(0, 0)
        begun = [self._told.slice(0, 0)]
        for label, windows in self._windows.items():
            begun.append(self._begun(label, windows.events))
        now = pa.concat_tables(begun).combine_chunks()
        names = tuple(now.column_names)
        codes, _ = encode_keys(pa.concat_tables([self._told, now]).combine_chunks(), names)
        known = len(self._told)
        fresh: Array = ~np.isin(codes[known:], codes[:known])
        self._told = now
        return now.filter(pa.array(fresh))

    def _begun(self, label: str, events: pa.Table) -> pa.Table:
        """The first event of each key that is in no window yet."""
        codes, keys = encode_keys(events, self._matching.query.key)
        t, _ = read_times(events, self._time)
        distinct = keys.num_rows if self._matching.query.key else min(1, events.num_rows)
        first = np.full(distinct, np.iinfo(np.int64).max)
        np.minimum.at(first, codes, t)
        moment = time_type(events.schema.field(self._time).type, self._time)
        names = [f"key:{name}" for name in self._matching.query.key]
        columns = dict(zip(names, keys.columns, strict=True))
        slicing = next(iter(self._matching.sessions))
        made = {
            SLICING: pa.repeat(pa.scalar(slicing), distinct),
            **columns,
            f"key:{LABEL}": pa.repeat(pa.scalar(label), distinct),
            f"key:{GROUP}": pa.array(np.zeros(distinct, np.int64)),
            START: moment.restore(first),
            OVER: pa.array(np.zeros(distinct, np.bool_)),
        }
        return pa.table(made).cast(self._told.schema)

    def state(self) -> dict[str, pa.Table]:
        """All that is held, for a snapshot."""
        tables = {"waiting": self._waiting.all(), "kept": self._kept, "told": self._told}
        for label, windows in self._windows.items():
            tables |= {f"{label}/{name}": held for name, held in windows.state().items()}
        return tables

    @property
    def about(self) -> dict[str, int]:
        """The rest of the state, as JSON can hold it."""
        (watermark,) = {windows.watermark for windows in self._windows.values()}
        return {"next": self._next, "watermark": watermark}

    def restore(self, tables: Tables, about: dict[str, int]) -> None:
        """Take up what `state` and `about` gave."""
        self._waiting.replace(tables["waiting"])
        self._kept, self._told = tables["kept"], tables["told"]
        self._next = about["next"]
        for label, windows in self._windows.items():
            windows.restore(below(f"{label}/", dict(tables)), about["watermark"])
