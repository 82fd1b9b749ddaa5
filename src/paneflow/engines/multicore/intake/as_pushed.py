"""Events as they were pushed, with all their columns.

No query reads most of these columns, so they may have any type, also one that Arrow cannot filter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array

Pushed: TypeAlias = pa.RecordBatch | pa.Table


def chosen(events: Pushed, which: Array) -> pa.Table:
    """Some of the events, by a mask.

    >>> import pyarrow as pa
    >>> events = pa.table({"name": pa.array(["a", "b", "c"], pa.string_view())})
    >>> chosen(events, np.array([True, False, True])).to_pylist()
    [{'name': 'a'}, {'name': 'c'}]
    """
    table = events if isinstance(events, pa.Table) else pa.Table.from_batches([events])
    try:
        return table.filter(pa.array(which))
    except pa.ArrowNotImplementedError:  # views of text, for example
        edges = np.flatnonzero(np.diff(which, prepend=False, append=False)).tolist()
        runs = zip(edges[::2], edges[1::2], strict=True)
        parts = [table.slice(start, end - start) for start, end in runs]
        return pa.concat_tables([table.slice(0, 0), *parts])


def chosen_across(parts: Iterable[Pushed], which: Array) -> list[pa.Table]:
    """Some events of consecutive parts, by one mask; a table for each part that has some."""
    found, end = [], 0
    for part in parts:
        start, end = end, end + part.num_rows
        if which[start:end].any():
            found.append(chosen(part, which[start:end]))
    return found
