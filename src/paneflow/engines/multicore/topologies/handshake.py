"""The Handshake approach (HSA, chapter 5 of the thesis): a line, responsibility by hashing.

For every window that an event contributes to, every PU hashes the window's end and key, which names
the responsible PU. Windows of many keys spread evenly over the PUs, even if only few overlap; the
price is a hash operation for each event and window on each PU.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from paneflow.compiling import pasted
from paneflow.engines.multicore.threads.short_loops import Loop
from paneflow.engines.multicore.topologies.collecting import Sought
from paneflow.engines.multicore.topologies.line import Line, LineUnit

# Multiples of two unrelated irrational fractions are spread evenly between 0 and 1, and so are
# their sums: PUs get equal shares of the windows of a key, and of the windows of a moment.
OF_WINDOW, OF_KEY = np.uint64(0xDB4F0B9175AE2165), np.uint64(0xBBE0563303A4615F)


@pasted
def owner(window, key, workers):  # type: ignore[no-untyped-def]
    """The PU that is responsible for a window; its number stands for its end."""
    x = np.uint64(window) * OF_WINDOW + np.uint64(key) * OF_KEY
    return np.int64(((x >> np.uint64(32)) * np.uint64(workers)) >> np.uint64(32))


@pasted
def _owned(rank, workers):  # type: ignore[no-untyped-def]
    """The first of the hashes that name a PU, and how far it is to the last of them."""
    begin = ((rank << 32) + workers - 1) // workers
    end = (((rank + 1) << 32) + workers - 1) // workers
    bits = np.uint64(32)
    return np.uint64(begin) << bits, (np.uint64(end - begin) << bits) - np.uint64(1)


@Loop
def _mine(key, ticks, start, end, span, rank, workers, which, numbers):  # type: ignore[no-untyped-def]
    reach, slide, offset, lowest = span
    begin, extent = _owned(rank, workers)
    found, hashed = 0, 0
    for i in range(start, end):
        since = ticks[i] - offset
        first = max((since - reach) // slide + 1, lowest)
        last = since // slide
        before = found
        # The hash of each window, as in `owner`, counted from the first that names this PU.
        x = np.uint64(first) * OF_WINDOW + np.uint64(key[i]) * OF_KEY - begin
        for window in range(first, last + 1):
            # Always written: a branch on which PU a window belongs to cannot be predicted.
            numbers[found] = window
            found += x <= extent
            x += OF_WINDOW
        which[before:found] = i
        hashed += max(last + 1 - first, 0)
    return found, hashed


class HandshakeUnit(LineUnit):
    """A PU that is responsible for the windows whose hash names it."""

    def responsible(self, sought: Sought) -> int:
        span, key, ticks, start, end, which, numbers = sought
        most = (end - start) * span.most
        place = span.numbers, self.rank, self.workers
        found, hashed = _mine(most, key, ticks, start, end, *place, which, numbers)
        self.counts["hash_operations"] += hashed
        return int(found)


class Handshake(Line):
    """HSA."""

    name: ClassVar[str] = "handshake"
    unit: ClassVar[type[LineUnit]] = HandshakeUnit
