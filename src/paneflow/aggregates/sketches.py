"""Aggregates of bounded size that answer approximately: Bloom filter, moments, HLL, KLL.

The moment sketch is implemented here (Gan, Ding, Tai, Sharan, Bailis, "Moment-Based Quantile
Sketches for Efficient High Cardinality Aggregation Queries", VLDB 2018); approximate distinct
counts and rank quantiles come from Apache DataSketches (extra `sketches`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from paneflow._display import Call
from paneflow.aggregates import _bloom
from paneflow.aggregates._checks import checked_share, whole_number
from paneflow.aggregates._numerics import datasketches
from paneflow.aggregates.aggregate import Constant, Kinds, Lowered, Merged, Types
from paneflow.aggregates.laws import Laws
from paneflow.aggregates.operator import Array, Component, Input, Operator
from paneflow.aggregates.values import Kind
from paneflow.errors import QueryError

SKETCHED = (Kind.INTEGER, Kind.FLOAT)
HASHED = (Kind.INTEGER, Kind.FLOAT, Kind.BOOLEAN, Kind.TEXT)


def _absorb_moments(row, x):  # type: ignore[no-untyped-def]
    # min, max, then k sums of powers, then k sums of powers of the logarithm.
    k = (len(row) - 2) // 2
    row[0] = min(row[0], x)
    row[1] = max(row[1], x)
    power = 1.0
    for i in range(k):
        power *= x
        row[2 + i] += power
    if x > 0.0:
        logarithm = math.log(x)
        power = 1.0
        for i in range(k):
            power *= logarithm
            row[2 + k + i] += power
    return row


def _combine_moments(a, b):  # type: ignore[no-untyped-def]
    row = a + b
    row[0] = min(a[0], b[0])
    row[1] = max(a[1], b[1])
    return row


def _combine_moments_into(target, a, b):  # type: ignore[no-untyped-def]
    least, greatest = min(a[0], b[0]), max(a[1], b[1])
    for i in range(2, len(target)):
        target[i] = a[i] + b[i]
    target[0] = least
    target[1] = greatest


def _combine_words_into(target, a, b):  # type: ignore[no-untyped-def]
    for i in range(len(target)):
        target[i] = a[i] | b[i]


@dataclass(frozen=True, repr=False)
class MomentSketch(Constant):
    q: float = 0.5
    k: int = 10

    name: ClassVar[str] = "moment_sketch"
    accepts: ClassVar[tuple[Kind, ...]] = SKETCHED

    def result_type(self, types: Types) -> pa.DataType:
        return pa.float64()

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        return (
            Operator(
                f"moments_{self.k}",
                (Input(self.columns[0], "float"),),
                (Component("moments", "float64", 2 * self.k + 2),),
                (np.array([np.inf, -np.inf] + [0.0] * (2 * self.k)),),
                _combine_moments,
                absorb=_absorb_moments,
                combine_into=_combine_moments_into,
            ),
        )

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        # The solver is large, and few queries need it: 6 ms of every import of paneflow.
        from paneflow.aggregates._numerics import maxent

        rows = merged[0][0]
        powers, logs = rows[:, 2 : 2 + self.k], rows[:, 2 + self.k :]
        estimates = maxent.quantiles(
            np.ascontiguousarray(rows[:, 0]),
            np.ascontiguousarray(rows[:, 1]),
            n.astype(np.float64),
            np.ascontiguousarray(powers),
            np.ascontiguousarray(logs),
            np.array([self.q]),
        )
        return estimates[:, 0], n > 0


@dataclass(frozen=True, repr=False)
class BloomFilter(Constant):
    bits: int = 1024
    hashes: int = 4

    name: ClassVar[str] = "bloom_filter"
    scalar: ClassVar[bool] = False
    laws: ClassVar[Laws] = Laws(idempotent=True)
    accepts: ClassVar[tuple[Kind, ...]] = HASHED

    def result_type(self, types: Types) -> pa.DataType:
        return pa.binary()

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        return (
            Operator(
                f"bloom_filter_{self.bits}",
                (Input(self.columns[0], "hash"),),
                (Component("words", "uint64", self.bits // 64),),
                (0,),
                _bloom.combine,
                absorb=_bloom.absorb,
                combine_into=_combine_words_into,
                parameters=(self.hashes,),
            ),
        )

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        words = np.ascontiguousarray(merged[0][0], "<u8")
        fixed = pa.binary(self.bits // 8)
        filters = pa.Array.from_buffers(fixed, len(words), [None, pa.py_buffer(words)])
        return filters.cast(pa.binary()), n > 0


@dataclass(frozen=True, repr=False)
class ApproxDistinct(Constant):
    lg_k: int = 12

    name: ClassVar[str] = "approx_distinct"
    laws: ClassVar[Laws] = Laws(idempotent=True)
    accepts: ClassVar[tuple[Kind, ...]] = HASHED

    def result_type(self, types: Types) -> pa.DataType:
        return pa.float64()

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        (column,) = self.columns
        form = Input(column, "object" if kinds[column] is Kind.TEXT else "value")
        return (_sketch("hll", form, datasketches.Hll(self.lg_k)),)

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        return _estimates(merged[0][0], n, datasketches.Hll(self.lg_k).lower)


@dataclass(frozen=True, repr=False)
class ApproxQuantile(Constant):
    q: float = 0.5
    k: int = 200

    name: ClassVar[str] = "approx_quantile"
    accepts: ClassVar[tuple[Kind, ...]] = SKETCHED

    def _call(self) -> Call:
        options = {"k": self.k} if self.k != 200 else {}
        return Call(self.name, (*self.columns, self.q), options)

    def result_type(self, types: Types) -> pa.DataType:
        return pa.float64()

    def operators(self, kinds: Kinds) -> tuple[Operator, ...]:
        form = Input(self.columns[0], "float")
        return (_sketch("kll", form, datasketches.Kll(self.k)),)

    def lower(self, n: Array, merged: Merged, kinds: Kinds) -> Lowered:
        sketches = datasketches.Kll(self.k)
        return _estimates(merged[0][0], n, lambda sketch: sketches.lower(sketch, self.q))


def _sketch(name: str, form: Input, sketches: Any) -> Operator:
    return Operator(
        name,
        (form,),
        (Component("sketch", "object"),),
        (sketches.lift([]),),
        sketches.combine,
        fold_many=sketches.fold,
        parameters=sketches.parameters,
        dump=sketches.dump,
        load=sketches.load,
        compiled=False,
    )


def _estimates(sketches: Array, n: Array, lower: Any) -> Lowered:
    counted = n > 0
    values = np.zeros(len(n))
    for at in np.flatnonzero(counted):
        values[at] = lower(sketches[at])
    return values, counted


def moment_sketch(column: str, q: float = 0.5, k: int = 10) -> MomentSketch:
    """An estimate of a quantile from sums of powers: small, mergeable, for smooth data.

    Args:
        column: A column of numbers.
        q: The share of values below the quantile, from 0 to 1.
        k: How many powers are summed, from 2 to 15.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"mid": A.moment_sketch("load", 0.5)}, time="t")
        >>> query.over(events)[0]["mid"]
        5.0
    """
    whole_number(k, "moment_sketch: k", 2, 15)
    return MomentSketch((column,), checked_share(q, "moment_sketch"), k)


def bloom_filter(column: str, bits: int = 1024, hashes: int = 4) -> BloomFilter:
    """A Bloom filter of the values, as bytes; query it with `bloom_contains`.

    Args:
        column: The column to read; a float 1.0 and an integer 1 are different values.
        bits: The size of the filter, a multiple of 64.
        hashes: How many bits a value sets.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "plug": "a"}, {"t": 2, "plug": "b"}]
        >>> rows = Query(W.tumbling(10), {"seen": A.bloom_filter("plug")}, time="t").over(events)
        >>> A.bloom_contains(rows[0]["seen"], "a"), A.bloom_contains(rows[0]["seen"], "z")
        (True, False)
    """
    if whole_number(bits, "bloom_filter: bits", 64, _bloom.MOST_BITS) % 64:
        raise QueryError(f"bloom_filter: bits must be a multiple of 64, such as 1024, not {bits!r}")
    whole_number(hashes, "bloom_filter: hashes", 1, _bloom.MOST_HASHES)
    return BloomFilter((column,), bits, hashes)


def approx_distinct(column: str, lg_k: int = 12) -> ApproxDistinct:
    """An estimate of the number of different values, by HyperLogLog.

    It needs Apache DataSketches: `pip install "paneflow[sketches]"`.

    Args:
        column: The column to read; nulls do not count.
        lg_k: The sketch has 2**lg_k registers; from 7 to 21.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import aggregates as A
        >>> A.approx_distinct("plug", lg_k=10)
        approx_distinct('plug', lg_k=10)
    """
    whole_number(lg_k, "approx_distinct: lg_k", 7, 21)
    return ApproxDistinct((column,), lg_k)


def approx_quantile(column: str, q: float, k: int = 200) -> ApproxQuantile:
    """An estimate of a quantile, by a KLL sketch.

    It equals `quantile` while a window has at most k values (NaN does not count). Beyond that, it
    is a value of the window whose rank is within about 1.3 % of q for k = 200. It needs Apache
    DataSketches: `pip install "paneflow[sketches]"`.

    Args:
        column: A column of numbers.
        q: The share of values below the quantile, from 0 to 1.
        k: How many values the sketch keeps, from 8 to 65535.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import aggregates as A
        >>> A.approx_quantile("load", 0.9)
        approx_quantile('load', 0.9)
    """
    whole_number(k, "approx_quantile: k", 8, 65535)
    return ApproxQuantile((column,), checked_share(q, "approx_quantile"), k)
