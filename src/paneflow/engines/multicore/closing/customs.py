"""The finder of custom windows: each final event is shown to the user's `step` once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.live.replayed_steps import TYPES, step_through
from paneflow.engines.multicore.closing import loops
from paneflow.engines.multicore.closing.event_log import EventLog
from paneflow.engines.multicore.closing.finders import ByKey
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.stores.growing import Grown, KeyState
from paneflow.slicing.ordering import stable_order
from paneflow.windows import Custom


class ByStep(ByKey):
    """Windows that a user's `step` opens and closes."""

    window: Custom

    def __init__(self, label: int, window: Custom, log: EventLog) -> None:
        super().__init__(label, window, log, 0, 0, 0)
        self._marks = Grown()
        self._states = [KeyState(v, dtype=TYPES[type(v)]) for v in window.initial]

    def step(self, events: Batch, first: int, out: Array) -> int:
        keys, local = np.unique(events.key, return_inverse=True)
        order = stable_order([local], len(local))
        table, t = pa.Table.from_batches([events.given]), events.t
        if order is not None:
            table, t, local = table.take(pa.array(order)), t[order], local[order]
        for state in self._states:
            state.touch(keys)
        reached = [state.values[0][keys] for state in self._states]
        offsets = np.searchsorted(local, np.arange(len(keys) + 1))
        marks = step_through(self.window, table, t, offsets, reached)
        for state, values in zip(self._states, reached, strict=True):
            state.values[0, keys] = values
        if order is not None:
            marks[order] = marks.copy()
        self._marks.put(first, marks)
        columns = (self._marks.values, self.log.next, self.state.values)
        found: int = loops.marked(first, events.key, *columns, out)
        return found

    def moved(self, needed: Array, places: Array) -> None:
        super().moved(needed, places)
        self._marks.keep(needed)

    def settle(self) -> None:
        super().settle()
        for state in self._states:
            state.settle()

    def undo(self) -> None:
        super().undo()
        for state in self._states:
            state.undo()
