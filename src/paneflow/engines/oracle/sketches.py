"""What the sketches mean, over the list of a window's values.

A sketch is its algorithm: there is no other definition of its estimate. So these references
share the solver of the moment sketch and the library of HLL and KLL with the engines, but none
of their slicing and merging: one list, one sketch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from paneflow.aggregates._numerics import maxent
from paneflow.aggregates._numerics.datasketches import Hll, Kll
from paneflow.aggregates._numerics.hashing import hash_value


def bloom_filter(values: list[Any], bits: int, hashes: int) -> bytes:
    """A filter of so many bits in which every value has set its own.

    >>> bloom_filter([], 64, 4)
    b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00'
    """
    filter = 0
    for value in values:
        h = hash_value(value)
        low, high = h % 2**32, h // 2**32
        for i in range(hashes):
            filter |= 1 << (low + i * (high | 1)) % bits
    return filter.to_bytes(bits // 8, "little")


def moment_sketch(values: list[float], q: float, k: int) -> float:
    """The q-quantile that the sums of the first k powers and logarithmic powers suggest.

    >>> moment_sketch([1.0, 1.0, 1.0, 5.0], 0.5, 10)
    1.0
    """
    if not all(map(math.isfinite, values)):
        return math.nan
    positive = min(values) > 0
    powers = [_sum_of_powers(values, i, float) for i in range(1, k + 1)]
    logs = [_sum_of_powers(values, i, math.log) if positive else 0.0 for i in range(1, k + 1)]
    estimates = maxent.quantiles(
        np.array([min(values)]),
        np.array([max(values)]),
        np.array([float(len(values))]),
        np.array([powers]),
        np.array([logs]),
        np.array([q]),
    )
    return float(estimates[0, 0])


def approx_distinct(values: list[Any], lg_k: int) -> float:
    """The HLL estimate of how many different values there are.

    >>> approx_distinct(["a", "b", "a"], 12) == approx_distinct(["b", "a"], 12)
    True
    """
    hll = Hll(lg_k)
    return hll.lower(hll.lift(values))


def approx_quantile(values: list[float], q: float, k: int) -> float:
    """The KLL estimate of the q-quantile.

    >>> approx_quantile([3.0, 1.0, 2.0], 0.5, 200)
    2.0
    """
    kll = Kll(k)
    return kll.lower(kll.lift(values), q)


def _sum_of_powers(values: list[float], exponent: int, of: Callable[[float], float]) -> float:
    """The correctly rounded sum; infinite if a power or the sum is too large for a float."""
    try:
        return math.fsum(of(value) ** exponent for value in values)
    except OverflowError:
        return math.inf
