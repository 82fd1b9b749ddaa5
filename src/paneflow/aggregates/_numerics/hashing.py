"""64-bit hashes of values, the same on every machine and in every engine.

Python's own hash differs from process to process, but a Bloom filter that one engine has built must
be readable by all others. Numbers go through the finaliser of splitmix64 (Steele,
Lea, Flood: "Fast splittable pseudorandom number generators", 2014), text through BLAKE2b.

What is hashed of a value:

- an integer or a boolean: the number, as int64;
- a float: its bits, with one zero and one NaN; 1 and 1.0 need not have equal hashes;
- text: its UTF-8 bytes; binary data: the bytes;
- a timestamp (UTC; a naive one is taken as UTC), a time of day, a duration: microseconds;
  a date: days since 1970-01-01.

The functions over arrays and `hash_value` return the same hashes, for columns and for the oracle.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import struct
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from paneflow.errors import InputError
from paneflow.names import is_name

Hashes = NDArray[np.uint64]

# The finaliser's constants; all arithmetic is modulo 2^64.
STEP = 0x9E3779B97F4A7C15
FIRST_FACTOR = 0xBF58476D1CE4E5B9
SECOND_FACTOR = 0x94D049BB133111EB
MASK = 0xFFFFFFFFFFFFFFFF
NAN_BITS = 0x7FF8000000000000

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICROSECOND = dt.timedelta(microseconds=1)


def hash_integers(values: NDArray[np.int64]) -> Hashes:
    """The hashes of integers, booleans or times.

    >>> import numpy as np
    >>> int(hash_integers(np.array([7]))[0]) == hash_value(7)
    True
    """
    return _mix(np.ascontiguousarray(values, np.int64).view(np.uint64))


def hash_floats(values: NDArray[np.float64]) -> Hashes:
    """The hashes of floats.

    >>> import numpy as np
    >>> zero, minus_zero = hash_floats(np.array([0.0, -0.0]))
    >>> bool(zero == minus_zero)
    True
    """
    # Adding zero turns -0.0 into 0.0 and changes nothing else.
    bits = (np.ascontiguousarray(values, np.float64) + 0.0).view(np.uint64)
    return _mix(np.where(np.isnan(values), np.uint64(NAN_BITS), bits))


def hash_texts(values: Iterable[bytes]) -> Hashes:
    """The hashes of texts in UTF-8, or of binary values. Pass distinct values: each costs a call.

    >>> int(hash_texts([b"plug"])[0]) == hash_value("plug")
    True
    """
    return np.array([_digest(value) for value in values], np.uint64)


def hash_value(value: object) -> int:
    """The hash of one value, as the functions over arrays give it.

    >>> hash_value(1) == hash_value(True), hash_value("a") == hash_value(b"a")
    (True, True)
    """
    match value:
        case np.timedelta64():
            pass  # an integer for NumPy, but not here
        case bool() | int() | np.bool_() | np.integer():
            return _mix_one(_checked(int(value)))
        case float() | np.floating():
            x = float(value) + 0.0
            return _mix_one(
                NAN_BITS if math.isnan(x) else int.from_bytes(struct.pack("<d", x), "little")
            )
        case str() if is_name(value) or not value:
            return _digest(value.encode())
        case bytes():
            return _digest(value)
        case dt.datetime() if value == value:
            aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return _mix_one((aware - EPOCH) // MICROSECOND)
        case dt.date() if value == value:  # pandas' NaT is a date, and not equal to itself
            return _mix_one((value - EPOCH.date()).days)
        case dt.time():
            since_midnight = dt.datetime.combine(EPOCH.date(), value, dt.UTC) - EPOCH
            return _mix_one(since_midnight // MICROSECOND)
        case dt.timedelta():
            return _mix_one(value // MICROSECOND)
    raise InputError(
        f"cannot hash {value!r} of type {type(value).__name__}: expected an integer, a float, a "
        f"boolean, text, bytes, or a date or time: convert it first"
    )


def _checked(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise InputError(
            f"cannot hash {value}: expected an integer that fits into int64: "
            f"convert it to text or to a float first"
        )
    return value


def _mix(bits: Hashes) -> Hashes:
    bits = bits + np.uint64(STEP)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(FIRST_FACTOR)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(SECOND_FACTOR)
    return bits ^ (bits >> np.uint64(31))


def _mix_one(bits: int) -> int:
    bits = (bits + STEP) & MASK
    bits = ((bits ^ (bits >> 30)) * FIRST_FACTOR) & MASK
    bits = ((bits ^ (bits >> 27)) * SECOND_FACTOR) & MASK
    return bits ^ (bits >> 31)


def _digest(value: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(value, digest_size=8).digest(), "little")
