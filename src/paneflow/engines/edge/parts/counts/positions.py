"""Units of events, each one event or a cell of several, and where in the row of a key they stand.

Cells of different nodes may overlap in time. Overlapping units of a key form a *group*: its events
stand behind those of the groups before it, in an order that is not known while a cell is closed.
That matters only if a window begins or ends in the group.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.windows import Count


class Groups(NamedTuple):
    """Groups of units, key by key and in order of time."""

    of_unit: Array
    """The group of each unit."""
    code: Array
    start: Array
    last: Array
    first: Array
    """The position of a group's first event among all events of the key."""
    size: Array


def grouped(code: Array, start: Array, last: Array, rows: Array, passed: Array) -> Groups:
    """The groups of units, which stand by key and start.

    `passed` says how many events of each key come before all of them.
    """
    n = len(code)
    if n == 0:
        return Groups(*(np.zeros(0, np.int64) for _ in Groups._fields))
    # The latest time of a key so far: by ranks, so that one running maximum serves all keys.
    times, ranks = np.unique(last, return_inverse=True)
    reach = times[np.maximum.accumulate(code * n + ranks) - code * n]
    fresh = np.ones(n, np.bool_)
    fresh[1:] = (code[1:] != code[:-1]) | (start[1:] > reach[:-1])
    heads = np.flatnonzero(fresh)
    size = np.add.reduceat(rows, heads)
    of_key = code[heads]
    before = np.cumsum(size) - size
    first_of_key = np.searchsorted(of_key, np.arange(len(passed)))
    behind = before - before[np.minimum(first_of_key, len(before) - 1)][of_key]
    latest = np.maximum.reduceat(last, heads)
    of_unit = np.cumsum(fresh) - 1
    return Groups(of_unit, of_key, start[heads], latest, passed[of_key] + behind, size)


def bounded(groups: Groups, windows: Iterable[Count]) -> Array:
    """In which groups a window begins or ends."""
    found = np.zeros(len(groups.size), np.bool_)
    for window in windows:
        for position in (0, window.size - 1):
            behind = np.maximum(groups.first - position, 0)
            nearest = position - (-behind // window.slide) * window.slide
            found |= nearest < groups.first + groups.size
    return found


def closed(window: Count, events: Array) -> Array:
    """How many windows have closed after so many events of a key.

    >>> closed(Count(3, 2, False), np.array([2, 3, 4, 5])).tolist()
    [0, 1, 1, 2]
    """
    numbers: Array = np.maximum((events - window.size) // window.slide + 1, 0)
    return numbers


def settled_by(groups: Groups, unsettled: Array, watermark: int) -> int:
    """By which time all groups are settled, so that none reaches beyond it."""
    until = min(watermark, int(groups.start[unsettled].min(initial=watermark)))
    while len(over := groups.start[(groups.start < until) & (groups.last >= until)]):
        until = int(over.min())
    return until
