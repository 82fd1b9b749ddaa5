"""Rows of windows that are not final: each whenever events have changed it.

What an open window holds by now is what its row would be if the stream ended here. So events that
wait for the watermark are fed to the strategy as if they were final, all windows are closed, and
then the strategy goes back to where it was. That costs by what is open.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.live.changed import changed_windows
from paneflow.engines.multicore.contract import Rows
from paneflow.engines.multicore.intake.front import Front
from paneflow.engines.multicore.intake.row_guard import RowGuard
from paneflow.engines.multicore.one_worker.single import Single
from paneflow.engines.multicore.pump.row_order import RowOrder, some_rows
from paneflow.engines.multicore.ticks import END_OF_STREAM

if TYPE_CHECKING:
    from paneflow.query import Query


class EarlyRows:
    """Asks one worker for rows before they are final."""

    def __init__(self, query: Query, front: Front, strategy: Single, order: RowOrder) -> None:
        self._windows = [query.windows[label] for label in sorted(query.windows)]
        self._front = front
        self._strategy = strategy
        self._order = order

    def changed(self, guard: RowGuard) -> pa.Table | None:
        """The rows, as they stand, that events since the last call have changed; in order."""
        fresh = self._front.fresh_events()
        if fresh is None:
            return None
        held = self._front.held_events()
        guard.check_open(held)
        shown = [self._hit(rows, fresh) for rows in self._strategy.early(held)]
        shown = [rows for rows in shown if len(rows)]
        return self._order.table(shown) if shown else None

    def _hit(self, rows: Rows, fresh: tuple[Array, Array]) -> Rows:
        hit = np.zeros(len(rows), np.bool_)
        for label, window in enumerate(self._windows):
            mine = rows.label == label
            of = rows.key[mine], rows.start[mine], rows.end[mine]
            hit[mine] = changed_windows(window, *of, fresh)
        return some_rows(replace(rows, passed=END_OF_STREAM), hit)
