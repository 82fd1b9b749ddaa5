"""The final events of a stream that windows may need, each with a way to the next of its key.

An event has a number, its slot. Slots grow with time, so the events of a span of time stand side
by side; only stragglers, which come behind the watermark, stand elsewhere, and in no chain. Events
are kept as they came, in batches that are joined while they are short.

When more than half of the slots may be in vain, those that no window needs are taken out and the
others get new numbers. That costs by what is held, but as seldom as it is held twice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.engines.multicore.closing.key_state import Grown, KeyState

PIECE = 4096
"""Events of a batch that is joined with others no more."""
SPARE = 2**16
"""Slots that may be in vain, however few events are needed."""
NOTHING = -1


class Slots(Protocol):
    """Somebody who keeps slots."""

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
        self._last = KeyState(NOTHING)
        self._starts: list[int] = []
        self._pieces: list[pa.RecordBatch] = []
        self._settled = self._live = 0
        self.behind: Array = np.empty(0, np.int64)
        """The slots of stragglers."""

    @property
    def t(self) -> Array:
        """Times, by slot."""
        return self._t.values[: self.end]

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

    def take(self, key: Array, t: Array, batch: pa.RecordBatch | None, behind: bool) -> int:
        """Add events behind all others; gives the slot of the first."""
        first, n = self.end, len(t)
        clock = np.maximum.accumulate(t)
        if first:
            clock = np.maximum(clock, self._clock.values[first - 1])
        self._t.put(first, t)
        self._clock.put(first, clock)
        self._key.put(first, key)
        self._next.put(first, np.full(n, NOTHING))
        self.end += n
        if behind:
            self.behind = np.append(self.behind, np.arange(first, self.end))
        else:
            self._last.touch(key)
            _link(first, key, self._last.values[0], self._next.values)
        if batch is not None:
            self._starts.append(first)
            self._pieces.append(batch)
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

    def gather(self, slots: Array) -> pa.RecordBatch:
        """The events in some slots, which grow."""
        taken = []
        at = 0
        while at < len(slots):
            k = bisect_right(self._starts, int(slots[at])) - 1
            start, piece = self._starts[k], self._pieces[k]
            to = int(np.searchsorted(slots, start + piece.num_rows))
            mine = slots[at:to] - start
            if len(mine) == mine[-1] - mine[0] + 1:
                taken.append(piece.slice(int(mine[0]), len(mine)))
            else:
                taken.append(piece.take(pa.array(mine)))
            at = to
        return taken[0] if len(taken) == 1 else pa.concat_batches(taken)

    def settle(self, users: Sequence[Slots]) -> None:
        """What was added stays; what nobody needs is dropped, when there is much of it."""
        self._last.settle()
        self._join_pieces()
        if self.end > 2 * self._live + SPARE:
            self._close_up(users)
        self._settled = self.end

    def undo(self) -> None:
        """As it was when it was settled."""
        touched = self.key[self._settled :]
        self.end = self._settled
        self.behind = self.behind[self.behind < self.end]
        while self._starts and self._starts[-1] >= self.end:
            self._starts.pop()
            self._pieces.pop()
        self._last.undo()
        if touched.size:
            self._last.reserve(touched)
            last = self._last.values[0][touched]
            self._next.values[last[last >= 0]] = NOTHING

    def _join_pieces(self) -> None:
        """Let there be few batches, behind those that are long enough."""
        while len(self._pieces) > 1:
            before, last = self._pieces[-2:]
            if before.num_rows + last.num_rows > PIECE or before.num_rows >= 2 * last.num_rows:
                return
            self._pieces[-2:] = [pa.concat_batches([before, last])]
            self._starts.pop()

    def _close_up(self, users: Sequence[Slots]) -> None:
        needed = np.zeros(self.end, np.bool_)
        for user in users:
            needed |= user.needed()
        places = np.where(needed, np.cumsum(needed) - 1, NOTHING)
        if self._pieces:
            live = np.flatnonzero(needed)
            self._pieces = [self.gather(live)] if len(live) else []
            self._starts = [0] if len(live) else []
        following = self.next
        self._next.values[: self.end] = np.where(following == NOTHING, NOTHING, places[following])
        for column in (self._t, self._clock, self._key, self._next):
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
