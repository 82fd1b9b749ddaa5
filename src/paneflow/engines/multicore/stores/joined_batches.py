"""Consecutive batches of events, joined while they are short."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array


@dataclass(frozen=True)
class JoinedBatches:
    """Consecutive batches of events, and the slots at which they begin."""

    starts: list[int]
    batches: list[pa.RecordBatch]

    def gather(self, slots: Array) -> pa.RecordBatch:
        """The events in some slots, given in increasing order."""
        taken = []
        at = 0
        while at < len(slots):
            k = bisect_right(self.starts, int(slots[at])) - 1
            start, batch = self.starts[k], self.batches[k]
            to = int(np.searchsorted(slots, start + batch.num_rows))
            mine = slots[at:to] - start
            if len(mine) == mine[-1] - mine[0] + 1:
                taken.append(batch.slice(int(mine[0]), len(mine)))
            else:
                taken.append(batch.take(pa.array(mine)))
            at = to
        return taken[0] if len(taken) == 1 else pa.concat_batches(taken)

    def join(self, longest: int) -> None:
        """Join the last batches while they are short, up to some length."""
        while len(self.batches) > 1:
            before, last = self.batches[-2:]
            if before.num_rows + last.num_rows > longest or before.num_rows >= 2 * last.num_rows:
                return
            self.batches[-2:] = [pa.concat_batches([before, last])]
            self.starts.pop()

    def cut(self, end: int) -> None:
        """Drop batches that begin at a slot or after it."""
        while self.starts and self.starts[-1] >= end:
            self.starts.pop()
            self.batches.pop()
