"""Windows over multisets: quantiles, mode, distinct count and top k by adding and removing runs.

A slice keeps its values as runs: the rank of a value in the column's sorted distinct values, and
how often it occurs. A window's multiset is kept in a tree over the ranks. Runs that enter are
added, runs that leave are subtracted; counts are integers, so this is exact, and nothing is ever
sorted again. Every step costs at most the logarithm of the number of distinct values.
"""

from __future__ import annotations

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled, helper


def quantiles(ranks: Array, counts: Array, lo: Array, hi: Array, values: Array, qs: Array) -> Array:
    """Interpolated quantiles of the runs lo <= i < hi of each window; undefined where empty."""
    out = np.zeros((len(lo), len(qs)), np.float64)
    _quantiles(ranks, counts, lo, hi, values, qs, out)
    return out


def modes(ranks: Array, counts: Array, lo: Array, hi: Array, distinct: int) -> Array:
    """The smallest of the most frequent ranks of each window; undefined where empty."""
    out = np.zeros(len(lo), np.int64)
    _modes(ranks, counts, lo, hi, distinct, out)
    return out


def distincts(ranks: Array, counts: Array, lo: Array, hi: Array, distinct: int) -> Array:
    """The number of different ranks of each window."""
    out = np.zeros(len(lo), np.int64)
    _distincts(ranks, counts, lo, hi, distinct, out)
    return out


def tops(ranks: Array, counts: Array, lo: Array, hi: Array, distinct: int, k: int) -> Array:
    """The k greatest ranks of each window, descending; -1 where there are fewer."""
    out = np.full((len(lo), k), -1, np.int64)
    _tops(ranks, counts, lo, hi, distinct, out)
    return out


@helper
def _power(distinct):  # type: ignore[no-untyped-def]
    size = 1
    while size < distinct:
        size *= 2
    return size


@helper
def _add(tree, rank, count):  # type: ignore[no-untyped-def]
    # A Fenwick tree: tree[i] counts the ranks of a block that ends at i.
    i = rank + 1
    while i < len(tree):
        tree[i] += count
        i += i & -i


@helper
def _at(tree, position):  # type: ignore[no-untyped-def]
    """The rank at a position of the sorted multiset."""
    step = len(tree) - 1
    found = 0
    while step > 0:
        if found + step < len(tree) and tree[found + step] <= position:
            found += step
            position -= tree[found]
        step //= 2
    return found


@helper
def _slide(tree, ranks, counts, start, end, lo, hi):  # type: ignore[no-untyped-def]
    """Move a window from start:end to lo:hi; how many more values it then holds."""
    more = 0
    for i in range(start, min(end, lo)):
        _add(tree, ranks[i], -counts[i])
        more -= counts[i]
    for i in range(max(end, lo), hi):
        _add(tree, ranks[i], counts[i])
        more += counts[i]
    return more


@compiled
def _quantiles(ranks, counts, lo, hi, values, qs, out):  # type: ignore[no-untyped-def]
    tree = np.zeros(_power(len(values)) + 1, np.int64)
    start = 0
    end = 0
    size = 0
    for w in range(len(lo)):
        size += _slide(tree, ranks, counts, start, end, lo[w], hi[w])
        start = lo[w]
        end = max(end, hi[w])
        if size == 0:
            continue
        for k in range(len(qs)):
            h = qs[k] * (size - 1)
            below = int(np.floor(h))
            share = h - below
            low = values[_at(tree, below)]
            if share > 0.0:
                high = values[_at(tree, below + 1)]
                out[w, k] = low if high == low else low + (high - low) * share
            else:
                out[w, k] = low


@helper
def _change(tree, rank, count):  # type: ignore[no-untyped-def]
    # A tournament: every inner node holds the greater count of its two halves.
    i = rank + len(tree) // 2
    tree[i] += count
    i //= 2
    while i > 0:
        tree[i] = max(tree[2 * i], tree[2 * i + 1])
        i //= 2


@compiled
def _modes(ranks, counts, lo, hi, distinct, out):  # type: ignore[no-untyped-def]
    leaves = _power(distinct)
    tree = np.zeros(2 * leaves, np.int64)
    start = 0
    end = 0
    for w in range(len(lo)):
        for i in range(start, min(end, lo[w])):
            _change(tree, ranks[i], -counts[i])
        start = lo[w]
        for i in range(max(end, start), hi[w]):
            _change(tree, ranks[i], counts[i])
        end = max(end, hi[w])
        i = 1
        while i < leaves:
            i = 2 * i if tree[2 * i] == tree[1] else 2 * i + 1
        out[w] = i - leaves


@compiled
def _distincts(ranks, counts, lo, hi, distinct, out):  # type: ignore[no-untyped-def]
    seen = np.zeros(distinct, np.int64)
    start = 0
    end = 0
    different = 0
    for w in range(len(lo)):
        for i in range(start, min(end, lo[w])):
            seen[ranks[i]] -= counts[i]
            if seen[ranks[i]] == 0:
                different -= 1
        start = lo[w]
        for i in range(max(end, start), hi[w]):
            if seen[ranks[i]] == 0:
                different += 1
            seen[ranks[i]] += counts[i]
        end = max(end, hi[w])
        out[w] = different


@compiled
def _tops(ranks, counts, lo, hi, distinct, out):  # type: ignore[no-untyped-def]
    tree = np.zeros(_power(distinct) + 1, np.int64)
    start = 0
    end = 0
    size = 0
    for w in range(len(lo)):
        size += _slide(tree, ranks, counts, start, end, lo[w], hi[w])
        start = lo[w]
        end = max(end, hi[w])
        for k in range(min(size, out.shape[1])):
            out[w, k] = _at(tree, size - 1 - k)
