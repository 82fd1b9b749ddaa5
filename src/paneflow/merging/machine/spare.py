"""Memory for large results, reused once the results are gone.

Memory that is new from the system is cleared when it is first written, which takes half as long
as a merge at memory speed itself. The C library reuses freed memory, but not large blocks; so one
large block is kept here.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from paneflow.aggregates.operator import Array

LARGE, MOST = 32 << 20, 256 << 20
"""Bytes of a block that is worth keeping, and that are kept at most."""

_spare: list[Array] = []


def empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array that has yet to be written, as `np.empty` gives it."""
    count, item = math.prod(shape), np.dtype(dtype).itemsize
    if not LARGE <= count * item <= MOST:
        return np.empty(shape, dtype)
    block = _taken(count * item)
    # Views of it hold this array and not the block, so the block is free when this array goes.
    lent: Array = np.frombuffer(block.data, dtype, count)
    weakref.finalize(lent, _keep, block).atexit = False
    return lent.reshape(shape)


def _taken(size: int) -> Array:
    try:
        block = _spare.pop()
    except IndexError:
        return np.empty(size, np.uint8)
    return block if len(block) >= size else np.empty(size, np.uint8)


def _keep(block: Array) -> None:
    _spare[:] = [block]


def forget() -> None:
    """Give what is kept back to the system."""
    _spare.clear()
