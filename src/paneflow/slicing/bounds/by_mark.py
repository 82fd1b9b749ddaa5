"""Windows that end with a marked event: punctuation."""

from __future__ import annotations

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.slicing.arranged import Arranged
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.events import Part
from paneflow.windows import Punctuation


def punctuation(window: Punctuation, part: Part, columns: Arranged) -> Ranges:
    """From the event after one mark up to and including the next."""
    valid = columns.valid(window.column)
    marked = marked_events(
        part.mine(columns.form(window.column, "value")),
        None if valid is None else part.mine(valid),
    )
    room = Ranges.room(int(np.count_nonzero(marked)) + len(part.offsets))
    found = _punctuation(marked, part.offsets, window.partial, *room.columns)
    return room.first(found)


def marked_events(values: Array, valid: Array | None) -> Array:
    """Which events end a window, by the values of its column."""
    marked: Array = values != 0
    return marked if valid is None else marked & valid


@compiled
def _punctuation(marked, offsets, partial, key, seq, lo, hi):  # type: ignore[no-untyped-def]
    found = 0
    for k in range(len(offsets) - 1):
        start = offsets[k]
        w = 0
        for i in range(offsets[k], offsets[k + 1]):
            if marked[i] or (partial and i + 1 == offsets[k + 1]):
                key[found] = k
                seq[found] = w
                lo[found] = start
                hi[found] = i + 1
                found += 1
                w += 1
                start = i + 1
    return found
