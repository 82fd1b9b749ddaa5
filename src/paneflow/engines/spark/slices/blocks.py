"""Blocks of time, which distribute the slices of one key over several tasks.

One key may be most of the data. A block gets the slices that start in it and those before it that
its first windows need; it answers for the windows that end in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from paneflow.slicing.slices import START
from paneflow.windows import Sliding

if TYPE_CHECKING:
    from paneflow.query import Query

BLOCK = "paneflow:block"
RANGES_PER_BLOCK = 8
"""The length of a block in window ranges: with 8, an eighth of the slices is in two blocks."""
LONGEST = 2**62
"""The largest time that fits."""


@dataclass(frozen=True)
class Blocks:
    """Blocks of time, and the longest range of a window."""

    length: int
    longest: int

    @classmethod
    def of(cls, query: Query) -> Blocks | None:
        """Blocks for a query; None where windows are not bounded by time alone."""
        if not all(isinstance(w, Sliding) for w in query.windows.values()):
            return None
        longest = max(w.range.value for w in query.windows.values() if isinstance(w, Sliding))
        return cls(min(RANGES_PER_BLOCK * longest, LONGEST), longest)

    def column(self) -> Any:
        """Spark's rows for a slice that starts at s: one for each block that needs it."""
        from pyspark.sql import functions as F

        last = f"s + {self.longest - 1}L"
        first, last = (f"({t} - pmod({t}, {self.length}L)) div {self.length}L" for t in ("s", last))
        return F.explode(F.expr(f"sequence({first}, {last})"))

    def deal(self, slices: pa.Table) -> pa.Table:
        """The same for slices in Python."""
        start = slices.column(START).cast(pa.int64()).to_numpy()
        first = start // self.length
        times = (start + self.longest - 1) // self.length - first + 1
        rows = np.repeat(np.arange(len(start)), times)
        step = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
        dealt = slices.take(pa.array(rows))
        place = slices.schema.get_field_index(START)
        return dealt.add_column(place, f"key:{BLOCK}", pa.array(first[rows] + step))

    def own(self, rows: pa.Table) -> pa.Table:
        """The rows of windows that end in their block."""
        end = rows.column("end").cast(pa.int64()).to_numpy()
        block = rows.column(BLOCK).to_numpy()
        return rows.filter(pa.array((end - 1) // self.length == block)).drop_columns([BLOCK])
