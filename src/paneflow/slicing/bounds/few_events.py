"""Time windows over a handful of events, by definition and in NumPy.

Kernels find the same windows in any number of events, but have to be compiled first, which a small
table should not wait for. The number of events and windows alone decides which way is taken.
"""

from __future__ import annotations

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.slicing import ordering
from paneflow.slicing.bounds.ranges import Found, Ranges


def are_few(t: Array, spans: Array | None = None) -> bool:
    """Whether there are few events, and few windows by these counts of them."""
    few = ordering.FEW
    if len(t) > few:
        return False
    return spans is None or bool((spans <= few).all() and spans.sum() <= few)


def sliding(t: Array, offsets: Array, bounds: Array, first: Array, spans: Array) -> Found:
    """The windows that hold an event, from a number of candidates for each window and key."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    kind, key = (np.repeat(n.ravel(), spans.ravel()) for n in np.indices(spans.shape))
    before = np.cumsum(spans) - spans.ravel()
    seq = np.arange(len(key)) + np.repeat(first.ravel() - before, spans.ravel())
    reach, slide, offset = bounds[kind, :3].T
    start = offset + seq * slide
    mine = owner == key[:, None]
    lo, hi = (
        offsets[key] + np.count_nonzero(mine & (t < bound[:, None]), axis=1)
        for bound in (start, start + reach)
    )
    held = hi > lo
    ends = np.cumsum(np.bincount(kind[held], minlength=len(bounds)))
    return Found(Ranges(key[held].astype(np.int32), seq[held], lo[held], hi[held]), ends.tolist())


def session(t: Array, offsets: Array, gap: int) -> Ranges:
    """Runs of events with no gap between them."""
    begins = np.ones(len(t), np.bool_)
    begins[1:] = np.diff(t) > gap
    begins[offsets[:-1][np.diff(offsets) > 0]] = True
    lo = np.flatnonzero(begins)
    key = np.searchsorted(offsets, lo, side="right") - 1
    seq = np.arange(len(lo)) - np.searchsorted(lo, offsets[key])
    return Ranges(key.astype(np.int32), seq, lo, np.append(lo, len(t))[1:])
