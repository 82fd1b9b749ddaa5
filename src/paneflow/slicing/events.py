"""A table's events in total order: by key, then time, then position in the table.

In this order the events of every window of a key are contiguous, so a window is simply a range of
positions.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.ordering import WORTH_A_THREAD, places_by_code, scatter, stable_places
from paneflow.slicing.times import read_times


@dataclass(frozen=True, eq=False)
class Events:
    """Everything known of the order: distinct keys, where each begins, and the sorted times."""

    keys: pa.Table
    key_offsets: Array
    places: Array | None
    """The place of each row in total order; None if rows are in order already."""
    t: Array
    last: Array
    """The latest time within each row: its time, unless the row is a slice."""

    def arrange(self, values: Array) -> Array:
        """A column of the table in total order."""
        return values if self.places is None else scatter(values, self.places)

    def span(self) -> tuple[int, int]:
        """The earliest and the latest time."""
        starts, ends = self.key_offsets[:-1], self.key_offsets[1:]
        held = ends > starts
        return int(self.t[starts[held]].min()), int(self.t[ends[held] - 1].max())

    def parts(self, wanted: int) -> list[Part]:
        """Whole keys, split into at most `wanted` ranges with about as many events each."""
        total = int(self.key_offsets[-1])
        marks = [total * k // wanted for k in range(1, wanted)]
        cuts = np.unique(np.searchsorted(self.key_offsets, marks, side="left"))
        edges = [0, *(int(c) for c in cuts if 0 < c < len(self.key_offsets) - 1)]
        edges.append(len(self.key_offsets) - 1)
        return [Part(self, a, b) for a, b in itertools.pairwise(edges)]


@dataclass(frozen=True, eq=False)
class Part:
    """The events of some neighbouring keys, which one thread works on."""

    events: Events
    first_key: int
    end_key: int

    @property
    def start(self) -> int:
        return int(self.events.key_offsets[self.first_key])

    @property
    def end(self) -> int:
        return int(self.events.key_offsets[self.end_key])

    @property
    def offsets(self) -> Array:
        """Where each key's events begin, counted from the start of this part."""
        offsets: Array = self.events.key_offsets[self.first_key : self.end_key + 1] - self.start
        return offsets

    @property
    def t(self) -> Array:
        return self.events.t[self.start : self.end]

    @property
    def last(self) -> Array:
        return self.events.last[self.start : self.end]

    def mine(self, arranged: Array) -> Array:
        """The events of this part, of a column in total order."""
        return arranged[self.start : self.end]


class Presence:
    """Leaves out the events an aggregate does not count, so that kernels never see a null."""

    def __init__(self, counted: Array | None) -> None:
        self._kept = None if counted is None else np.flatnonzero(counted)
        self._before: Array | None = None
        if counted is not None:
            self._before = np.zeros(len(counted) + 1, np.int64)
            np.cumsum(counted, out=self._before[1:])

    def keep(self, values: Array) -> Array:
        """The values of the counted events alone."""
        return values if self._kept is None else values[self._kept]

    def position(self, positions: Array) -> Array:
        """How many counted events come before each position."""
        return positions if self._before is None else self._before[positions]


def read_events(table: pa.Table, key: tuple[str, ...], time: str) -> Events:
    """The events of a table in total order."""
    if table.num_rows < WORTH_A_THREAD:
        t, in_time = read_times(table, time)
        return order_events(*encode_keys(table, key), t, t, in_time)
    with ThreadPoolExecutor(1) as pool:
        encoded = pool.submit(encode_keys, table, key)
        t, in_time = read_times(table, time)
        codes, keys = encoded.result()
    return order_events(codes, keys, t, t, in_time)


def order_events(
    codes: Array, keys: pa.Table, t: Array, last: Array, in_time: bool = False
) -> Events:
    """Rows with key codes and times, in total order; rows may be slices that end at `last`."""
    distinct = keys.num_rows if keys.num_columns else 1
    # Most tables are in order of time: then a stable sort by key is enough.
    if in_time:
        places, counts = places_by_code(codes, distinct)
    else:
        places = stable_places([codes, t] if distinct > 1 else [t], len(t))
        counts = np.bincount(codes, minlength=distinct)
    offsets = np.append(0, np.cumsum(counts))
    if places is None:
        return Events(keys, offsets, None, t, last)
    sorted_t = scatter(t, places)
    return Events(keys, offsets, places, sorted_t, sorted_t if last is t else scatter(last, places))
