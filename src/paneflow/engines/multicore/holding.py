"""Short loops that keep the interpreter lock.

Compiled loops give the lock up, so that other PUs run meanwhile. But whoever waits for the lock
then has to be woken, and this thread has to wait its turn again: some tens of microseconds each
time. A loop over a few events takes less than that, and keeps the lock; so does what NumPy would
give it up for.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def marked(mask: Array, mark: bool = True) -> Array:
    """The places that are marked, or those that are not."""
    if len(mask) > FEW:
        return np.flatnonzero(mask if mark else ~mask)
    places = np.empty(len(mask), np.int64)
    return places[: _mark(mask, mark, places)]


def put(column: Array, target: Array, at: int) -> None:
    """Write a column into another, from a place on."""
    if column.ndim > 1 or len(column) > FEW:
        target[at : at + len(column)] = column
    else:
        _put(column, target, at)


def concatenated(columns: Sequence[Array]) -> Array:
    """Columns one behind the other."""
    total = sum(map(len, columns))
    if columns[0].ndim > 1 or total > FEW:
        return np.concatenate(columns)
    out = np.empty(total, columns[0].dtype)
    at = 0
    for column in columns:
        _put(column, out, at)
        at += len(column)
    return out


def order_of(values: Array) -> Array:
    """A stable order."""
    if len(values) > FEW:
        return np.argsort(values, kind="stable")
    order: Array = _order(values)
    return order


@held
def _take(column, which, out):  # type: ignore[no-untyped-def]
    for i in range(len(which)):
        out[i] = column[which[i]]


@held
def _mark(mask, mark, places):  # type: ignore[no-untyped-def]
    found = 0
    for i in range(len(mask)):
        places[found] = i
        found += mask[i] == mark
    return found


@held
def _put(column, target, at):  # type: ignore[no-untyped-def]
    for i in range(len(column)):
        target[at + i] = column[i]


@held
def _order(values):  # type: ignore[no-untyped-def]
    return np.argsort(values, kind="mergesort")
