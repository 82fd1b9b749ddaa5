"""count: how many events, or how many values that are not null.

Counts need no operator: an engine knows the positions of a window's events, and lowers every
aggregate with the number of events it counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from paneflow.aggregates.aggregate import Constant, Kinds, Lowered, Merged, Types
from paneflow.aggregates.laws import Laws
from paneflow.aggregates.operator import Array, Operator


@dataclass(frozen=True, repr=False)
class Count(Constant):
    name: ClassVar[str] = "count"
    laws: ClassVar[Laws] = Laws(invertible=True)
    when_empty: ClassVar[int | None] = 0

    def result_type(self, types: Types) -> pa.DataType:
        return pa.int64()

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        return ()

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        return n.astype(np.int64, copy=False), None


def count(column: str | None = None) -> Count:
    """Count events, or values that are not null.

    Args:
        column: Count only events in which this column is not null; by default, all events.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"n": A.count()}, time="t")
        >>> query.over(events)[0]["n"]
        3
    """
    return Count(() if column is None else (column,))
