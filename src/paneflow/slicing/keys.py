"""Key columns as dense codes: 0, 1, 2, ... in the order of the keys, nulls first."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.aggregates.operator import Array
from paneflow.aggregates.texts import roomy
from paneflow.aggregates.values import sortable_type
from paneflow.compiling import compiled
from paneflow.errors import InputError


def encode_keys(table: pa.Table, names: tuple[str, ...]) -> tuple[Array, pa.Table]:
    """The code of every row's key, and the distinct keys in order.

    >>> import pyarrow as pa
    >>> codes, keys = encode_keys(pa.table({"k": ["b", None, "a", "b"]}), ("k",))
    >>> codes.tolist(), keys["k"].to_pylist()
    ([2, 0, 1, 2], [None, 'a', 'b'])
    """
    n = table.num_rows
    if not names:
        return np.zeros(n, np.int64), pa.table({})
    parts = [_encode_one(table.column(name), name) for name in names]
    codes, distinct = parts[0]
    places = [np.arange(len(distinct))]
    for more, values in parts[1:]:
        width = len(values)
        codes, present = _dense(codes * width + more, len(places[0]) * width)
        places = [place[present // width] for place in places] + [present % width]
    columns = [values.take(pa.array(p)) for (_, values), p in zip(parts, places, strict=True)]
    return codes, pa.table(columns, names=list(names))


def check_key_type(type_: pa.DataType, name: str) -> None:
    """Refuse key types that have no exact equality."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if isinstance(type_, pa.BaseExtensionType):
        raise InputError(
            f"key column {name!r} has type {type_}, which cannot be put in order: cast it to text "
            f"or to its storage type {type_.storage_type}"
        )
    if pa.types.is_floating(type_) or pa.types.is_nested(type_) or pa.types.is_interval(type_):
        raise InputError(
            f"key column {name!r} has type {type_}, whose values cannot be told apart exactly: "
            f"cast it to an integer, text or a time"
        )


def _encode_one(chunked: pa.ChunkedArray, name: str) -> tuple[Array, pa.Array]:
    check_key_type(chunked.type, name)
    if pa.types.is_dictionary(chunked.type):
        chunked = chunked.cast(chunked.type.value_type)
    if pa.types.is_integer(chunked.type) and chunked.null_count == 0 and len(chunked):
        bounds = pc.min_max(chunked).as_py()
        low, width = bounds["min"], bounds["max"] - bounds["min"] + 1
        if width <= 2 * len(chunked) + 1024 and -(2**62) < low < 2**62:
            values = chunked.cast(pa.int64()).combine_chunks().to_numpy(zero_copy_only=False)
            codes, present = _dense(values - low if low else values, width)
            return codes, pa.array(present + low).cast(chunked.type)
    plain = roomy(chunked.cast(sortable_type(chunked.type)))
    whole = plain if len(plain) and plain.num_chunks > 1 else plain.combine_chunks()
    encoded = whole.dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    # The one null, if there is one, is sorted last; it belongs first.
    order = np.roll(pc.sort_indices(encoded.dictionary).to_numpy(), encoded.dictionary.null_count)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    codes = ranks[encoded.indices.to_numpy(zero_copy_only=False)]
    return codes, encoded.dictionary.take(pa.array(order))


def _dense(codes: Array, width: int) -> tuple[Array, Array]:
    """Codes without gaps, and the given code that each replaces."""
    if width > 8 * len(codes) + 1024:
        present, dense = np.unique(codes, return_inverse=True)
        return dense, present
    seen = np.zeros(width, np.bool_)
    _mark(codes, seen)
    present = np.flatnonzero(seen)
    if len(present) == width:
        return codes, present
    ranks = np.cumsum(seen) - 1
    return ranks[codes], present


@compiled
def _mark(codes, seen):  # type: ignore[no-untyped-def]
    for code in codes:
        seen[code] = True
