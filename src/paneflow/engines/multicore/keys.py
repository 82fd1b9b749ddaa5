"""Keys of a stream as codes: 0, 1, 2, ... in the order in which they first come.

Within a batch keys are found by columns (`slicing/keys.py`); only a batch's few distinct keys
are looked up one by one. Codes never change, so that whoever keeps something for each key can
keep it in arrays. What order the keys themselves have is asked when rows are put in order.
"""

from __future__ import annotations

import numba
import numpy as np
import pyarrow as pa

from paneflow.aggregates.operator import Array
from paneflow.slicing.keys import encode_keys

compiled = numba.njit(nogil=True, cache=True)
MOST_DIRECT = 16_384
"""Integers that are looked up by their place, at most."""


class KeyCodes:
    """The keys seen so far."""

    def __init__(self, names: tuple[str, ...], schema: pa.Schema) -> None:
        self._names = names
        self._codes: dict[tuple[object, ...], int] = {}
        fields = [(name, schema.field(name).type) for name in names]
        self._parts: list[pa.Table] = [pa.schema(fields).empty_table()]
        self._ranks: Array | None = None
        self._whole = len(names) == 1 and pa.types.is_integer(schema.field(names[0]).type)
        self._direct: tuple[int, Array] | None = None
        """Where the one key is an integer: the least one, and the codes from there on, or -1.

        Other threads look keys up while new ones come, so it is replaced as a whole."""

    def __len__(self) -> int:
        return len(self._codes) if self._names else 1

    def encode(self, table: pa.Table) -> Array:
        """The code of every row's key."""
        if not self._names:
            return np.zeros(table.num_rows, np.int64)
        codes = self._look_up(table)
        if codes is not None:
            return codes
        local, distinct = encode_keys(table, self._names)
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

    def _look_up(self, table: pa.Table) -> Array | None:
        """The codes of small integers that are all known; None if another way must be taken."""
        direct = self._direct
        if direct is None:
            return None
        column = table.column(self._names[0])
        if column.null_count:
            return None
        values = column.cast(pa.int64(), safe=False).combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        codes = np.empty(len(values), np.int64)
        return codes if _find(values.to_numpy(), *direct, codes) else None

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

    def ranks(self, codes: Array) -> Array:
        """Numbers in the order of the keys with these codes, nulls first."""
        if not self._names:
            return codes
        if self._ranks is None and len(codes) < len(self):
            # While many keys are new, only those that are asked for are put in order.
            asked, places = np.unique(codes, return_inverse=True)
            return encode_keys(self.table.take(pa.array(asked)), self._names)[0][places]
        if self._ranks is None:
            self._ranks = encode_keys(self.table, self._names)[0]
        return self._ranks[codes]


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


@compiled
def _find(values, least, codes, out):  # type: ignore[no-untyped-def]
    known = True
    for i in range(len(values)):
        place = values[i] - least
        if place < 0 or place >= len(codes):
            return False
        out[i] = codes[place]
        known &= out[i] >= 0
    return known
