"""Loops over events that join open slices, and over the cells of these slices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled, pasted


class Asked(NamedTuple):
    """Events whose slices are to be found: those of a shard, by their places among all."""

    t: Array
    key: Array
    which: Array
    bits: int


class Found(NamedTuple):
    """What finds the cell of a slice."""

    edges: Array
    last: Array
    table: Array
    key: Array
    start: Array


@pasted
def _home(key, start):  # type: ignore[no-untyped-def]
    # Spreads keys and starts that lie close together, as well as those far apart.
    x = np.uint64(start) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64(x >> np.uint64(32))


@compiled
def find_cells(events, slices, cells, present, counts, done, used):  # type: ignore[no-untyped-def]
    """Find the cells of events, and count these; ends early if there is no room for a slice.

    Returns how many events have a cell now, and how many cells are used.
    """
    t, key, which, bits = events
    edges, last, table, keys, start = slices
    mask = len(table) - 1
    begin = until = 0
    for j in range(done, len(which)):
        i = np.uint64(which[j])  # it cannot count from the end, which takes steps to find out
        now = t[i]
        if now < begin or now >= until:
            begin = now - (now - edges[0, 0]) % edges[0, 1]
            until = begin + edges[0, 1]
            for e in range(1, len(edges)):
                edge = now - (now - edges[e, 0]) % edges[e, 1]
                begin = max(begin, edge)
                until = min(until, edge + edges[e, 1])
        k = key[i] >> bits
        if k >= len(last):
            return j, used
        cell = last[np.uint64(k)]
        if cell < 0 or start[np.uint64(cell)] != begin:
            at = _home(k, begin) & mask
            while True:
                cell = table[at]
                if cell < 0:
                    if used == len(keys) or 2 * used >= len(table):
                        return j, used
                    cell = used
                    table[at] = cell
                    keys[cell] = k
                    start[cell] = begin
                    if len(counts):
                        counts[cell] = 0
                    used += 1
                    break
                if keys[cell] == k and start[cell] == begin:
                    break
                at = (at + 1) & mask
            last[k] = cell
        cells[j] = cell
        if len(counts):
            counts[np.uint64(cell)] += len(present) == 0 or present[i]
    return len(which), used


@compiled
def runs(t, edges, starts):  # type: ignore[no-untyped-def]
    """Where runs of events of the same slice begin, and where the last ends; how many there are."""
    found = begin = until = 0
    for i in range(len(t)):
        now = t[i]
        if i == 0 or now < begin or now >= until:
            begin = now - (now - edges[0, 0]) % edges[0, 1]
            until = begin + edges[0, 1]
            for e in range(1, len(edges)):
                edge = now - (now - edges[e, 0]) % edges[e, 1]
                begin = max(begin, edge)
                until = min(until, edge + edges[e, 1])
            starts[found] = i
            found += 1
    starts[found] = len(t)
    return found


@compiled
def enter(keys, starts, table):  # type: ignore[no-untyped-def]
    """Put cells into an empty hash table."""
    mask = len(table) - 1
    for cell in range(len(keys)):
        at = _home(keys[cell], starts[cell]) & mask
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = cell


@compiled
def count(cells, which, present, counts):  # type: ignore[no-untyped-def]
    """Count events in their cells."""
    if len(present) == 0:
        for j in range(len(cells)):
            counts[cells[j]] += 1
    else:
        for j in range(len(cells)):
            counts[cells[j]] += present[which[j]]


@compiled
def add(cells, n, counts):  # type: ignore[no-untyped-def]
    """Add to the counts of cells."""
    for j in range(len(cells)):
        counts[cells[j]] += n[j]
