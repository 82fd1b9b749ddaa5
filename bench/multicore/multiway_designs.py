"""The designs of figures 3 to 6: which thread does which of Add, S-Merge, Update and Output.

All of them update windows by the same compiled loops; they differ in which thread does it, and in
what lies between the threads. Input threads push batches as fast as they are taken.
"""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from typing import ClassVar

import numpy as np

from bench.multicore.heap_merge import heap_merge
from bench.multicore.multiway_data import KINDS, RATE, Asked, Given
from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.multiway.hive_units import Hives
from paneflow.engines.multicore.multiway.slice_hive import SliceHives
from paneflow.engines.multicore.multiway.tuple_gate import TupleGate
from paneflow.engines.multicore.multiway.window_hive import WindowHives
from paneflow.engines.multicore.ticks import BEFORE_ALL, END_OF_STREAM
from paneflow.engines.multicore.topologies.parts.messages import Work
from paneflow.engines.multicore.topologies.parts.question import Inputs

BATCH = 5 * RATE
AHEAD = 20
"""Units of time, or tuples in that time, that an input may be ahead of the slowest."""
UPDATERS = 2
PAUSE = 0.0002


class Design(ABC):
    """Shared windows, and what each thread does."""

    hives: ClassVar[type[Hives]] = WindowHives
    ordered: ClassVar[bool] = True
    """Whether it serves functions that depend on the order of events."""

    def __init__(self, asked: Asked, given: Given) -> None:
        self.given = given
        self.inputs = len(given.key)
        self.writers = self.number_of_writers()
        self._hives = self.hives(given.question, asked.query, KINDS, self.writers)
        self._reached = [BEFORE_ALL] * self.writers
        self.failed: list[BaseException] = []

    def number_of_writers(self) -> int:
        """How many threads update windows."""
        return 1

    @abstractmethod
    def add(self, source: int, begin: int, end: int) -> None:
        """Take events of an input, in its thread."""

    @abstractmethod
    def close(self, source: int) -> None:
        """The input has ended."""

    def helpers(self) -> list[threading.Thread]:
        """Threads besides those of the inputs and the output."""
        return []

    def work(self) -> None:
        """Whatever the output thread does besides output."""
        return None

    def update(self, writer: int, events: Inputs, share: tuple[int, int] = (0, 1)) -> None:
        """Update windows."""
        if len(events.t):
            last = int(events.t[-1])
            self._hives.update(writer, Work(0, 0, last, 0.0, events), share)
            self.reach(writer, last)

    def reach(self, writer: int, limit: int) -> None:
        """The writer has passed all windows that end by a time."""
        self._hives.passes(writer, limit)
        self._reached[writer] = limit

    @property
    def reached(self) -> int:
        """All writers have passed the windows that end by this time."""
        return min(self._reached)

    def output(self) -> tuple[int, int]:
        """Give out windows: how many, and up to when all of them have been given out."""
        limit = self.reached
        rows = self._hives.rows([Work(0, 0, limit, 0.0)])
        return sum(map(len, rows)), limit


class WindowMerged(Design):
    """WiML: input threads update windows."""

    ordered: ClassVar[bool] = False

    def __init__(self, asked: Asked, given: Given) -> None:
        super().__init__(asked, given)
        self._cores = threading.Semaphore(os.cpu_count() or 1)

    def number_of_writers(self) -> int:
        return self.inputs

    def add(self, source: int, begin: int, end: int) -> None:
        # The others have not begun yet, or are behind: wait for them.
        while int(self.given.t[source, begin]) - max(self.reached, 0) > AHEAD and not self.failed:
            time.sleep(PAUSE)
        # More threads than cores would only push each other's windows out of the cache.
        with self._cores:
            self.update(source, self.given.part(source, begin, end))

    def close(self, source: int) -> None:
        self.reach(source, END_OF_STREAM)


class SlicesMerged(WindowMerged):
    """WiML over slices."""

    hives: ClassVar[type[Hives]] = SliceHives


class MultiQueue(Design):
    """MQ: queues with a lock, and one thread that does all but Add."""

    def __init__(self, asked: Asked, given: Given) -> None:
        super().__init__(asked, given)
        self._lock = threading.Lock()
        self._queues: list[deque[tuple[int, int]]] = [deque() for _ in range(self.inputs)]
        self._ended = [False] * self.inputs
        self._at = [0] * self.inputs

    def add(self, source: int, begin: int, end: int) -> None:
        while len(self._queues[source]) > AHEAD * RATE // BATCH and not self.failed:
            time.sleep(PAUSE)
        with self._lock:
            self._queues[source].append((begin, end))

    def close(self, source: int) -> None:
        with self._lock:
            self._ended[source] = True

    def work(self) -> None:
        with self._lock:
            ends = [
                queue[-1][1] if queue else self._at[source]
                for source, queue in enumerate(self._queues)
            ]
            latest = [
                END_OF_STREAM if ended else int(t[end - 1]) if end else BEFORE_ALL
                for t, end, ended in zip(self.given.t, ends, self._ended, strict=True)
            ]
        ready = min(latest)
        if ready == BEFORE_ALL:
            return
        upto = [
            at
            + int(np.searchsorted(t[at:end], ready, "left" if ready < END_OF_STREAM else "right"))
            for t, at, end in zip(self.given.t, self._at, ends, strict=True)
        ]
        lengths = np.array(upto) - np.array(self._at)
        if lengths.sum():
            self.update(0, self._merged(upto, lengths))
        with self._lock:
            for source, queue in enumerate(self._queues):
                self._at[source] = upto[source]
                while queue and queue[0][1] <= upto[source]:
                    queue.popleft()
        if ready == END_OF_STREAM:
            self.reach(0, END_OF_STREAM)

    def _merged(self, upto: list[int], lengths: Array) -> Inputs:
        times = np.concatenate(
            [t[at:end] for t, at, end in zip(self.given.t, self._at, upto, strict=True)]
        )
        found = [np.empty(len(times), np.int64) for _ in range(3)]
        heap_merge(times, np.cumsum(lengths), *found)
        return self.given.chosen(found[1], found[2] + np.array(self._at)[found[1]])


class TupleMerged(Design):
    """TuML-SC: input threads merge by a T-Gate, and one thread does Update and Output."""

    def __init__(self, asked: Asked, given: Given) -> None:
        super().__init__(asked, given)
        self._gate = TupleGate(self.inputs, self.writers, 2 * AHEAD * RATE)
        self._taken = [0] * self.writers

    def add(self, source: int, begin: int, end: int) -> None:
        self._gate.insert(source, self.given.t[source, begin:end].copy())

    def close(self, source: int) -> None:
        self._gate.close(source)

    def work(self) -> None:
        self.read(0, (0, 1))

    def read(self, reader: int, share: tuple[int, int]) -> bool:
        """Update windows by ready tuples; whether there were any."""
        found = self._gate.ready(reader)
        self._taken[reader] += len(found.times)
        if len(found.times):
            source, position, last = found.sources, found.positions, int(found.times[-1])
            if share[1] > 1:
                mine = self.given.key[source, position] % share[1] == share[0]
                source, position = source[mine], position[mine]
            self.update(reader, self.given.chosen(source, position))
            self.reach(reader, last)
        elif self._taken[reader] == self.given.t.size:
            self.reach(reader, END_OF_STREAM)
        return len(found.times) > 0


class TuplesShared(TupleMerged):
    """TuML-MC: several threads update windows, each those of its keys."""

    def number_of_writers(self) -> int:
        return UPDATERS

    def work(self) -> None:
        return None

    def helpers(self) -> list[threading.Thread]:
        return [threading.Thread(target=self._update_all, args=(k,)) for k in range(UPDATERS)]

    def _update_all(self, reader: int) -> None:
        try:
            while self._reached[reader] < END_OF_STREAM and not self.failed:
                if not self.read(reader, (reader, UPDATERS)):
                    time.sleep(PAUSE)
        except BaseException as error:
            self.failed.append(error)
            raise


DESIGNS: dict[str, type[Design]] = {
    "MQ": MultiQueue,
    "TuML-SC": TupleMerged,
    "TuML-MC": TuplesShared,
    "WiML": WindowMerged,
    "WiML, slices": SlicesMerged,
}
