"""Units of count windows as tables: in the order of their events, and at their positions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.edge.counted import NUMBER, Counted
from paneflow.engines.edge.layouts import CHILD
from paneflow.engines.edge.parts.counts.parcels import unpacked
from paneflow.engines.edge.parts.counts.positions import Groups, grouped
from paneflow.engines.edge.parts.slices import ticks
from paneflow.slicing.keys import encode_keys
from paneflow.slicing.slices import LAST, ROWS, START

POSITION = "unit:position"
"""The column that says how many events of the key come before a unit."""


class Order(NamedTuple):
    """Units by key and time, and the events that came before them."""

    units: pa.Table
    code: Array
    """The key of each unit."""
    groups: Groups
    keys: pa.Table
    passed: Array
    """How many events of each key came before."""


class Settled(NamedTuple):
    """Units that stand at known positions, by key and position."""

    units: pa.Table
    code: Array
    passed: Array
    """How many events of each key are among them or came before."""


def units_of(counted: Counted, parcels: pa.Table) -> pa.Table:
    """The events in parcels as units."""
    events, of_event = unpacked(parcels, counted.events)
    cut = counted.cut(events, 0)
    which = pa.array(of_event[cut.rows])
    whose = parcels.select([CHILD, NUMBER]).combine_chunks().take(which)
    return cut.cells.append_column(CHILD, whose[CHILD]).append_column(NUMBER, whose[NUMBER])


def ordered(counted: Counted, units: pa.Table, passed: pa.Table) -> Order:
    """Units by key and time, those of equal time by node.

    `passed` says how many events of each key came before.
    """
    names = (*counted.keys, ROWS)
    both = pa.concat_tables([passed.select(names), units.select(names)]).combine_chunks()
    codes, keys = encode_keys(both, tuple(counted.keys))
    known, code = np.split(codes, [passed.num_rows])
    before = np.zeros(keys.num_rows if counted.keys else 1, np.int64)
    before[known] = passed.column(ROWS).to_numpy()
    child, _ = encode_keys(units.select([CHILD]).combine_chunks(), (CHILD,))
    numbers = units.column(NUMBER).to_numpy()
    order = np.lexsort((numbers, child, ticks(units, START), code))
    units = units.take(pa.array(order)).combine_chunks()
    rows = units.column(ROWS).to_numpy()
    spans = (ticks(units, START), ticks(units, LAST))
    return Order(units, code[order], grouped(code[order], *spans, rows, before), keys, before)


def settle(counted: Counted, order: Order, done: Array, settled: pa.Table) -> Settled:
    """Some of the units, whose positions are known, together with those settled before."""
    code, n = order.code[done], len(order.passed)
    units = order.units.filter(pa.array(done)).select(counted.units.names)
    rows = units.column(ROWS).to_numpy()
    behind = np.append(0, np.cumsum(rows))
    first = behind[np.searchsorted(code, np.arange(n + 1))]
    position = order.passed[code] + behind[:-1] - first[code]
    fresh = units.append_column(POSITION, pa.array(position))
    both = pa.concat_tables([settled, fresh])
    codes = np.zeros(both.num_rows, np.int64)
    if counted.keys:
        # All keys are among those of the order, so their codes stay the same.
        known = pa.concat_tables([order.keys, both.select(counted.keys)]).combine_chunks()
        codes = encode_keys(known, tuple(counted.keys))[0][n:]
    by_place = np.lexsort((both.column(POSITION).to_numpy(), codes))
    placed = both.take(pa.array(by_place)).combine_chunks()
    return Settled(placed, codes[by_place], order.passed + np.diff(first))
