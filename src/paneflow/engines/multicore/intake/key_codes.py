"""Keys of a stream as codes: 0, 1, 2, ... in the order in which they first appear.

The keys of a batch are encoded by columns (`slicing/keys.py`), and only its few distinct keys are
looked up one by one. Codes never change, so what is kept for each key can be kept in arrays. The
order of the keys themselves matters only when rows are sorted.

Several threads may encode keys at a time: new ones are learned by one thread after the other.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.types import is_primitive

from paneflow.aggregates.operator import Array
from paneflow.compiling import compiled
from paneflow.engines.multicore.stores.growing import Grown
from paneflow.engines.multicore.stores.joined_batches import JoinedBatches
from paneflow.engines.multicore.threads.short_loops import Loop, taken
from paneflow.engines.multicore.tuning import tuning
from paneflow.slicing.columns import as_arrow, numbers_of
from paneflow.slicing.keys import encode_keys


class KeyCodes:
    """The keys seen so far."""

    def __init__(self, names: tuple[str, ...], schema: pa.Schema) -> None:
        self._names = names
        self._codes: dict[tuple[object, ...], int] = {}
        self._types = {name: schema.field(name).type for name in names}
        self._keys = JoinedBatches([], [])
        self._ranks: Array | None = None
        self._numbers = {name: Grown(_held(t)) for name, t in self._types.items() if _held(t)}
        """The key columns that are numbers without nulls, by code."""
        self._whole = len(names) == 1 and pa.types.is_integer(self._types[names[0]])
        self._narrow = self._whole and self._types[names[0]] != pa.int64()
        self._direct: tuple[int, Array] | None = None
        """For a single integer key: the smallest key, and the codes from there on, -1 if unknown.

        Other threads look keys up while new ones arrive: codes are only added, and when there is
        no room left, both are replaced."""
        self._lock = threading.Lock()
        """Held while keys are learned, or read by their codes."""

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
        with self._lock:
            known = [self._codes.get(value, -1) for value in values]
            if -1 in known:
                self._learn(local, distinct, values, known)
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
        """Give codes to new keys, in the order in which they appear."""
        first = np.full(len(known), len(local))
        _first_places(local, first)
        fresh = np.flatnonzero(np.array(known) < 0)
        fresh = fresh[np.argsort(first[fresh], kind="stable")]
        for place in fresh.tolist():
            known[place] = self._codes[values[place]] = len(self._codes)
        (batch,) = distinct.take(pa.array(fresh)).combine_chunks().to_batches()
        self._keep(batch)
        self._note_direct([values[place][0] for place in fresh.tolist()])
        self._ranks = None

    def _keep(self, batch: pa.RecordBatch) -> None:
        """Keep keys that were given the next codes."""
        first = len(self._codes) - batch.num_rows
        self._keys.starts.append(first)
        self._keys.batches.append(batch)
        self._keys.join(tuning.joined_keys)
        for name in list(self._numbers):
            column = batch.column(name)
            if column.null_count:
                del self._numbers[name]
            else:
                held = pa.int32() if column.type.bit_width == 32 else pa.int64()
                self._numbers[name].put(first, column.view(held).to_numpy())

    def _look_up(self, column: pa.Array, least: int, by_place: Array) -> Array | None:
        """The codes of integers by their place in a table; None if some are not in it."""
        if column.null_count:
            return None
        if self._narrow:
            column = column.cast(pa.int64(), safe=False)
        codes = np.empty(len(column), np.int64)
        found = _find(len(column), numbers_of(column), least, by_place, codes)
        return codes if found else None

    def _note_direct(self, keys: list[object]) -> None:
        """Enter new integer keys into the table, if they all lie close together."""
        if not self._whole or len(self._codes) > tuning.direct_keys:
            self._whole, self._direct = False, None
            return
        fresh = [key for key in keys if isinstance(key, int)]
        if not fresh:
            return
        least, codes = self._direct or (fresh[0], np.full(1, -1))
        low, high = min(fresh), max(fresh)
        if low < least or high >= least + len(codes):
            low = min(low, least)
            high = max(high, least + int(np.flatnonzero(codes >= 0).max(initial=0)))
            if high - low > 4 * tuning.direct_keys or high >= 2**63:
                self._whole, self._direct = False, None
                return
            room = np.full(min(2 * (high - low + 1), 4 * tuning.direct_keys + 1), -1)
            codes = codes[: high - least + 1]
            room[least - low :][: len(codes)] = codes
            least, codes = low, room
        for key in fresh:
            codes[key - least] = self._codes[(key,)]
        self._direct = (least, codes)

    def column(self, name: str, codes: Array) -> pa.Array:
        """A column of the keys with these codes."""
        with self._lock:
            if name in self._numbers:
                return as_arrow(taken(self._numbers[name].values, codes), self._types[name])
            return self._of(codes).column(name)

    def ranks(self, codes: Array) -> Array:
        """Numbers in the order of the keys with these codes, nulls first."""
        if not self._names or len(codes) == 0:
            return codes
        with self._lock:
            if self._ranks is None and len(codes) < len(self):
                # While many keys are new, only those that are needed are sorted.
                asked, places = np.unique(codes, return_inverse=True)
                return self._encoded(asked)[places]
            if self._ranks is None:
                self._ranks = self._encoded(np.arange(len(self))).astype(np.int64, copy=False)
            ranks = self._ranks
        return ranks[codes]

    def _encoded(self, codes: Array) -> Array:
        return encode_keys(pa.Table.from_batches([self._of(codes)]), self._names)[0]

    def _of(self, codes: Array) -> pa.RecordBatch:
        """The keys with these codes."""
        if len(self._keys.batches) == 1:
            return self._keys.batches[0].take(pa.array(codes))
        asked, places = np.unique(codes, return_inverse=True)
        return self._keys.gather(asked).take(pa.array(places))


def _held(type_: pa.DataType) -> Any:
    """The NumPy type that holds a key; None if it is no number."""
    if not is_primitive(type_):
        return None
    return {32: np.int32, 64: np.int64}.get(type_.bit_width)


def _lookups(column: pa.ChunkedArray) -> list[object]:
    """The values of a column as dictionary keys; times as numbers."""
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
