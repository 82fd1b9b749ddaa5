"""Windows of a stream by events: of any kind, and of aggregates that keep values.

Events are kept in a log while a window may need them. Finders say which windows have closed, from
the events that came and the watermark alone (`closing/`); these windows are then computed from
their events, as those of a finite table would be. So a push costs by what comes and what closes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paneflow.engines.multicore.closing.event_log import EventLog
from paneflow.engines.multicore.closing.finders import Extents
from paneflow.engines.multicore.closing.opening import finders
from paneflow.engines.multicore.contract import Batch, Result, Rows
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.engines.table import answer
from paneflow.slicing.bounds.given import Given
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.columns import one_chunk

if TYPE_CHECKING:
    from paneflow.query import Query

CODE = "\0key"


class ByEvents:
    """The open windows of a stream, by their events."""

    def __init__(self, query: Query, labels: Mapping[str, int], merge: str = "auto") -> None:
        self._merge = merge
        self._query = query
        self._names = {labels[name]: name for name in query.windows}
        self._log = EventLog()
        self._finders = finders(query.windows, labels, self._log)
        read = [c for a in query.aggregates.values() for c in a.columns]
        self._columns = list(dict.fromkeys([query.time, *read]))

    @property
    def held(self) -> int:
        """How many events are remembered."""
        return self._log.end

    def take(self, events: Batch) -> None:
        """Remember events, and find the windows that they close."""
        first = self._log.take(events, events.given.select(self._columns))
        for finder in self._finders:
            finder.take(events, first)

    def advance(self, watermark: int, arrived: float) -> list[Rows]:
        """The windows that are final at the watermark."""
        found = [finder.advance(watermark) for finder in self._finders]
        return [self._answered(each, arrived) for each in found if each is not None]

    def settle(self) -> None:
        """What has been taken and given out stays so."""
        for finder in self._finders:
            finder.settle()
        self._log.settle(self._finders)

    def undo(self) -> None:
        """As it was when it was settled."""
        for finder in self._finders:
            finder.undo()
        self._log.undo()

    def _answered(self, found: Extents, arrived: float) -> Rows:
        """The rows of windows, as a query over a table that has nothing but their events."""
        query, name = self._query, self._names[found.label]
        keys, local = np.unique(self._log.key[found.slots], return_inverse=True)
        order = np.argsort(found.slots)
        batch = self._log.gather(found.slots[order])
        if len(self._log.behind):
            # Stragglers of equal time may stand before others, as their sources do.
            again = np.argsort(self._log.moments[found.slots[order]], kind="stable")
            order, batch = order[again], batch.take(pa.array(again))
        table = pa.Table.from_batches([batch]).append_column(CODE, pa.array(local[order]))
        of = np.searchsorted(keys, found.key).astype(np.int32)
        given = Given(query.windows[name], Ranges(of, found.seq, found.lo, found.hi))
        question = type(query)({name: given}, query.aggregates, CODE, query.time)
        rows = answer(question, table, merge=self._merge)
        seq, start, end, code = (
            one_chunk(rows.column(c)).cast(pa.int64()).to_numpy()
            for c in ("seq", "start", "end", CODE)
        )
        results = {each: Result(one_chunk(rows.column(each)), None) for each in query.aggregates}
        label = np.full(len(seq), found.label, np.int32)
        return Rows(label, keys[code], seq, start, end, results, arrived, BEFORE_ALL)
