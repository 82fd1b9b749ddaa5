"""Events that wait to become final, in sorted runs, so that a push does not touch all of them.

What arrives is sorted and appended as a run. Neighbouring runs are merged while the earlier one is
less than twice as long as the later, which keeps them few and moves each event a logarithmic number
of times. Long runs are not merged any further, which bounds the cost of a single push. What has
become final is cut off the front of the runs that have some of it, and only that is sorted.

Events with the same time and source stay in the order of arrival: runs are in that order, each is
sorted stably, and only neighbours are merged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.engines.multicore.tuning import tuning
from paneflow.slicing.ordering import is_sorted, stable_order


@dataclass(frozen=True, eq=False)
class SortedRun:
    """Events in order of (time, source)."""

    batch: pa.RecordBatch
    t: Array
    source: Array
    """The source of each event; empty if there is only one."""

    def __len__(self) -> int:
        return len(self.t)

    def between(self, start: int, end: int) -> SortedRun:
        """Consecutive events, as views."""
        batch = self.batch.slice(start, end - start)
        return SortedRun(batch, self.t[start:end], self.source[start:end])


class HeldEvents:
    """Takes events in any order and releases them in order of (time, source, arrival)."""

    def __init__(self) -> None:
        self._runs: list[SortedRun] = []
        self.moved = 0
        """How many events were sorted or copied, counted each time: the cost of holding them."""

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, batch: pa.RecordBatch, t: Array, source: Array) -> None:
        """Hold more events."""
        if len(t):
            self._runs.append(self.in_order(SortedRun(batch, t, source)))

    def all(self) -> SortedRun | None:
        """All events in order, without removing them; None if there are none."""
        if len(self._runs) > 1:
            return self.in_order(joined(self._runs))
        return self._runs[0] if self._runs else None

    def release(self, until: int) -> SortedRun | None:
        """Remove and return all events before a time; None if there are none."""
        final, held = [], []
        for run in self._runs:
            if run.t[0] >= until:
                held.append(run)
                continue
            cut = len(run)
            if run.t[-1] >= until:
                cut = int(np.searchsorted(run.t, until))
                held.append(run.between(cut, len(run)))
            final.append(run if cut == len(run) else run.between(0, cut))
        self._runs = self._merged(held)
        if len(final) > 1:
            return self.in_order(joined(final))
        return final[0] if final else None

    def in_order(self, run: SortedRun) -> SortedRun:
        """The same events, sorted; those with equal time and source keep their order."""
        if is_sorted(run.t) if len(run.source) == 0 else _in_order(run.t, run.source):
            return run
        self.moved += len(run)
        order = stable_order([run.t, run.source] if len(run.source) else [run.t], len(run))
        if order is None:
            return run
        source = run.source[order] if len(run.source) else run.source
        return SortedRun(run.batch.take(pa.array(order)), run.t[order], source)

    def _merged(self, given: list[SortedRun]) -> list[SortedRun]:
        """The same events in fewer runs."""
        runs: list[SortedRun] = []
        for run in given:
            last = run
            while runs and len(runs[-1]) < min(2 * len(last), tuning.longest_run - len(last)):
                last = self.in_order(joined([runs.pop(), last]))
                self.moved += len(last)
            runs.append(last)
        return runs


def joined(runs: list[SortedRun]) -> SortedRun:
    """Runs, concatenated."""
    return SortedRun(
        pa.concat_batches([run.batch for run in runs]),
        np.concatenate([run.t for run in runs]),
        np.concatenate([run.source for run in runs]),
    )


@compiled
def _in_order(t, source):  # type: ignore[no-untyped-def]
    for i in range(1, len(t)):
        if t[i] < t[i - 1]:
            return False
        if t[i] == t[i - 1] and source[i] < source[i - 1]:
            return False
    return True
