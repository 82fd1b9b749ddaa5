"""The final events of a stream that windows may need, each with a way to the next of its key.

An event has a number, its slot. Slots grow with time, so the events of a span of time stand side
by side; only stragglers, which come behind the watermark, stand elsewhere, and in no chain. Events
are kept as they came, in batches that are joined while they are short.

When more than half of the slots may be unused, those that no window needs are removed and the
others are renumbered. That takes time in proportion to what is held, but it happens only after as
many events again have come.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.stores.growing import Grown, KeyState
from paneflow.engines.multicore.stores.joined_batches import JoinedBatches
from paneflow.engines.multicore.tuning import tuning

NOTHING = -1


class Slots(Protocol):
    """Something that refers to slots."""

    def needed(self) -> Array:
        """Which of all slots a later window may need."""
        ...

    def moved(self, needed: Array, places: Array) -> None:
        """Those that were needed have new places."""
        ...


class EventLog:
    """Events in slots, by columns."""

    def __init__(self) -> None:
        self.end = 0
        self._t, self._clock, self._key, self._next = (Grown() for _ in range(4))
        self._order: Grown | None = None
        self._last = KeyState(NOTHING)
        self._pieces = JoinedBatches([], [])
        self._settled = self._live = 0
        self.behind: Array = np.empty(0, np.int64)
        """The slots of stragglers."""

    def __len__(self) -> int:
        return self.end

    @property
    def t(self) -> Array:
        """Times, by slot."""
        return self._t.values[: self.end]

    @property
    def moments(self) -> Array:
        """What tells in which order events stand, by slot; equal ones stand in order of slots."""
        return self.t if self._order is None else self._order.values[: self.end]

    @property
    def key(self) -> Array:
        """Codes of keys, by slot."""
        return self._key.values[: self.end]

    @property
    def next(self) -> Array:
        """The slot of the next event of the same key."""
        return self._next.values[: self.end]

    @property
    def clock(self) -> Array:
        """The latest time up to each slot."""
        return self._clock.values[: self.end]

    def take(self, events: Batch, batch: pa.RecordBatch) -> int:
        """Add events behind all others, with the columns to keep; gives the slot of the first."""
        key, t = events.key, events.t
        first, n = self.end, len(t)
        clock = np.maximum.accumulate(t)
        if first:
            clock = np.maximum(clock, self._clock.values[first - 1])
        self._t.put(first, t)
        if events.order is not None:
            self._order = self._order or Grown()
            self._order.put(first, events.order)
        self._clock.put(first, clock)
        self._key.put(first, key)
        self._next.put(first, np.full(n, NOTHING))
        self.end += n
        if events.behind:
            self.behind = np.append(self.behind, np.arange(first, self.end))
        else:
            self._last.touch(key)
            _link(first, key, self._last.values[0], self._next.values)
        self._pieces.starts.append(first)
        self._pieces.batches.append(batch)
        return first

    def between(self, start: int | None, end: int) -> Array:
        """The slots of the events of a span of time, in their order."""
        clock = self.clock
        first = 0 if start is None else int(np.searchsorted(clock, start))
        slots = np.arange(first, int(np.searchsorted(clock, end)))
        if len(self.behind):
            slots = np.union1d(slots, self.behind)
            t = self._t.values[slots]
            slots = slots[(t < end) if start is None else (t >= start) & (t < end)]
        return slots

    def lent(self, first: int, last: int) -> JoinedBatches:
        """The events from one slot to another, to be read by any thread at any time."""
        starts, batches = self._pieces.starts, self._pieces.batches
        a, b = bisect_right(starts, first) - 1, bisect_right(starts, last)
        return JoinedBatches(starts[a:b], batches[a:b])

    def settle(self, users: Sequence[Slots]) -> None:
        """What was added stays; what no window needs is dropped, if there is much of it."""
        self._last.settle()
        self._pieces.join(tuning.joined_events)
        if self.end > 2 * self._live + tuning.spare_slots:
            self._close_up(users)
        self._settled = self.end

    def undo(self) -> None:
        """As it was when it was settled."""
        touched = self.key[self._settled :]
        self.end = self._settled
        self.behind = self.behind[self.behind < self.end]
        self._pieces.cut(self.end)
        self._last.undo()
        if touched.size:
            self._last.reserve(touched)
            last = self._last.values[0][touched]
            self._next.values[last[last >= 0]] = NOTHING

    def _close_up(self, users: Sequence[Slots]) -> None:
        needed = np.zeros(self.end, np.bool_)
        for user in users:
            needed |= user.needed()
        places = np.where(needed, np.cumsum(needed) - 1, NOTHING)
        live = np.flatnonzero(needed)
        self._pieces = (
            JoinedBatches([0], [self._pieces.gather(live)]) if len(live) else JoinedBatches([], [])
        )
        following = self.next
        self._next.values[: self.end] = np.where(following == NOTHING, NOTHING, places[following])
        for column in (self._t, self._clock, self._key, self._next, self._order):
            if column is not None:
                column.keep(needed)
        last = self._last.values[0]
        last[:] = np.where(last == NOTHING, NOTHING, places[last])
        self.behind = places[self.behind[needed[self.behind]]]
        for user in users:
            user.moved(needed, places)
        self.end = self._live = int(np.count_nonzero(needed))


@compiled
def _link(first, key, last, following):  # type: ignore[no-untyped-def]
    for i in range(len(key)):
        before = last[key[i]]
        if before >= 0:
            following[before] = first + i
        last[key[i]] = first + i
