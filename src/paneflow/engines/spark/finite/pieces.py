"""The rows of some slices in pieces: spans of time in which a limited number of windows end.

One slice may be in thousands of windows, so a fixed number of slices may make any number of rows.
Rows are counted first, and made span by span.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.operator import Array
from paneflow.slicing.bounds.counting import count_all, count_rows
from paneflow.slicing.bounds.ranges import Ends
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.slices import START
from paneflow.windows import Session, Sliding
from paneflow.windows.many_rows import check_rows, overlap

if TYPE_CHECKING:
    from paneflow.query import Query


def spans(query: Query, slices: pa.Table, max_rows: int | None, most: int) -> Iterator[Ends]:
    """Spans of time in which a limited number of windows end; too many rows in all are refused."""
    windows = {n: w for n, w in query.windows.items() if isinstance(w, Sliding)}
    rows = slices.num_rows * sum(map(overlap, windows.values()))
    if not windows or (rows <= most and (max_rows is None or rows <= max_rows)):
        yield None, None
        return
    t, offsets = _by_key(query, slices)
    count = count_all(windows, t, offsets)
    check_rows(count, windows, max_rows)
    if count.total <= most:
        yield None, None
        return
    longest = max(window.range.value for window in windows.values())

    def ending(after: int, until: int) -> int:
        return sum(count_rows(w, t, offsets, (after, until)) for w in windows.values())

    waiting = [(int(t.min()) - 1, int(t.max()) + longest + 1)]
    while waiting:
        after, until = waiting.pop()
        if until - after > 1 and ending(after, until) > most:
            middle = (after + until) // 2
            waiting += [(middle, until), (after, middle)]
        else:
            yield after, until


def _by_key(query: Query, slices: pa.Table) -> tuple[Array, Array]:
    """When slices start, in order within each key, and where each key's begin."""
    t = slices.column(START).cast(pa.int64()).to_numpy()
    names = tuple(f"key:{name}" for name in query.key)
    codes, keys = encode_keys(slices.combine_chunks(), names)
    order = np.lexsort((t, codes))
    offsets = np.searchsorted(codes[order], np.arange(max(keys.num_rows, 1) + 1))
    return t[order], offsets


def without_sessions(query: Query, rows: pa.Table) -> pa.Table:
    """Rows without those of sessions, which come with every span."""
    labels = [n for n, w in query.windows.items() if isinstance(w, Session)]
    if not labels:
        return rows
    named = pc.is_in(rows.column("window").cast(pa.string()), pa.array(labels, pa.string()))
    return rows.filter(pc.invert(named))
