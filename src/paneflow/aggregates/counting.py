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
    """The number of events, or of events whose column is not null.

    >>> print(count("load"))
    count(load)
    """
    return Count(() if column is None else (column,))
