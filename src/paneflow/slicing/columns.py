"""Columns of a table as arrays that kernels can read, and back.

See aggregates/values.py for how each kind is held.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates._numerics import decimals, hashing
from paneflow.aggregates.operator import Array
from paneflow.aggregates.texts import roomy, taken
from paneflow.aggregates.values import Kind, kind_of, plain_type, sortable_type
from paneflow.errors import InputError


@dataclass(frozen=True, eq=False)
class Column:
    """A column in the order of its rows: values, which are valid (None: all), and the way back."""

    name: str
    type: pa.DataType
    kind: Kind
    values: Array
    valid: Array | None
    texts: pa.Array | None = None
    """The distinct texts in order, of which `values` are the ranks."""

    def part(self, which: Array | slice) -> Column:
        """Some of the rows, by position, mask or slice."""
        valid = None if self.valid is None else self.valid[which]
        return Column(self.name, self.type, self.kind, self.values[which], valid, self.texts)

    def decode(self, values: Array, valid: Array | None = None) -> pa.Array:
        """Held values as an Arrow array of the column's own type."""
        mask = None if valid is None else ~valid
        if self.texts is not None:
            if mask is not None:
                values = np.where(mask, 0, values)
            return taken(self.texts, pa.array(values, mask=mask))
        if self.kind is Kind.TEMPORAL:
            held = pa.int32() if self.type.bit_width == 32 else pa.int64()
            return pa.array(values, mask=mask).cast(held).view(self.type)
        if self.kind is Kind.BOOLEAN:
            return pa.array(values != 0, mask=mask)
        if self.kind.family is Kind.DECIMAL:
            return decimals.from_digits(values, self.type, valid)
        return pa.array(values, mask=mask).cast(self.type)

    @functools.cached_property
    def hashes(self) -> Array:
        """64-bit hashes of the values, equal on every machine."""
        if self.texts is not None:
            plain = self.texts.cast(pa.large_binary()).to_pylist()
            return hashing.hash_texts(plain)[self.values]
        if self.kind is Kind.FLOAT:
            return hashing.hash_floats(self.values)
        return hashing.hash_integers(self.values)

    @functools.cached_property
    def ranked(self) -> tuple[Array, Array]:
        """Ranks of the values, and the value of every rank."""
        if self.texts is not None:
            return self.values, np.arange(len(self.texts))
        if len(self.values) == 0:
            # Windows without a value look up a rank too, before the result is masked.
            return np.zeros(0, np.int64), np.zeros(1, self.values.dtype)
        if self.kind is not Kind.FLOAT:
            low, high = int(self.values.min()), int(self.values.max())
            if high - low < 2 * len(self.values) + 1024:
                # Ranks may have gaps, so a dense range needs no sorting. high + 1 may overflow.
                return self.values - low, low + np.arange(high - low + 1)
        distinct, ranks = np.unique(self.values, return_inverse=True)
        # Zeros are equal: they become one value, without a sign.
        return ranks, distinct + 0.0 if self.kind is Kind.FLOAT else distinct

    @functools.cached_property
    def objects(self) -> Array:
        """The values as Python objects."""
        out = np.empty(len(self.values), object)
        out[:] = self.decode(self.values).to_pylist()
        return out

    def form(self, form: str) -> Array:
        """The values as an operator's input asks for them."""
        if form == "hash":
            return self.hashes
        if form == "object":
            return self.objects
        return self.reals(self.values) if form == "float" else self.values

    def reals(self, values: Array) -> Array:
        """Held values as float64."""
        if self.kind.family is Kind.DECIMAL:
            return decimals.as_floats(values, self.kind.scale)
        return values.astype(np.float64, copy=False)


def read_column(table: pa.Table, name: str) -> Column:
    """A column of a table, in the form its kind needs."""
    column = table.column(name)
    reader = Reader(column.type, name)
    # Text may be more than one array can hold.
    text = reader.kind is Kind.TEXT and column.num_chunks > 1
    return reader.read(column if text else one_chunk(column))


class Reader:
    """Reads arrays of one type: what the type needs is worked out once."""

    def __init__(self, given: pa.DataType, name: str) -> None:
        self._name = name
        self.kind = kind_of(given, name)
        self._type = sortable_type(plain_type(given))
        self._cast = given != self._type
        self._plain = {pa.int64(): np.int64, pa.float64(): np.float64}.get(self._type)

    def read(self, array: pa.Array | pa.ChunkedArray) -> Column:
        """A column, in the form its kind needs; only text may come in chunks."""
        if self._cast:
            array = array.cast(self._type)
        valid: Array | None = None
        if array.null_count:
            valid = array.is_valid().to_numpy(zero_copy_only=False)
        elif self._plain is not None:
            values = numbers_of(array, self._plain)
            return Column(self._name, self._type, self.kind, values, None)
        if self.kind is Kind.TEXT:
            values, texts = _ranks(array)
            return Column(self._name, self._type, self.kind, values, valid, texts)
        if self.kind.family is Kind.DECIMAL:
            values = decimals.digits(array, self._name)
        else:
            values = _numbers(array, self.kind, self._name)
        return Column(self._name, self._type, self.kind, values, valid)


def numbers_of(array: pa.Array, dtype: Any = np.int64) -> Array:
    """The numbers of an array of 64 bits each, none of them null, without a copy.

    Unlike `to_numpy`, this keeps the interpreter lock, which may take long to get back.

    >>> numbers_of(pa.array([5, 6, 7]).slice(1))
    array([6, 7])
    """
    n = len(array)
    numbers = np.frombuffer(array.buffers()[1], dtype, n, 8 * array.offset) if n else _NONE[dtype]
    numbers.setflags(write=False)
    return numbers


_NONE = {dtype: np.empty(0, dtype) for dtype in (np.int64, np.float64)}


def as_arrow(values: Array, type_: pa.DataType) -> pa.Array:
    """Numbers as an Arrow array of a type of the same width, none of them null.

    They are not copied if they are contiguous.
    """
    held = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(type_, len(values), [None, held])


def one_chunk(chunked: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    if chunked.num_chunks == 1:
        return chunked.chunk(0)
    merged = chunked.combine_chunks()
    return merged.combine_chunks() if isinstance(merged, pa.ChunkedArray) else merged


def _numbers(array: pa.Array, kind: Kind, name: str) -> Array:
    if kind is Kind.BOOLEAN:
        array = array.cast(pa.int8())
    elif kind is Kind.TEMPORAL:
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    if array.null_count:
        array = array.fill_null(0)
    if kind is Kind.FLOAT:
        floats: Array = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return floats
    try:
        integers: Array = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        raise InputError(
            f"column {name!r} of type {array.type} holds values that do not fit into int64: "
            f"cast it to float64 first"
        ) from None
    return integers


def _ranks(array: pa.Array | pa.ChunkedArray) -> tuple[Array, pa.Array]:
    encoded = roomy(array).dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()  # all chunks have the same dictionary
    if len(encoded.dictionary) == 0:
        return np.zeros(len(array), np.int64), pa.array([""]).cast(array.type)
    order = pc.sort_indices(encoded.dictionary)
    ranks = np.empty(len(order), np.int64)
    ranks[order.to_numpy()] = np.arange(len(order))
    codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return ranks[codes], encoded.dictionary.take(order)


def require_columns(schema: pa.Schema, wanted: dict[str, str]) -> None:
    """Refuse a table that lacks a column; `wanted` says what each is needed for."""
    for name, purpose in wanted.items():
        found = schema.get_all_field_indices(name)
        if not found:
            raise InputError(
                f"column {name!r} is needed as {purpose}, but the table has "
                f"{', '.join(map(repr, schema.names)) or 'no columns'}: name an existing column"
            )
        if len(found) > 1:
            raise InputError(f"column {name!r} occurs {len(found)} times: rename all but one")
