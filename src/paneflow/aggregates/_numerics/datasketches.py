"""Sketches from Apache DataSketches as partials: how a slice of values becomes a Python object.

Both classes offer the same five functions: `lift` values to a sketch, `combine` two sketches to
a new one, `lower` a sketch to its estimate, `dump` it to bytes and `load` it again.

The library is optional (`pip install paneflow[sketches]`) and imported when first used.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paneflow.aggregates._numerics.hashing import hash_value
from paneflow.errors import UnsupportedError

Values = NDArray[Any] | Sequence[Any]


def library() -> Any:
    """The module `datasketches`, or an error that says how to get it."""
    try:
        import datasketches
    except ImportError as error:
        raise UnsupportedError(
            "approx_distinct and approx_quantile need Apache DataSketches, which is not "
            "installed: run pip install 'paneflow[sketches]'"
        ) from error
    return datasketches


@dataclass(frozen=True)
class Hll:
    """The number of different values, by HyperLogLog with 2**lg_k registers.

    The registers are maxima, so they depend only on the set of values. DataSketches' estimate
    does not: a sketch that was filled value by value uses an estimator that follows the order of
    the updates (HIP) and is a little sharper. A union that has been given two sketches falls back
    to an estimator of the registers alone. So `lower` gives a union the same sketch twice, and
    the same set of values always has the same estimate, to the bit, however it was sliced.

    >>> hll = Hll()
    >>> parts = [hll.lift(["a", "b"]), hll.lift(["b", "c"])]
    >>> round(hll.lower(hll.combine(*parts)))
    3
    """

    lg_k: int = 12

    @property
    def parameters(self) -> tuple[int]:
        """What distinguishes this kind of sketch from others of its class."""
        return (self.lg_k,)

    def lift(self, values: Values) -> Any:
        """The sketch of some values: integers, floats, booleans, text or bytes."""
        return self.fold(values, self.lg_k)

    @staticmethod
    def fold(values: Values, lg_k: int) -> Any:
        """As `lift`, with the parameter given."""
        datasketches = library()
        sketch = datasketches.hll_sketch(lg_k, datasketches.tgt_hll_type.HLL_8)
        for value in values.tolist() if isinstance(values, np.ndarray) else values:
            if isinstance(value, float):
                # Like us, the library has one zero and one NaN.
                sketch.update(value)
            elif isinstance(value, int):
                sketch.update(int(value))
            else:
                # The library would skip empty text, and does not take bytes.
                sketch.update(hash_value(value) - (1 << 63))
        return sketch

    def combine(self, a: Any, b: Any) -> Any:
        """A new sketch of the values of both."""
        datasketches = library()
        union = datasketches.hll_union(self.lg_k)
        union.update(a)
        union.update(b)
        return union.get_result(datasketches.tgt_hll_type.HLL_8)

    def lower(self, sketch: Any) -> float:
        """The estimate, a function of the set of values alone."""
        return float(self.combine(sketch, sketch).get_estimate())

    def dump(self, sketch: Any) -> bytes:
        """The sketch in the library's portable format."""
        return bytes(sketch.serialize_compact())

    def load(self, data: bytes) -> Any:
        """The sketch that `dump` wrote."""
        return library().hll_sketch.deserialize(data)


@dataclass(frozen=True)
class Kll:
    """Quantiles of numbers, by a KLL sketch of doubles.

    While a window has at most k values, the sketch holds all of them, and the q-quantile is that
    of `quantile`, interpolated between two neighbours. Beyond, values are thinned out at random,
    and it is the least value held that at least a share q of all values does not exceed
    (DataSketches calls this rank inclusive): the estimate has a rank within about 1.3 % of q for
    k = 200, and differs between runs and slicings; the least and the greatest value stay exact.
    NaN has no rank here: it is passed over, and the estimate of nothing else is NaN.

    >>> kll = Kll()
    >>> parts = [kll.lift([4.0, 1.0]), kll.lift([3.0, 2.0])]
    >>> kll.lower(kll.combine(*parts), 0.5)
    2.5
    """

    k: int = 200

    @property
    def parameters(self) -> tuple[int]:
        """What distinguishes this kind of sketch from others of its class."""
        return (self.k,)

    def lift(self, values: Values) -> Any:
        """The sketch of some numbers."""
        return self.fold(values, self.k)

    @staticmethod
    def fold(values: Values, k: int) -> Any:
        """As `lift`, with the parameter given."""
        sketch = library().kll_doubles_sketch(k)
        sketch.update(np.array(values, np.float64))  # the library refuses read-only arrays
        return sketch

    def combine(self, a: Any, b: Any) -> Any:
        """A new sketch of the values of both."""
        merged = copy.copy(a)
        merged.merge(b)
        return merged

    def lower(self, sketch: Any, q: float) -> float:
        """The estimated q-quantile."""
        if sketch.is_empty():
            return math.nan
        if q <= 0.0 or q >= 1.0:
            # Thinning out may have dropped the extremes, but the sketch remembers them.
            return float(sketch.get_min_value() if q <= 0.0 else sketch.get_max_value())
        if sketch.is_estimation_mode():
            return float(sketch.get_quantile(q, True))
        n = sketch.n
        place = q * (n - 1)
        before = math.floor(place)
        low = _nth(sketch, before)
        if place == before:
            return low
        high = _nth(sketch, before + 1)
        return low if low == high else low + (high - low) * (place - before)

    def dump(self, sketch: Any) -> bytes:
        """The sketch in the library's portable format."""
        return bytes(sketch.serialize())

    def load(self, data: bytes) -> Any:
        """The sketch that `dump` wrote."""
        return library().kll_doubles_sketch.deserialize(data)


def _nth(sketch: Any, place: int) -> float:
    """The value at a place in order, counted from 0, of a sketch that holds all; zero unsigned."""
    # Asked for in the middle between two ranks, so that no rounding leads to a neighbour.
    return float(sketch.get_quantile((place + 0.5) / sketch.n, True)) + 0.0
