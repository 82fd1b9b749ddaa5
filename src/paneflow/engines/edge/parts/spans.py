"""Spans of time of keys: which are within which, and where sessions of them begin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.windows import Session


class Spans(NamedTuple):
    """Each of a key's code, with its first and last time."""

    code: Array
    start: Array
    last: Array


def covered(code: Array, t: Array, spans: Spans) -> Array:
    """Which times, each of a key, are within a span of that key; spans of a key may overlap.

    >>> spans = Spans(np.array([0, 0, 1]), np.array([2, 9, 2]), np.array([4, 9, 3]))
    >>> covered(np.array([0, 0, 1, 2]), np.array([3, 5, 3, 3]), spans).tolist()
    [True, False, True, False]
    """
    n, k = len(spans.code), len(code)
    if n == 0 or k == 0:
        return np.zeros(k, np.bool_)
    # Starts count up, ends count down, and times between look at the count.
    codes = np.concatenate([spans.code, code, spans.code])
    times = np.concatenate([spans.start, t, spans.last])
    kind = np.repeat([0, 1, 2], [n, k, n])
    order = np.lexsort((kind, times, codes))
    depth = np.cumsum(np.repeat([1, 0, -1], [n, k, n])[order])
    inside = np.empty(len(order), np.bool_)
    inside[order] = depth > 0
    return inside[n : n + k]


def opened(spans: Spans, window: Session, watermark: int, closed: Array) -> Array:
    """The first span of each session that has begun before a watermark and not closed."""
    rows = np.flatnonzero(~closed)
    order = rows[np.lexsort((spans.start[rows], spans.code[rows]))]
    code, start, last = spans.code[order], spans.start[order], spans.last[order]
    if len(order) == 0:
        return order
    # The latest time of a key so far: by ranks, so that one running maximum serves all keys.
    times, ranks = np.unique(last, return_inverse=True)
    n = len(order)
    reach = times[np.maximum.accumulate(code * n + ranks) - code * n]
    begins = np.ones(n, np.bool_)
    apart = start[1:] - reach[:-1] > window.gap.value
    begins[1:] = (code[1:] != code[:-1]) | apart
    first: Array = order[begins & (start < watermark)]
    return first
