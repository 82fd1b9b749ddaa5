"""The Handshake approach (HSA, chapter 5 of the thesis): a line, responsibility by hashing.

For every window that an event contributes to, every PU computes the hash of the window's end and
key, which names the PU that is responsible. Windows of many keys spread evenly over the PUs, even
if only few overlap; the price is a hash operation for each event and window on each PU.
"""

from __future__ import annotations

from typing import ClassVar

import numba
import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.engines.multicore.holding import Loop
from paneflow.engines.multicore.line import Line, LineUnit
from paneflow.engines.multicore.question import Span


@numba.njit(nogil=True, inline="always")
def owner(window, key, workers):  # type: ignore[no-untyped-def]
    """The PU that is responsible for a window; its number stands for its end."""
    # Multiples of two fractions that have nothing in common fall evenly between 0 and 1, and so do
    # their sums: the windows of a key go to the PUs in equal shares, and those of a moment do too.
    x = np.uint64(window) * np.uint64(0xDB4F0B9175AE2165)
    x += np.uint64(key) * np.uint64(0xBBE0563303A4615F)
    return np.int64(((x >> np.uint64(32)) * np.uint64(workers)) >> np.uint64(32))


@Loop
def _mine(key, ticks, start, end, span, rank, workers, which, numbers):  # type: ignore[no-untyped-def]
    reach, slide, offset, lowest = span
    found, hashed = 0, 0
    for i in range(start, min(end, len(ticks))):
        since = ticks[i] - offset
        for window in range(max((since - reach) // slide + 1, lowest), since // slide + 1):
            hashed += 1
            # Written in any case, since nobody can foresee whose a window is.
            which[found] = i
            numbers[found] = window
            found += owner(window, key[i], workers) == rank
    return found, hashed


class HandshakeUnit(LineUnit):
    """A PU that is responsible for the windows whose hash names it."""

    def responsible(
        self,
        span: Span,
        key: Array,
        ticks: Array,
        start: int,
        end: int,
        which: Array,
        numbers: Array,
    ) -> int:
        found, hashed = _mine(
            (min(end, len(ticks)) - start) * span.most,
            key,
            ticks,
            start,
            end,
            span.numbers,
            self.rank,
            self.workers,
            which,
            numbers,
        )
        self.counts["hash_operations"] += hashed
        return int(found)


class Handshake(Line):
    """HSA."""

    name: ClassVar[str] = "handshake"
    unit: ClassVar[type[LineUnit]] = HandshakeUnit
