"""Short loops that keep the interpreter lock.

Compiled loops release the lock, so that other PUs can run meanwhile. But then a thread that waits
for the lock has to be woken, and this one has to wait for it again: some tens of microseconds each
time. A loop over a few events takes less than that, so it keeps the lock, and so do replacements
for NumPy functions that would release it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled, held
from paneflow.engines.multicore.tuning import tuning
from paneflow.slicing.ordering import stable_order

_FIRST = np.arange(2**14)


class Loop:
    """A compiled loop that keeps the lock if it is short; callers say how many steps it takes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        assert isinstance(function, FunctionType)
        # Machine code is named after the function: without a name of its own it would be mixed up.
        short = FunctionType(function.__code__, function.__globals__, function.__name__)
        short.__qualname__ = f"{function.__qualname__}_short"
        self._long = compiled(function)
        self._short = held(short)
        self._known = 0
        """How many combinations of argument types both are compiled for."""

    def __call__(self, steps: int, *arguments: Any) -> Any:
        loop = self._long if steps > tuning.short_loop else self._short
        result = loop(*arguments)
        if len(loop.overloads) > self._known:
            # Compile both at once: a stream should not have to wait again later.
            for signature in loop.signatures:
                self._long.compile(signature)
                self._short.compile(signature)
            self._known = len(loop.overloads)
        return result


def places(n: int) -> Array:
    """The numbers from 0 up to, but not including, n."""
    return _FIRST[:n] if n <= len(_FIRST) else np.arange(n)


def _numbers(column: Array) -> bool:
    """Whether cells are numbers: neither rows nor Python objects, which loops cannot handle."""
    return column.ndim == 1 and column.dtype.kind != "O"


def taken(column: Array, which: Array) -> Array:
    """Some values of a column, by place."""
    if len(which) > tuning.short_loop or not _numbers(column):
        some: Array = column[which]
        return some
    out = np.empty(len(which), column.dtype)
    _take(column, which, out)
    return out


def taken_across(table: Array, which: Array) -> Array:
    """Some columns of a table, by place."""
    out = np.empty((len(table), len(which)), table.dtype)
    _take_across(out.size, table, which, out)
    return out


def marked(mask: Array) -> Array:
    """The places that a mask marks."""
    if len(mask) > tuning.short_loop:
        return np.flatnonzero(mask)
    places = np.empty(len(mask), np.int64)
    return places[: _mark(mask, places)]


def put(column: Array, target: Array, at: int) -> None:
    """Copy a column into another, from a place on."""
    if len(column) > tuning.short_loop or not _numbers(column):
        target[at : at + len(column)] = column
    else:
        _put(column, target, at)


def put_across(table: Array, target: Array, at: int) -> None:
    """Copy a table into another, from a column on."""
    _put_across(table.size, table, target, at)


def close_up(column: Array, kept: Array) -> None:
    """Move the values at increasing places to the front of a column."""
    if len(kept) > tuning.short_loop or not _numbers(column):
        column[: len(kept)] = column[kept]
    else:
        _close_up(column, kept)


def close_up_across(table: Array, kept: Array) -> None:
    """Move the columns at increasing places to the front of a table."""
    _close_up_across(len(table) * len(kept), table, kept)


def concatenated(columns: Sequence[Array]) -> Array:
    """Columns joined end to end; a single one is not copied."""
    if len(columns) == 1:
        return columns[0]
    total = sum(map(len, columns))
    if total > tuning.short_loop or not _numbers(columns[0]):
        return np.concatenate(columns)
    out = np.empty(total, columns[0].dtype)
    at = 0
    for column in columns:
        _put(column, out, at)
        at += len(column)
    return out


def concatenated_across(tables: Sequence[Array]) -> Array:
    """Tables joined side by side."""
    out = np.empty((len(tables[0]), sum(table.shape[1] for table in tables)), tables[0].dtype)
    at = 0
    for table in tables:
        put_across(table, out, at)
        at += table.shape[1]
    return out


def order_of(values: Array) -> Array:
    """A stable order.

    >>> order_of(np.array([3, 1, 3, 2])).tolist()
    [1, 3, 0, 2]
    """
    if len(values) > tuning.short_loop:
        return np.argsort(values, kind="stable")
    order: Array = _order(values)
    return order


def order_across(table: Array) -> Array | None:
    """A stable order of a table's columns by its first row, then its second, and so on.

    None only if they are in order already, which is not checked for long tables.

    >>> order_across(np.array([[2, 1, 2, 1], [0, 9, 0, 8]])).tolist()
    [3, 1, 0, 2]
    """
    n = table.shape[1]
    if n > tuning.short_loop:
        return stable_order(list(table), n)
    order = np.empty(n, np.int64)
    return order if _order_across(table, order) else None


@held
def _take(column, which, out):  # type: ignore[no-untyped-def]
    for i in range(len(which)):
        out[i] = column[which[i]]


@Loop
def _take_across(table, which, out):  # type: ignore[no-untyped-def]
    for row in range(len(table)):
        for i in range(len(which)):
            out[row, i] = table[row, which[i]]


@held
def _close_up(column, kept):  # type: ignore[no-untyped-def]
    for i in range(len(kept)):
        column[i] = column[kept[i]]


@Loop
def _close_up_across(table, kept):  # type: ignore[no-untyped-def]
    for row in range(len(table)):
        for i in range(len(kept)):
            table[row, i] = table[row, kept[i]]


@held
def _mark(mask, places):  # type: ignore[no-untyped-def]
    found = 0
    for i in range(len(mask)):
        places[found] = i
        found += mask[i]
    return found


@held
def _put(column, target, at):  # type: ignore[no-untyped-def]
    for i in range(len(column)):
        target[at + i] = column[i]


@Loop
def _put_across(table, target, at):  # type: ignore[no-untyped-def]
    for row in range(len(table)):
        for i in range(table.shape[1]):
            target[row, at + i] = table[row, i]


@held
def _order(values):  # type: ignore[no-untyped-def]
    if len(values) == 0:
        return np.empty(0, np.int64)
    least = values.min()
    span = values.max() - least + 1
    if span <= 0 or span > 8 * len(values):
        return np.argsort(values, kind="mergesort")
    # Values lie close together: count them, then each knows its place.
    places = np.zeros(span + 1, np.int64)
    for value in values:
        places[value - least + 1] += 1
    for k in range(span):
        places[k + 1] += places[k]
    order = np.empty(len(values), np.int64)
    for i in range(len(values)):
        k = values[i] - least
        order[places[k]] = i
        places[k] += 1
    return order


@held
def _before(table, a, b):  # type: ignore[no-untyped-def]
    for row in range(len(table)):
        if table[row, a] != table[row, b]:
            return table[row, a] < table[row, b]
    return False


@held
def _order_across(table, order):  # type: ignore[no-untyped-def]
    """Merges ever longer runs; false if the first one is the whole."""
    n = len(order)
    for i in range(n):
        order[i] = i
    sorted_until = 1
    while sorted_until < n and not _before(table, sorted_until, sorted_until - 1):
        sorted_until += 1
    if sorted_until >= n:
        return False
    spare = np.empty(n, np.int64)
    width = 1
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            left, right = begin, middle
            for at in range(begin, end):
                if right == end or (
                    left < middle and not _before(table, order[right], order[left])
                ):
                    spare[at] = order[left]
                    left += 1
                else:
                    spare[at] = order[right]
                    right += 1
        order[:] = spare
        width *= 2
    return True
