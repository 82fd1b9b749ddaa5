"""Gigabytes of text: an array of a plain Arrow type holds 2 GiB, one of a large type any amount.

Text is read and joined in large types where necessary. Results have the type of their column, so
there the text is returned in several chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paneflow.errors import UnsupportedError

MOST = 2**31 - 1
"""The bytes of text that one array of a plain type can hold."""
LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def roomy(text: Any) -> Any:
    """Text in a type that can hold all of it in one array; its bytes are not copied.

    >>> roomy(pa.chunked_array([["a"], ["b"]])).type
    DataType(string)
    """
    large = LARGE.get(text.type)
    return text if large is None or text.nbytes <= MOST else text.cast(large)


def taken(values: pa.Array, places: pa.Array) -> pa.Array:
    """Values by their positions, in a large type if together they need it.

    >>> taken(pa.array(["a", "b"]), pa.array([1, 1, None])).to_pylist()
    ['b', 'b', None]
    """
    large = LARGE.get(values.type)
    if large is not None and len(values) and len(places):
        lengths = pc.binary_length(values)
        much = (pc.max(lengths).as_py() or 0) * len(places) > MOST
        if much and (pc.sum(lengths.cast(pa.int64()).take(places)).as_py() or 0) > MOST:
            values = values.cast(large)
    return values.take(places)


def joined(arrays: Sequence[pa.Array]) -> pa.Array:
    """Arrays one after the other, text in a large type if together they need it.

    >>> joined([pa.array(["a"]), pa.array(["b"], pa.large_string())]).type
    DataType(large_string)
    """
    if len({array.type for array in arrays}) > 1 or sum(a.nbytes for a in arrays) > MOST:
        arrays = [array.cast(_large(array.type)) for array in arrays]
    return pa.concat_arrays(arrays)


def in_type(array: Any, type_: pa.DataType) -> Any:
    """An array in a given type, in chunks if one array cannot hold all of the text.

    >>> in_type(pa.array(["a"], pa.large_string()), pa.string()).type
    DataType(string)
    """
    if array.type == type_:
        return array
    if array.nbytes <= MOST or _large(type_) == type_:
        return array.cast(type_)
    return pa.chunked_array(_pieces(array, type_), type_)


def _large(type_: pa.DataType) -> pa.DataType:
    """The type that holds any amount of the same text; other types stay as they are."""
    if pa.types.is_list(type_):
        return pa.list_(_large(type_.value_type))
    return LARGE.get(type_, type_)


def _pieces(array: pa.Array, type_: pa.DataType) -> list[pa.Array]:
    if array.nbytes <= MOST:
        return [_apart(array, type_)]
    if len(array) == 1:
        raise UnsupportedError(
            f"one result holds more than 2 GiB of text, which {type_} cannot: use shorter windows, "
            f"or cast the column to {LARGE.get(type_, pa.large_string())}"
        )
    half = len(array) // 2
    return _pieces(array.slice(0, half), type_) + _pieces(array.slice(half), type_)


def _apart(piece: pa.Array, type_: pa.DataType) -> pa.Array:
    """A piece of an array in a plain type. A cast would depend on where the piece lies."""
    if type_ not in LARGE:
        return piece.take(pa.array(np.arange(len(piece)))).cast(type_)
    _, places, text = piece.buffers()
    offsets = np.frombuffer(places, np.int64)[piece.offset : piece.offset + len(piece) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    valid = np.packbits(piece.is_valid().to_numpy(zero_copy_only=False), bitorder="little")
    held = [pa.py_buffer(valid), pa.py_buffer((offsets - first).astype(np.int32))]
    return pa.Array.from_buffers(type_, len(piece), [*held, text.slice(first, last - first)])
