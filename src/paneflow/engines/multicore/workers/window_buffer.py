"""CC-WBuf: the window buffer that an emitter fills and agnostic workers read at the same time.

Section 4.3 of Mencagli et al. The buffer is a list of chunks. The emitter adds events to the last
chunk, workers read the chunks that a window lies in, and chunks leave from the front, in order,
when no worker reads them any more and no later window needs them. Events are never copied into
windows: a window is a list of the places, or slots, that its events have in the buffer.

A chunk holds a fixed number of events, or, where all windows are time windows, those of one pane
(section 4.3.1): then a window is a whole number of chunks, and nobody reads the last one while it
is being filled.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.windows import Sliding, Window

CHUNK = 5000
"""Events in a chunk, where it is not a pane: the smallest size that costs nothing (figure 12)."""
MOST_PANES = 256
"""Panes in a window beyond which chunks would be too small."""


@dataclass(eq=False)
class Chunk:
    """Events that stand side by side in total order."""

    start: int
    end: int
    pane: int
    pieces: list[pa.Table] = field(default_factory=list)
    readers: int = 0
    """Workers that are to read it, or do."""

    def __len__(self) -> int:
        return self.end - self.start


class WindowBuffer:
    """Chunks of events. The emitter alone adds and releases; any thread may read what it pinned."""

    def __init__(self, size: int = CHUNK, pane: tuple[int, int] | None = None) -> None:
        self._size = size
        self._pane = pane
        self._chunks: deque[Chunk] = deque()
        self._lock = threading.Lock()
        self._end = 0

    @classmethod
    def for_windows(cls, windows: Iterable[Window]) -> WindowBuffer:
        """Chunks that are panes, where all windows are by time and panes are long enough.

        >>> from paneflow import windows as W
        >>> WindowBuffer.for_windows([W.sliding(6, 2)]).pane
        (0, 2)
        >>> WindowBuffer.for_windows([W.session(5)]).pane is None
        True
        """
        given = list(windows)
        timed = [w for w in given if isinstance(w, Sliding)]
        if len(timed) < len(given):
            return cls()
        first = timed[0].offset.value
        lengths = [n for w in timed for n in (w.range.value, w.slide.value, w.offset.value - first)]
        length = math.gcd(*lengths)
        if max(w.range.value for w in timed) // length > MOST_PANES:
            return cls()
        return cls(pane=(first % length, length))

    @property
    def pane(self) -> tuple[int, int] | None:
        """Phase and length of the panes that chunks are; None if chunks have a fixed size."""
        return self._pane

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return len(self._chunks)

    def __len__(self) -> int:
        return sum(len(chunk) for chunk in list(self._chunks))

    def append(self, table: pa.Table, t: Array) -> int:
        """Add events behind all others; gives the slot of the first."""
        first = self._end
        start = 0
        while start < len(t):
            chunk = self._last(int(t[start]))
            taken = self._fitting(chunk, t[start:])
            chunk.pieces.append(table.slice(start, taken))
            chunk.end = self._end = self._end + taken
            start += taken
        return first

    def pin(self, first: int, last: int) -> list[Chunk]:
        """The chunks from one slot to another, kept until they are unpinned."""
        with self._lock:
            found = [c for c in self._chunks if c.end > first and c.start <= last]
            for chunk in found:
                chunk.readers += 1
        return found

    def unpin(self, chunks: list[Chunk]) -> None:
        """A worker has read them."""
        with self._lock:
            for chunk in chunks:
                chunk.readers -= 1

    def release(self, needed: int) -> None:
        """Let go of chunks from the front, up to one that is read or holds the slot needed."""
        with self._lock:
            while self._chunks and self._chunks[0].readers == 0 and self._chunks[0].end <= needed:
                self._chunks.popleft()

    def _last(self, t: int) -> Chunk:
        """The chunk that the next event belongs to; a fresh one if the last is full."""
        pane = 0 if self._pane is None else (t - self._pane[0]) // self._pane[1]
        if self._chunks:
            last = self._chunks[-1]
            if last.pane == pane and (self._pane is not None or len(last) < self._size):
                return last
            last.pieces = [pa.concat_tables(last.pieces).combine_chunks()]
        with self._lock:
            self._chunks.append(Chunk(self._end, self._end, pane))
        return self._chunks[-1]

    def _fitting(self, chunk: Chunk, t: Array) -> int:
        """How many of the next events go into a chunk."""
        if self._pane is None:
            return min(self._size - len(chunk), len(t))
        phase, length = self._pane
        return int(np.searchsorted(t, phase + (chunk.pane + 1) * length))


def gather(chunks: list[Chunk], slots: Array) -> pa.Table:
    """The events in some slots of pinned chunks, one behind the other."""
    pieces = [piece for chunk in chunks for piece in chunk.pieces]
    return pa.concat_tables(pieces).take(pa.array(slots - chunks[0].start))
