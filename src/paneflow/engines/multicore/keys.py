"""Keys of a stream as codes: 0, 1, 2, ... in the order in which they first come.

Within a batch keys are found by columns (`slicing/keys.py`); only a batch's few distinct keys
are looked up one by one. Codes never change, so that whoever keeps something for each key can
keep it in arrays. What order the keys themselves have is asked when rows are put in order.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyarrow.types import is_primitive

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.engines.multicore.holding import Loop, taken
from paneflow.slicing.columns import as_arrow, numbers_of, one_chunk
from paneflow.slicing.keys import encode_keys

MOST_DIRECT = 16_384
"""Integers that are looked up by their place, at most."""


class KeyCodes:
    """The keys seen so far."""

    def __init__(self, names: tuple[str, ...], schema: pa.Schema) -> None:
        self._names = names
        self._codes: dict[tuple[object, ...], int] = {}
        self._types = {name: schema.field(name).type for name in names}
        self._parts: list[pa.Table] = [pa.schema(self._types).empty_table()]
        self._ranks: Array | None = None
        self._by_code: dict[str, Array | pa.Array] = {}
        """The columns of the keys, by code: as numbers, where they are numbers without nulls."""
        self._whole = len(names) == 1 and pa.types.is_integer(self._types[names[0]])
        self._narrow = self._whole and self._types[names[0]] != pa.int64()
        self._direct: tuple[int, Array] | None = None
        """Where the one key is an integer: the least one, and the codes from there on, or -1.

        Other threads look keys up while new ones come, so it is replaced as a whole."""

    def __len__(self) -> int:
        return len(self._codes) if self._names else 1

    def encode(self, events: pa.RecordBatch) -> Array:
        """The code of every event's key."""
        if not self._names:
            return np.zeros(events.num_rows, np.int64)
        direct = self._direct
        if direct is not None:
            codes = self._look_up(events.column(self._names[0]), *direct)
            if codes is not None:
                return codes
        local, distinct = encode_keys(pa.Table.from_batches([events]), self._names)
        values = list(zip(*map(_lookups, distinct.columns), strict=True))
        known = [self._codes.get(value, -1) for value in values]
        if -1 in known:
            self._learn(local, distinct, values, known)
            self._note_direct()
        codes = np.array(known, np.int64)
        if (
            len(codes)
            and codes[-1] == len(codes) - 1
            and np.array_equal(codes, np.arange(len(codes)))
        ):
            return local
        return codes[local]

    def _learn(
        self, local: Array, distinct: pa.Table, values: list[tuple[object, ...]], known: list[int]
    ) -> None:
        """Give new keys their codes, in the order in which they come."""
        first = np.full(len(known), len(local))
        _first_places(local, first)
        fresh = np.flatnonzero(np.array(known) < 0)
        fresh = fresh[np.argsort(first[fresh], kind="stable")]
        for place in fresh.tolist():
            known[place] = self._codes[values[place]] = len(self._codes)
        self._parts.append(distinct.take(pa.array(fresh)))
        self._ranks = None
        self._by_code = {}

    def _look_up(self, column: pa.Array, least: int, by_place: Array) -> Array | None:
        """The codes of small integers that are all known; None if another way must be taken."""
        if column.null_count:
            return None
        if self._narrow:
            column = column.cast(pa.int64(), safe=False)
        codes = np.empty(len(column), np.int64)
        found = _find(len(column), numbers_of(column), least, by_place, codes)
        return codes if found else None

    def _note_direct(self) -> None:
        """Let integers that lie close together be looked up by their place."""
        self._direct = None
        if not self._whole or len(self._codes) > MOST_DIRECT:
            return
        keys = [key for (key,) in self._codes if isinstance(key, int)]
        least, most = min(keys, default=0), max(keys, default=0)
        if most - least <= 4 * MOST_DIRECT and most < 2**63:
            codes = np.full(most - least + 1, -1)
            for key in keys:
                codes[key - least] = self._codes[(key,)]
            self._direct = (least, codes)

    @property
    def table(self) -> pa.Table:
        """The keys by code."""
        if len(self._parts) > 1:
            self._parts = [pa.concat_tables(self._parts).combine_chunks()]
        return self._parts[0]

    def column(self, name: str, codes: Array) -> pa.Array:
        """A column of the keys with these codes."""
        if not self._by_code:
            self._by_code = {each: _values(self.table.column(each)) for each in self._names}
        values = self._by_code[name]
        if isinstance(values, pa.Array):
            return values.take(pa.array(codes))
        return as_arrow(taken(values, codes), self._types[name])

    def ranks(self, codes: Array) -> Array:
        """Numbers in the order of the keys with these codes, nulls first."""
        if not self._names:
            return codes
        if self._ranks is None and len(codes) < len(self):
            # While many keys are new, only those that are asked for are put in order.
            asked, places = np.unique(codes, return_inverse=True)
            return encode_keys(self.table.take(pa.array(asked)), self._names)[0][places]
        if self._ranks is None:
            self._ranks = encode_keys(self.table, self._names)[0].astype(np.int64, copy=False)
        return self._ranks[codes]


def _values(column: pa.ChunkedArray) -> Array | pa.Array:
    array = one_chunk(column)
    if array.null_count or not (is_primitive(array.type) and array.type.bit_width in (32, 64)):
        return array
    held = pa.int32() if array.type.bit_width == 32 else pa.int64()
    numbers: Array = array.view(held).to_numpy()
    return numbers


def _lookups(column: pa.ChunkedArray) -> list[object]:
    """The values of a column in a form that can be looked up; times as numbers."""
    if pa.types.is_temporal(column.type):
        held = pa.int32() if column.type.bit_width == 32 else pa.int64()
        column = column.combine_chunks().view(held)
    values: list[object] = column.to_pylist()
    return values


@compiled
def _first_places(codes, first):  # type: ignore[no-untyped-def]
    for i in range(len(codes) - 1, -1, -1):
        first[codes[i]] = i


@Loop
def _find(values, least, codes, out):  # type: ignore[no-untyped-def]
    known = True
    for i in range(len(values)):
        place = values[i] - least
        if place < 0 or place >= len(codes):
            return False
        out[i] = codes[place]
        known &= out[i] >= 0
    return known
