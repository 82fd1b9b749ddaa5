"""Which windows of a stream are complete: the windowing logic of an emitter.

For one window of the query, and for every key, the triggers keep those events that later windows
may need, as times and slots and the column that the window reads; nothing else of an event is
looked at. At a watermark the windows of these events are found anew and those that are final and
were not given before are given. Then events that no later window needs are forgotten.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.front import Events
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds import find_ranges
from paneflow.slicing.columns import Column
from paneflow.slicing.events import Events as Ordered, Part
from paneflow.slicing.live_events import forgotten
from paneflow.slicing.ordering import stable_order
from paneflow.windows import Session, SlideByTime, Sliding, Window


@dataclass(frozen=True, eq=False)
class Extents:
    """Complete windows: window i holds the events in slots[lo[i]:hi[i]], in total order."""

    label: int
    key: Array
    seq: Array
    start: Array
    end: Array
    lo: Array
    hi: Array
    slots: Array

    def __len__(self) -> int:
        return len(self.key)

    def between(self, first: int, end: int) -> Extents:
        """Some of the windows."""
        names = ("key", "seq", "start", "end", "lo", "hi")
        cut = {name: getattr(self, name)[first:end] for name in names}
        return dataclasses.replace(self, **cut)


class Triggers:
    """The open windows of one label."""

    def __init__(self, label: int, window: Window) -> None:
        self._label = label
        self._window = window
        self._key = np.empty(0, np.int64)
        self._t = np.empty(0, np.int64)
        self._slots = np.empty(0, np.int64)
        self._columns: dict[str, Column] = {}
        self._before: int | None = None
        self._numbered = np.zeros(0, np.int64)
        """For each key, how many windows were found among events that are forgotten."""
        self._given = np.zeros(0, np.int64)
        """For each key, how many windows were given."""

    @property
    def oldest(self) -> int | None:
        """The least slot that a later window may need; None if no event is kept."""
        return int(self._slots.min()) if len(self._slots) else None

    def take(self, events: Events, first_slot: int) -> None:
        """Remember events that follow those before."""
        slots = np.arange(first_slot, first_slot + len(events))
        columns = {name: events.read[name] for name in self._window.columns}
        if len(self._key):
            columns = {name: _behind(self._columns[name], c) for name, c in columns.items()}
        key = np.concatenate([self._key, events.key])
        t = np.concatenate([self._t, events.t])
        slots = np.concatenate([self._slots, slots])
        order = stable_order([key], len(key))
        self._keep(key, t, slots, columns, order)
        more = int(key.max()) + 1 - len(self._given)
        if more > 0:
            self._given = np.append(self._given, np.zeros(more, np.int64))
            self._numbered = np.append(self._numbered, np.zeros(more, np.int64))

    def advance(self, watermark: int) -> Extents | None:
        """The windows that are final at a watermark, if there are any."""
        before, self._before = self._before, watermark
        if len(self._key) == 0:
            return None
        heads = np.ones(len(self._key), np.bool_)
        heads[1:] = self._key[1:] != self._key[:-1]
        first = np.flatnonzero(heads)
        keys = self._key[first]
        offsets = np.append(first, len(self._key))
        ordered = Ordered(pa.table({}), offsets, None, self._t, self._t)
        part = Part(ordered, 0, len(first))
        window = self._window
        found = find_ranges([window], part, Arranged(ordered, self._columns)).ranges
        key = keys[found.key]
        start, end = window.extent(found.seq, self._t[found.lo], self._t[found.hi - 1])
        if isinstance(window, Sliding | SlideByTime):
            seq = found.seq
            final = end <= watermark
            if before is not None:
                final &= end > before
        else:
            seq = found.seq + self._numbered[key]
            final = end < watermark if isinstance(window, Session) else seq >= self._given[key]
            np.maximum.at(self._given, key[final], seq[final] + 1)
        given = Extents(
            self._label,
            key[final],
            seq[final],
            start[final],
            end[final],
            found.lo[final],
            found.hi[final],
            self._slots,
        )
        gone, windows = forgotten(window, found, ordered, watermark)
        if isinstance(window, Session):
            windows = np.bincount(found.key[final], minlength=len(keys))
        self._numbered[keys] += windows
        if gone.any():
            ordinal = np.arange(len(self._key)) - np.repeat(first, np.diff(offsets))
            kept = np.flatnonzero(ordinal >= np.repeat(gone, np.diff(offsets)))
            self._keep(self._key, self._t, self._slots, self._columns, kept)
        return given if len(given) else None

    def _keep(
        self,
        key: Array,
        t: Array,
        slots: Array,
        columns: dict[str, Column],
        chosen: Array | None,
    ) -> None:
        if chosen is not None:
            key, t, slots = key[chosen], t[chosen], slots[chosen]
            columns = {
                name: dataclasses.replace(
                    c,
                    values=c.values[chosen],
                    valid=None if c.valid is None else c.valid[chosen],
                )
                for name, c in columns.items()
            }
        self._key, self._t, self._slots, self._columns = key, t, slots, columns


def _behind(before: Column, after: Column) -> Column:
    """Two pieces of a column as one."""
    valid = None
    if before.valid is not None or after.valid is not None:
        masks = [
            np.ones(len(c.values), np.bool_) if c.valid is None else c.valid
            for c in (before, after)
        ]
        valid = np.concatenate(masks)
    return dataclasses.replace(
        after, values=np.concatenate([before.values, after.values]), valid=valid
    )
