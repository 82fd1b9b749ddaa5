"""The finder of sessions, which stragglers may join while they are open.

A key has one open session at most: an event far enough behind the last one of its session is final
only when the watermark has ended that session. Stragglers stand in no chain, so those of an open
session are listed beside it. They are few.
"""

from __future__ import annotations

import heapq

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.closing import loops
from paneflow.engines.multicore.closing.event_log import EventLog
from paneflow.engines.multicore.closing.finders import ByKey, Extents
from paneflow.engines.multicore.closing.loops import EARLIEST, LATEST, SEQ
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.ticks import BEFORE_ALL
from paneflow.windows import Session

Joined = dict[tuple[int, int], list[int]]
"""By key and number of an open session, the slots of its stragglers."""


class BySession(ByKey):
    """Runs of events with no gap between them."""

    window: Session

    def __init__(self, label: int, window: Session, log: EventLog) -> None:
        super().__init__(label, window, log, BEFORE_ALL, BEFORE_ALL)
        self._gap = window.gap.value
        self._before = BEFORE_ALL
        self._joined: Joined = {}
        self._due: list[tuple[int, int]] = []
        """When stragglers end their sessions, and their keys: a heap."""
        self._before_all = self._before, self._joined, self._due

    def take(self, events: Batch, first: int) -> None:
        if events.behind:
            self._join(events, first)
        else:
            super().take(events, first)

    def step(self, events: Batch, first: int, out: Array) -> int:
        columns = (self.log.t, self.state.values)
        found: int = loops.session(first, events.key, *columns, out, self._gap)
        return found

    def advance(self, watermark: int) -> Extents | None:
        self._before = watermark
        return super().advance(watermark)

    def _join(self, events: Batch, first: int) -> None:
        """Let stragglers join open sessions, or open one if it is still open at the watermark."""
        self.state.touch(events.key)
        earliest, latest = self.state.values[EARLIEST], self.state.values[LATEST]
        # The latest first: one that came before them may be in their session only with them.
        for at in range(len(events) - 1, -1, -1):
            slot, k, t = first + at, int(events.key[at]), int(events.t[at])
            if earliest[k] == BEFORE_ALL:
                if t + self._gap < self._before:
                    continue
                earliest[k] = latest[k] = t
            elif t < earliest[k] - self._gap or t > latest[k] + self._gap:
                continue
            earliest[k], latest[k] = min(earliest[k], t), max(latest[k], t)
            number = int(self.state.values[SEQ, k])
            self._joined.setdefault((k, number), []).append(slot)
            heapq.heappush(self._due, (t + self._gap, k))

    def reached(self, watermark: int) -> int:
        return watermark - self._gap

    def close(self, seen: int, key: Array, watermark: int, out: Array) -> int:
        found: int = loops.pass_gaps(seen, key, self.state.values, out, self._gap, watermark)
        return found

    def pass_by(self, watermark: int) -> None:
        super().pass_by(watermark)
        due = []
        while self._due and self._due[0][0] < watermark:
            due.append(heapq.heappop(self._due)[1])
        if due:
            keys = np.array(due)
            self.state.touch(keys)
            out = np.empty((4, len(keys)), np.int64)
            state = self.state.values
            self.found(out, loops.end_sessions(keys, state, out, self._gap, watermark))

    def collected(self, key: Array, seq: Array, first: Array, events: Array) -> Extents:
        if not self._joined:
            return super().collected(key, seq, first, events)
        moments, following = self.log.moments, self.log.next
        parts = []
        for i, number in enumerate(zip(key.tolist(), seq.tolist(), strict=True)):
            slots = self._joined.pop(number, [])
            at = int(first[i])
            for _ in range(int(events[i])):
                slots.append(at)
                at = int(following[at])
            mine = np.sort(np.array(slots))
            parts.append(mine[np.argsort(moments[mine], kind="stable")])
        hi = np.cumsum([len(part) for part in parts])
        return self.extents(key, seq, np.append(0, hi[:-1]), hi, np.concatenate(parts))

    def needed(self) -> Array:
        needed = super().needed()
        for slots in self._joined.values():
            needed[slots] = True
        return needed

    def moved(self, needed: Array, places: Array) -> None:
        super().moved(needed, places)
        self._joined = {number: places[slots].tolist() for number, slots in self._joined.items()}
        self._note()

    def settle(self) -> None:
        super().settle()
        self._note()

    def undo(self) -> None:
        super().undo()
        self._before, joined, due = self._before_all
        self._joined = {number: list(slots) for number, slots in joined.items()}
        self._due = list(due)

    def _note(self) -> None:
        joined = {number: list(slots) for number, slots in self._joined.items()}
        self._before_all = self._before, joined, list(self._due)
