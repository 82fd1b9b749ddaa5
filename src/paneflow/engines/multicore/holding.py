"""Short loops that keep the interpreter lock.

Compiled loops give the lock up, so that other PUs run meanwhile. But whoever waits for the lock
then has to be woken, and this thread has to wait its turn again: some tens of microseconds each
time. A loop over a few events takes less than that, and keeps the lock; so does what NumPy would
give it up for.
"""

from __future__ import annotations

import numba
import numpy as np

from paneflow.aggregates.operator import Array

held = numba.njit(cache=True)

FEW = 4096
"""Steps of some nanoseconds that are not worth giving the lock up for."""


def taken(column: Array, which: Array) -> Array:
    """Some cells of a column, by their places."""
    if column.ndim > 1 or len(which) > FEW:
        some: Array = column[which]
        return some
    out = np.empty(len(which), column.dtype)
    _take(column, which, out)
    return out


def marked(mask: Array) -> Array:
    """The places that are marked."""
    if len(mask) > FEW:
        return np.flatnonzero(mask)
    places = np.empty(len(mask), np.int64)
    return places[: _mark(mask, places)]


@held
def _take(column, which, out):  # type: ignore[no-untyped-def]
    for i in range(len(which)):
        out[i] = column[which[i]]


@held
def _mark(mask, places):  # type: ignore[no-untyped-def]
    found = 0
    for i in range(len(mask)):
        places[found] = i
        found += mask[i]
    return found
