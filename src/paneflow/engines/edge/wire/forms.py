"""Forms in which a column of a table travels, so that what can be foreseen takes no bytes.

The times and numbers of slices mostly grow by little from row to row, and text, such as the name of
a node, is often the same in all rows. Compression alone does not see the former, and pays for each
offset of the latter.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.operator import Array
from paneflow.engines.edge.wire.errors import WireError
from paneflow.slicing.columns import as_arrow

FEW = 16
"""Tables of fewer rows are too short to gain from it."""
LONGEST = 32
"""Longer texts are written in every row, so that no message can grow much beyond its size."""


class Form(IntEnum):
    """How a column is written."""

    PLAIN = 0
    DIFFERENCES = 1
    """Each value as what it differs from the one before, the sign in the last bit."""
    ONCE = 2
    """Text that is the same in all rows: only the first has it, and the others are empty."""


def formed(column: pa.Array) -> tuple[Form, pa.Array]:
    """A column in the form in which it is fewest bytes."""
    if len(column) < FEW or column.null_count:
        return Form.PLAIN, column
    if _is_whole(column.type):
        values = _integers(column)
        steps = np.diff(values)
        # Overflows only make the choice worse.
        if np.abs(steps).sum() <= np.abs(values - values[0]).sum() // 2:
            written = np.append(values[:1], (steps << 1) ^ (steps >> 63))
            return Form.DIFFERENCES, as_arrow(written, column.type)
    elif _is_short_text(column) and pc.all(pc.equal(column, column[0])).as_py():
        rest = pa.repeat(pa.scalar("", column.type), len(column) - 1)
        return Form.ONCE, pa.concat_arrays([column.slice(0, 1), rest])
    return Form.PLAIN, column


def restored(form: int, column: pa.Array) -> pa.Array:
    """The column that was written in a form."""
    if form == Form.PLAIN:
        return column
    if len(column) and not column.null_count:
        if form == Form.DIFFERENCES and _is_whole(column.type):
            values = _integers(column).copy()
            written = values[1:].view(np.uint64)
            steps = (written >> np.uint64(1)) ^ (np.uint64(0) - (written & np.uint64(1)))
            values[1:] = steps.view(np.int64)
            return as_arrow(np.cumsum(values), column.type)
        if form == Form.ONCE and _is_short_text(column):
            return pa.repeat(column[0], len(column))
    raise WireError(f"a column of type {column.type} is in a form ({form}) that it cannot have")


def _is_whole(kind: pa.DataType) -> bool:
    """Whether values are held as integers of 64 bits."""
    return bool(
        kind in (pa.int64(), pa.date64(), pa.time64("us"), pa.time64("ns"))
        or pa.types.is_timestamp(kind)
        or pa.types.is_duration(kind)
    )


def _is_short_text(column: pa.Array) -> bool:
    """Whether a column is text that may be written once, by its first value."""
    return bool(pa.types.is_string(column.type)) and len(column[0].as_buffer()) <= LONGEST


def _integers(column: pa.Array) -> Array:
    values: Array = column.view(pa.int64()).to_numpy()
    return values
