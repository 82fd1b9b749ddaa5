"""The rows of count windows, from units that stand at known positions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.aggregates.values import kind_of
from paneflow.engines.edge.counted import Counted
from paneflow.engines.edge.parts.counts.positions import closed
from paneflow.engines.edge.parts.counts.units import POSITION, Order, Settled
from paneflow.engines.edge.parts.quantiles.runs import spread
from paneflow.engines.edge.parts.slices import ticks
from paneflow.engines.table.from_slices import SliceStore
from paneflow.engines.table.rows import assemble
from paneflow.engines.table.windows import merge_windows
from paneflow.slicing.bounds.given import Given
from paneflow.slicing.bounds.ranges import Ranges
from paneflow.slicing.events import order_events
from paneflow.slicing.slices import LAST, ROWS, START, TIME_SLICES
from paneflow.windows import Count, Window


def rows_of(counted: Counted, settled: Settled, order: Order) -> pa.Table:
    """The rows of windows that have closed since an earlier order of units.

    Units begin where windows do.
    """
    query = counted.query
    schema = query.result_schema(counted.source)
    windows: dict[str, Window] = {
        label: Given(window, _ranges(window, settled, order.passed))
        for label, window in counted.windows.items()
    }
    if not any(len(w.ranges) for w in windows.values() if isinstance(w, Given)):
        return schema.empty_table()
    units, codes = settled.units, settled.code
    named = order.keys.rename_columns(list(query.key))
    events = order_events(codes, named, ticks(units, START), ticks(units, LAST))
    (part,) = events.parts(1)
    rows = np.arange(units.num_rows)
    store = SliceStore(query, TIME_SLICES, part, units, rows, counted.events, (None, None))
    kinds = {name: kind_of(type_, name) for name, type_ in query.types(counted.events).items()}
    labels = {label: k for k, label in enumerate(sorted(windows))}
    block = merge_windows(store, windows, labels, query.aggregates, kinds, "auto")
    with ThreadPoolExecutor(1) as pool:
        return assemble([block], counted.windows, labels, named, schema, pool)


def _ranges(window: Count, settled: Settled, passed: Array) -> Ranges:
    """The windows of a kind that have closed, as ranges of units."""
    before, after = closed(window, passed), closed(window, settled.passed)
    several = after - before
    key = np.repeat(np.arange(len(several)), several)
    seq = spread(before, several)
    codes = settled.code
    position = settled.units.column(POSITION).to_numpy()
    behind = position + settled.units.column(ROWS).to_numpy()
    if len(position) == 0:
        return Ranges(key.astype(np.int32), seq, seq, seq)
    # Positions count from each key's first unit, so that all keys fit into one range of numbers.
    first = position[np.minimum(np.searchsorted(codes, np.arange(len(several))), len(codes) - 1)]
    width = int((behind - first[codes]).max()) + 1
    places = codes * width + position - first[codes]
    start = seq * window.slide - first[key]
    lo = np.searchsorted(places, key * width + start)
    hi = np.searchsorted(places, key * width + start + window.size)
    return Ranges(key.astype(np.int32), seq, lo, hi)
