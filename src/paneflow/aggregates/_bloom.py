"""A Bloom filter: a row of bits that knows which values it has certainly not seen.

A value sets a few bits, chosen by its hash; a filter in which one of them is not set has not
seen the value. Filters merge by a bitwise or, so they do not depend on order or on slices. The
bits of a value are the remainders of a + i * b, where a and b are the halves of its 64-bit hash:
two hashes serve for any number (Kirsch, Mitzenmacher: "Less hashing, same performance", 2006).

As bytes a filter is its 64-bit words in order, each little-endian: bit i is bit i % 8 of byte
i // 8. `absorb` and `combine` are plain Python so that they can be compiled into the loops
around them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paneflow.aggregates._checks import whole_number
from paneflow.aggregates._numerics.hashing import hash_value
from paneflow.errors import InputError

Words = NDArray[np.uint64]

MOST_BITS = 2**27
"""A filter is kept for every slice, so it must not fill the memory by itself."""
MOST_HASHES = 32


def absorb(row: Words, h: np.uint64, hashes: int) -> Words:
    """Set the bits of a hash in a row of words, in place, and return the row."""
    bits = 64 * len(row)
    # In int64 throughout: compiled code turns a mixture with uint64 into floats.
    at = np.int64(h & np.uint64(0xFFFFFFFF))
    step = np.int64(h >> np.uint64(32)) | 1
    for _ in range(hashes):
        bit = at % bits
        row[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
        at += step
    return row


def combine(a: Words, b: Words) -> Words:
    """A new row that has seen what either has."""
    return a | b


def contains(filter: bytes, value: object, hashes: int = 4) -> bool:
    """Ask a Bloom filter whether it has seen a value.

    Args:
        filter: The bytes that `bloom_filter` returned.
        value: A value of the column's kind: the integer 1 and the float 1.0 are different values.
        hashes: The number that was given to `bloom_filter`.

    Returns:
        False if the value was certainly not seen; True if it probably was.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> query = Query(W.tumbling(10), {"seen": A.bloom_filter("plug")}, time="t")
        >>> seen = query.over([{"t": 1, "plug": "a"}, {"t": 2, "plug": "b"}])[0]["seen"]
        >>> A.bloom_contains(seen, "a"), A.bloom_contains(seen, "z")
        (True, False)
    """
    if not isinstance(filter, bytes | bytearray | memoryview):
        raise InputError(
            f"a Bloom filter is bytes, not {filter!r}: pass the bytes that bloom_filter returned"
        )
    whole_number(hashes, "bloom_contains: hashes", 1, MOST_HASHES)
    if len(filter) == 0 or len(filter) % 8:
        raise InputError(
            f"a Bloom filter is a whole number of 64-bit words, but {len(filter)} bytes were "
            f"given: pass the bytes that bloom_filter returned, unchanged"
        )
    words = np.frombuffer(filter, "<u8").astype(np.uint64)
    asked = absorb(np.zeros_like(words), np.uint64(hash_value(value)), hashes)
    return bool(np.array_equal(words & asked, asked))
