"""Every other window of a stream, by what finite tables know of it.

Sessions, windows by positions, marks or growing values, and time windows of aggregates that keep
values: `slicing/stream.py` holds what is still needed, and finds windows anew at each step. This
asks it, and puts what it answers into the form that all strategies give.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.contract import Result, Rows
from paneflow.engines.multicore.front import Events
from paneflow.engines.multicore.keys import KeyCodes
from paneflow.engines.multicore.passing import NEVER
from paneflow.engines.multicore.replaying import answering
from paneflow.slicing.columns import one_chunk
from paneflow.slicing.stream import Held, OpenWindows
from paneflow.windows import Session, Sliding

if TYPE_CHECKING:
    from paneflow.query import Query


class ByTable:
    """The open windows of a stream, of any kind that can be taken up again where it was left."""

    def __init__(self, query: Query, labels: Mapping[str, int], schema: pa.Schema) -> None:
        self._query = query
        self._labels = labels
        self._schema = schema
        self._windows = OpenWindows(query, schema)
        self._held = Held(self._windows.layout.empty_table(), schema.empty_table(), None)
        self._before: int | None = None
        self._fresh: list[pa.Table] = []
        self._keys: KeyCodes | None = None
        self._sessions = {
            labels[label]: np.empty(0, np.int64)
            for label, window in query.windows.items()
            if isinstance(window, Session)
        }

    @property
    def held(self) -> int:
        """How many slices and events are remembered."""
        fresh = sum(table.num_rows for table in self._fresh)
        return int(self._held.slices.num_rows + self._held.events.num_rows + fresh)

    def copy(self) -> ByTable:
        """As it is now."""
        other = copy.copy(self)
        other._fresh = list(self._fresh)
        other._sessions = {label: counted.copy() for label, counted in self._sessions.items()}
        return other

    def take(self, events: Events) -> None:
        """Remember events until the watermark moves."""
        self._keys = events.keys
        self._fresh.append(events.table)

    def advance(self, watermark: int, arrived: float) -> Rows | None:
        """The windows that are final at the watermark, if there are any."""
        if watermark == NEVER or self._keys is None or not self._due(watermark):
            return None
        kept = self._held.events.select(self._schema.names)
        came = pa.concat_tables([kept, *self._fresh])
        with answering(self._query.aggregates, came):
            fresh = [self._windows.sent(came.slice(kept.num_rows))] if self._fresh else []
            self._fresh = []
            slices, events = self._windows.received(fresh)
            table, self._held, _ = self._windows.advance(
                self._held, slices, events, self._before, watermark
            )
        self._before = watermark
        if table.num_rows == 0:
            return None
        return self._as_rows(table.combine_chunks(), self._keys, arrived)

    def _due(self, watermark: int) -> bool:
        """Whether a window may have ended: only of time windows is it known beforehand."""
        before = self._before
        return before is None or any(
            not isinstance(w, Sliding) or _ended(w, watermark + 1) > _ended(w, before)
            for w in self._query.windows.values()
        )

    def _as_rows(self, table: pa.Table, keys: KeyCodes, arrived: float) -> Rows:
        window = one_chunk(table.column("window").cast(pa.string())).dictionary_encode()
        labels = [self._labels[name] for name in window.dictionary.to_pylist()]
        label = np.array(labels, np.int32)[window.indices.to_numpy(zero_copy_only=False)]
        start, end = (table.column(c).cast(pa.int64()).to_numpy() for c in ("start", "end"))
        names = ["seq", *self._query.key]
        columns = [one_chunk(table.column(name)) for name in names]
        key = keys.encode(pa.RecordBatch.from_arrays(columns, names=names))
        seq = columns[0].fill_null(0).to_numpy().copy()
        for number in self._sessions:
            self._number(number, label, key, end, seq)
        results = {
            name: Result(one_chunk(table.column(name)), None) for name in self._query.aggregates
        }
        return Rows(label, key, seq, start, end, results, arrived, NEVER)

    def _number(self, number: int, label: Array, key: Array, end: Array, seq: Array) -> None:
        """Number the sessions of each key, which come in order of time."""
        mine = np.flatnonzero(label == number)
        if len(mine) == 0:
            return
        mine = mine[np.lexsort((end[mine], key[mine]))]
        of = key[mine]
        counted = self._sessions[number]
        more = int(of[-1]) + 1 - len(counted)
        if more > 0:
            counted = self._sessions[number] = np.append(counted, np.zeros(more, np.int64))
        heads = np.ones(len(of), np.bool_)
        heads[1:] = of[1:] != of[:-1]
        first = np.flatnonzero(heads)
        sizes = np.diff(np.append(first, len(of)))
        seq[mine] = counted[of] + np.arange(len(of)) - np.repeat(first, sizes)
        counted[of[first]] += sizes


def _ended(window: Sliding, tick: int) -> int:
    """The number of the last window that ends at a tick or before it."""
    return (tick - window.offset.value - window.range.value) // window.slide.value
