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
from paneflow.aggregates._hashing import hash_value
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
    """Whether a filter may have seen a value: False is certain, True is not.

    `hashes` is the number given to `bloom_filter`. The value must be of the column's kind: the
    integer 1 and the float 1.0 are different values.

    >>> row = absorb(np.zeros(16, np.uint64), np.uint64(hash_value("plug 7")), 4)
    >>> filter = row.astype("<u8").tobytes()
    >>> contains(filter, "plug 7"), contains(filter, "plug 8")
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
