"""The events of the benchmarks: one hour of readings of many keys, in order of time."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SPAN = 3600
"""Seconds that events are spread over."""

BEGIN = 1_700_000_000
"""The first second, in Unix time."""


def events(count: int, keys: int, seed: int = 1) -> pa.Table:
    """`count` events of `keys` integer keys: 24 bytes each, uniform in time, skewed in value.

    >>> events(1000, 10).column_names
    ['key', 'ts', 'v']
    """
    random = np.random.default_rng(seed)
    micros = random.integers(0, SPAN * 1_000_000, count)
    micros.sort()
    micros += BEGIN * 1_000_000
    return pa.table(
        {
            "key": random.integers(0, keys, count),
            "ts": pa.array(micros).view(pa.timestamp("us")),
            "v": random.lognormal(4.0, 1.0, count),
        }
    )


def key_ranges(table: pa.Table, keys: int, batches: int) -> Iterator[pa.Table]:
    """The table in `batches` parts, each with all events of a range of keys."""
    if batches == 1:
        yield table
        return
    for k in range(batches):
        low, high = keys * k // batches, keys * (k + 1) // batches
        key = table.column("key")
        mine = pc.and_(pc.greater_equal(key, low), pc.less(key, high))
        yield table.filter(mine).combine_chunks()


def rows_of(count: int, keys: int, overlap: int) -> int:
    """About how many windows of `overlap` seconds, sliding by one second, hold an event.

    >>> rows_of(2_000_000, 100, 60)
    365900
    """
    per_second = count / keys / SPAN
    return round(keys * (SPAN + overlap - 1) * -math.expm1(-per_second * overlap))
