"""Computes closed windows from their events, as those of a finite table would be.

Windows are ranges of events, so overlapping ones share the events, and the slices made of them:
nothing is copied for a window of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.closing.event_log import EventLog
from paneflow.engines.multicore.closing.finders import Extents
from paneflow.engines.multicore.contract import Result, Rows
from paneflow.engines.multicore.stores.joined_batches import JoinedBatches
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.engines.table import answer
from paneflow.slicing.bounds.given import Given
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.columns import one_chunk

if TYPE_CHECKING:
    from paneflow.query import Query

CODE = "\0key"


class Closed(NamedTuple):
    """Windows that have closed, and all that is needed to compute them, in any thread."""

    windows: Extents
    """Their ranges are counted from the first of the slots."""
    key: Array
    """For each slot, the code of its key: in order, since windows come key by key."""
    moments: Array | None
    """For each slot, what orders the events; None if the slots themselves do."""
    pieces: JoinedBatches

    @classmethod
    def of(cls, found: Extents, log: EventLog) -> Closed:
        """Windows over a log, with what they need of it; pieces of the log never change."""
        first, end = int(found.lo[0]), int(found.hi[-1])
        slots = found.slots[first:end]
        return cls(
            found.moved(slots, first),
            log.key[slots],
            # Stragglers of equal time may stand before others, as their sources do.
            log.moments[slots] if len(log.behind) else None,
            log.lent(int(slots.min()), int(slots.max())),
        )


def answered(query: Query, name: str, closed: Closed, arrived: float, merge: str) -> Rows:
    """The rows of closed windows: a query over a table that has nothing but their events."""
    found, slots = closed.windows, closed.windows.slots
    keys, local = np.unique(closed.key, return_inverse=True)
    order = np.argsort(slots)
    batch = closed.pieces.gather(slots[order])
    if closed.moments is not None:
        again = np.argsort(closed.moments[order], kind="stable")
        order, batch = order[again], batch.take(pa.array(again))
    table = pa.Table.from_batches([batch]).append_column(CODE, pa.array(local[order]))
    of = np.searchsorted(keys, found.key).astype(np.int32)
    given = Given(query.windows[name], Ranges(of, found.seq, found.lo, found.hi))
    question = type(query)({name: given}, query.aggregates, CODE, query.time)
    rows = answer(question, table, merge=merge)
    seq, start, end, code = (
        one_chunk(rows.column(c)).cast(pa.int64()).to_numpy() for c in ("seq", "start", "end", CODE)
    )
    results = {each: Result(one_chunk(rows.column(each)), None) for each in query.aggregates}
    label = np.full(len(seq), found.label, np.int32)
    return Rows(label, keys[code], seq, start, end, results, arrived, BEFORE_ALL)
