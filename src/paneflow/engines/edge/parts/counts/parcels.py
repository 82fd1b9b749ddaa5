"""Events as parcels: lists of them, as they travel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.engines.edge.counted import HELD
from paneflow.slicing.columns import one_chunk


class Unpacked(NamedTuple):
    """The events of several parcels."""

    events: pa.Table
    parcels: Array
    """The place of each event's parcel."""


def packed(events: pa.Table, lengths: Array) -> pa.ListArray:
    """Parcels of so many events each, which stand one parcel after the other."""
    columns = [one_chunk(column) for column in events.columns]
    held = pa.StructArray.from_arrays(columns, fields=list(events.schema))
    offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
    return pa.ListArray.from_arrays(offsets, held)


def unpacked(parcels: pa.Table, schema: pa.Schema) -> Unpacked:
    """The events in parcels."""
    lists = one_chunk(parcels.column(HELD))
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    events = pa.Table.from_arrays(lists.flatten().flatten(), schema=schema)
    return Unpacked(events, np.repeat(np.arange(len(lists)), lengths))
