"""The Hash-Once approach (HOA, chapter 7 of the thesis): a ring, and hashing only at the entrance.

The PU at which an event enters the ring computes which PU is responsible for each of its windows,
and the event carries a list of windows for each PU along. The hash is that of the Handshake
approach, but every hash operation is done once, and because events enter at all PUs in turn, each
PU does a P-th of them.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.engines.multicore.contract import Batch
from paneflow.engines.multicore.topologies.cycle import Cycle, CycleUnit, Round
from paneflow.engines.multicore.topologies.handshake import owner
from paneflow.engines.multicore.topologies.parts.messages import Work
from paneflow.engines.multicore.tuning import tuning


class Responsibilities(NamedTuple):
    """Pairs of event and window, sorted by responsible PU."""

    starts: Array
    which: Array
    numbers: Array


class HashOnceUnit(CycleUnit):
    """A PU that hashes what enters here, and looks up what arrives along the ring."""

    def enter(self, work: Work) -> Round:
        if work.events is None:
            return Round(work)
        lists = []
        for span in self.question.spans:
            ticks = work.ticks(span)
            room = len(ticks) * span.most
            found = Responsibilities(
                np.zeros(self.workers + 1, np.int64),
                np.empty(room, np.int64),
                np.empty(room, np.int64),
            )
            self.counts["hash_operations"] += _list_by_owner(
                work.events.key,
                ticks,
                work.open(span).numbers,
                self.workers,
                np.empty(room, np.int64),
                *found,
            )
            lists.append(found)
        return Round(work, lists)

    def contribute_round(self, message: Round) -> None:
        if message.work.events is None:
            return
        for cells, (starts, which, numbers) in zip(self.cells, message.added, strict=True):
            mine = slice(starts[self.rank], starts[self.rank + 1])
            self.counts["windows_found"] += len(which[mine])
            self.counts["window_updates"] += cells.absorb(
                message.work.events, which[mine], numbers[mine]
            )


class HashOnce(Cycle):
    """HOA."""

    name: ClassVar[str] = "hash_once"
    unit: ClassVar[type[CycleUnit]] = HashOnceUnit

    def feed(self, batch: Batch) -> None:
        most = max(1, tuning.carried_pairs // sum(span.most for span in self._question.spans))
        for start in range(0, len(batch), most):
            super().feed(batch.between(start, min(start + most, len(batch))))


@compiled
def _list_by_owner(key, ticks, span, workers, owners, starts, which, numbers):  # type: ignore[no-untyped-def]
    reach, slide, offset, lowest = span
    hashed = 0
    for i in range(len(ticks)):
        since = ticks[i] - offset
        for window in range(max((since - reach) // slide + 1, lowest), since // slide + 1):
            owners[hashed] = owner(window, key[i], workers)
            starts[owners[hashed] + 1] += 1
            hashed += 1
    places = np.empty(workers, np.int64)
    for rank in range(workers):
        starts[rank + 1] += starts[rank]
        places[rank] = starts[rank]
    at = 0
    for i in range(len(ticks)):
        since = ticks[i] - offset
        for window in range(max((since - reach) // slide + 1, lowest), since // slide + 1):
            place = places[owners[at]]
            places[owners[at]] += 1
            which[place] = i
            numbers[place] = window
            at += 1
    return hashed
