"""The usual way to merge sorted inputs: a binary heap of their first tuples, compiled as well."""

from __future__ import annotations

import numpy as np

from paneflow.compiling import compiled


@compiled
def heap_merge(times, ends, found_times, found_sources, found_positions):  # type: ignore[no-untyped-def]
    """Merge inputs that lie one after another, by (time, source, position)."""
    sources = len(ends)
    at = np.zeros(sources, np.int64)
    at[1:] = ends[:-1]
    begins = at.copy()
    heap_times = np.empty(sources, np.int64)
    heap_sources = np.empty(sources, np.int64)
    size = 0
    for source in range(sources):
        if at[source] == ends[source]:
            continue
        time, hole = times[at[source]], size
        size += 1
        while hole > 0:
            above = (hole - 1) >> 1
            if heap_times[above] <= time:  # of equal times, earlier sources came first
                break
            heap_times[hole], heap_sources[hole] = heap_times[above], heap_sources[above]
            hole = above
        heap_times[hole], heap_sources[hole] = time, source
    for found in range(len(found_times)):
        source = heap_sources[0]
        found_times[found] = heap_times[0]
        found_sources[found] = source
        found_positions[found] = at[source] - begins[source]
        at[source] += 1
        if at[source] < ends[source]:
            time = times[at[source]]
        else:
            size -= 1
            time, source = heap_times[size], heap_sources[size]
        hole = 0
        while 2 * hole + 1 < size:
            below = 2 * hole + 1
            right = below + 1
            if right < size and (
                heap_times[right] < heap_times[below]
                or (
                    heap_times[right] == heap_times[below]
                    and heap_sources[right] < heap_sources[below]
                )
            ):
                below = right
            if heap_times[below] > time or (
                heap_times[below] == time and heap_sources[below] > source
            ):
                break
            heap_times[hole], heap_sources[hole] = heap_times[below], heap_sources[below]
            hole = below
        heap_times[hole], heap_sources[hole] = time, source
