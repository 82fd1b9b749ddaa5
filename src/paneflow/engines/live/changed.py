"""Which rows fresh events may have changed."""

from __future__ import annotations

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.windows import Custom, Delta, Sliding, Window

NO_EVENT = int(np.iinfo(np.int64).max)


def touched(
    key: Array, start: Array, end: Array, fresh: tuple[Array, Array], ends_within: bool
) -> Array:
    """Which windows, each of a key, hold one of the fresh events, given by their keys and times.

    `ends_within`: an event at the end of a window is in it.
    """
    codes = np.concatenate([key, fresh[0]])
    _, ranks = np.unique(np.concatenate([start, end, fresh[1]]), return_inverse=True)
    wide = int(ranks.max(initial=0)) + 1
    n = len(key)
    moments = np.sort(codes[n:] * wide + ranks[2 * n :])
    first = np.searchsorted(moments, codes[:n] * wide + ranks[:n])
    behind = np.searchsorted(moments, codes[:n] * wide + ranks[n : 2 * n] + ends_within)
    hit: Array = behind > first
    return hit


def soonest(size: int, key: Array, t: Array) -> Array:
    """For each of so many keys the time of its first fresh event, or `NO_EVENT`."""
    first = np.full(size, NO_EVENT)
    np.minimum.at(first, key, t)
    return first


def may_have_changed(window: Window, end: Array, first: Array) -> Array:
    """Which windows that need the events before them fresh events may have changed.

    For each window its end, and the time of the first fresh event of its key. What a window holds
    depends on no event behind its end, but whether it has ended may.
    """
    changed: Array = (first < NO_EVENT) if isinstance(window, Custom | Delta) else (end >= first)
    return changed


def changed_windows(
    window: Window, key: Array, start: Array, end: Array, fresh: tuple[Array, Array]
) -> Array:
    """Which windows fresh events have changed, or may have, where sessions are numbered.

    A session that opens before others, or two that become one, change the numbers of those.
    """
    if isinstance(window, Sliding):
        return touched(key, start, end, fresh, ends_within=False)
    size = max(int(key.max(initial=-1)), int(fresh[0].max(initial=-1))) + 1
    return may_have_changed(window, end, soonest(size, *fresh)[key])
