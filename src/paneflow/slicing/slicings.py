"""Windows that share slices: all time windows of a query, and each session for itself.

A stream asks for them with every batch, and a query may have a thousand windows, so what was found
for a query is remembered as long as there is the query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from paneflow.aggregates.operator import Array
from paneflow.slicing.slices import TIME_SLICES
from paneflow.windows import Sliding, Window

if TYPE_CHECKING:
    from paneflow.query import Query

Found = TypeVar("Found")


def _once(find: Callable[[Query], Found]) -> Callable[[Query], Found]:
    known: WeakKeyDictionary[Query, Found] = WeakKeyDictionary()

    def remembered(query: Query) -> Found:
        found = known.get(query)
        if found is None:
            found = known[query] = find(query)
        return found

    return remembered


@_once
def slicings(query: Query) -> Mapping[str, Mapping[str, Window]]:
    """The labels and windows of each slicing."""
    groups: dict[str, dict[str, Window]] = {}
    for label, window in query.windows.items():
        slicing = TIME_SLICES if isinstance(window, Sliding) else str(window)
        groups.setdefault(slicing, {})[label] = window
    return groups


@_once
def edges(query: Query) -> tuple[Array, Array]:
    """Where slices of time windows begin, as progressions: their phases and their steps."""
    sliding = (w for w in query.windows.values() if isinstance(w, Sliding))
    phases, steps = np.array(sorted({edge for w in sliding for edge in w.edges}), np.int64).T
    return phases, steps
