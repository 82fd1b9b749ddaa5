"""How long a cell should be, so that cells and what is opened of them are fewest bytes."""

from __future__ import annotations

import math

import numpy as np

from paneflow.aggregates.operator import Array

ENOUGH = 256
"""Events that must have been seen before a length is worth saying."""
UNKNOWN = -1
"""Nothing has been said."""
SPLIT = 8
"""Into so many shorter cells a cell is cut that is asked for, and those again. Fewer would be fewer
bytes, but more questions."""
LEAST_SPLIT = 24
"""Cells of fewer events are sent event by event: an event is about half as many bytes as a cell."""
SUPPOSED_NODES = 8
"""How many child nodes a child node supposes, before the root has said how long cells are."""
CELL_BYTES = 60
EVENT_BYTES = 20
LEAST_EVENTS = 8
"""Cells of one node with fewer events would not be fewer bytes than the events."""
MUCH = 4
"""Another length is said where it differs by this factor."""


def grain_for(codes: Array, rows: Array, span: int, spacing: float, nodes: int, known: int) -> int:
    """The length of a cell in ticks, a power of two; 0 if events should be sent as they are.

    Args:
        codes: The key of each unit of events that was seen.
        rows: How many events it has.
        span: In how many ticks they came.
        spacing: How many events lie between two bounds of windows.
        nodes: How many child nodes send cells.
        known: The length that was said last; it stays if the best one is near it.
    """
    total = int(rows.sum())
    if total < ENOUGH:
        return known
    counts = np.bincount(codes, weights=rows)
    # The rate of the key that an event belongs to, on average: rare keys do not decide.
    rate = float((counts**2).sum() / total / span)
    # Between two bounds lie spacing / events cells of each node, and one of these is opened again
    # and again: SPLIT cells for each of log(events) / log(SPLIT) times. The sum is least here.
    events = spacing * math.log(SPLIT) / SPLIT
    if events / nodes < LEAST_SPLIT:
        # Cells are opened once, event by event.
        events = math.sqrt(spacing * nodes * CELL_BYTES / EVENT_BYTES)
    ticks = events / rate
    if events / nodes < LEAST_EVENTS or events > spacing / 2 or ticks < 2:
        return 0
    best = 1 << round(math.log2(ticks))
    near = known > 0 and known < best * MUCH and best < known * MUCH
    return known if near else best
