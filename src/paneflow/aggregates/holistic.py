"""Aggregates that must keep every distinct value: median, quantiles, mode, distinct, top_k.

They are read from a multiset of a column's values. Integer counts can be subtracted without loss,
so a window adds the runs of slices that enter and removes those that leave; it never sorts again
(see merging/multiset.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from paneflow._display import Call, Word
from paneflow.aggregates._checks import checked_share, whole_number
from paneflow.aggregates.aggregate import Multiset, Types
from paneflow.aggregates.values import Kind, plain_type
from paneflow.errors import QueryError


def _share(q: float) -> Word:
    """A share as text, in the short form if nothing is lost."""
    short = f"{q:g}"
    return Word(short if float(short) == q else repr(q))


@dataclass(frozen=True, repr=False)
class Quantiles(Multiset):
    qs: tuple[float, ...] = (0.5,)

    name: ClassVar[str] = "quantiles"
    accepts: ClassVar[tuple[Kind, ...]] = (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL)
    single: ClassVar[bool] = False

    def result_type(self, types: Types) -> pa.DataType:
        return pa.float64() if self.single else pa.list_(pa.float64())

    def _call(self) -> Call:
        return Call(self.name, (*self.columns, list(map(_share, self.qs))))

    def __str__(self) -> str:
        return Call(self.name, (*self.columns, *map(_share, self.qs))).text(str)


@dataclass(frozen=True, repr=False)
class Quantile(Quantiles):
    name: ClassVar[str] = "quantile"
    single: ClassVar[bool] = True

    @property
    def q(self) -> float:
        return self.qs[0]

    def _call(self) -> Call:
        return Call(self.name, (*self.columns, _share(self.q)))


@dataclass(frozen=True, repr=False)
class Median(Quantile):
    name: ClassVar[str] = "median"

    def _call(self) -> Call:
        return Call(self.name, self.columns)

    def __str__(self) -> str:
        return self._call().text(str)


@dataclass(frozen=True, repr=False)
class Mode(Multiset):
    name: ClassVar[str] = "mode"
    result_column: ClassVar[int | None] = 0

    def result_type(self, types: Types) -> pa.DataType:
        return plain_type(types[self.columns[0]])


@dataclass(frozen=True, repr=False)
class Distinct(Multiset):
    name: ClassVar[str] = "distinct"
    when_empty: ClassVar[int | None] = 0

    def result_type(self, types: Types) -> pa.DataType:
        return pa.int64()


@dataclass(frozen=True, repr=False)
class TopK(Multiset):
    k: int = 1

    name: ClassVar[str] = "top_k"
    result_column: ClassVar[int | None] = 0

    def result_type(self, types: Types) -> pa.DataType:
        return pa.list_(plain_type(types[self.columns[0]]))

    def _call(self) -> Call:
        return Call(self.name, (*self.columns, self.k))


def median(column: str) -> Median:
    """The exact median.

    Args:
        column: A column of numbers.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"mid": A.median("load")}, time="t")
        >>> query.over(events)[0]["mid"]
        5.0
    """
    return Median((column,))


def quantile(column: str, q: float) -> Quantile:
    """An exact quantile, interpolated linearly between neighbouring values.

    Args:
        column: A column of numbers.
        q: The share of values below the quantile, from 0 to 1.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"q3": A.quantile("load", 0.75)}, time="t")
        >>> query.over(events)[0]["q3"]
        6.0
    """
    return Quantile((column,), (checked_share(q, "quantile"),))


def quantiles(column: str, qs: Iterable[float]) -> Quantiles:
    """Several exact quantiles, as a list.

    Args:
        column: A column of numbers.
        qs: The shares of values below each quantile, from 0 to 1.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"box": A.quantiles("load", [0.25, 0.75])}, time="t")
        >>> query.over(events)[0]["box"]
        [4.0, 6.0]
    """
    try:
        given = tuple(qs) if isinstance(qs, Iterable) else None
    except TypeError:  # an array of no dimension
        given = None
    if given is None:
        raise QueryError(
            f"quantiles: qs must be a list of shares such as [0.25, 0.5, 0.75], not {qs!r}: for "
            f"one share use quantile"
        )
    shares = tuple(checked_share(q, "quantiles") for q in given)
    if not shares:
        raise QueryError("quantiles: no shares given: pass for example [0.25, 0.5, 0.75]")
    return Quantiles((column,), shares)


def mode(column: str) -> Mode:
    """The most frequent value.

    Args:
        column: The column to read. Of several most frequent values, the smallest counts.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "plug": "a"}, {"t": 2, "plug": "b"}, {"t": 3, "plug": "b"}]
        >>> query = Query(W.tumbling(10), {"usual": A.mode("plug")}, time="t")
        >>> query.over(events)[0]["usual"]
        'b'
    """
    return Mode((column,))


def distinct(column: str) -> Distinct:
    """The exact number of different values.

    Args:
        column: The column to read; nulls do not count.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "plug": "a"}, {"t": 2, "plug": "b"}, {"t": 3, "plug": "b"}]
        >>> query = Query(W.tumbling(10), {"plugs": A.distinct("plug")}, time="t")
        >>> query.over(events)[0]["plugs"]
        2
    """
    return Distinct((column,))


def top_k(column: str, k: int) -> TopK:
    """The greatest values, in descending order, as a list.

    Args:
        column: The column to read.
        k: How many values; the list is shorter if the window has fewer.

    Returns:
        The aggregate, for `Query`.

    Example:
        >>> from paneflow import Query, aggregates as A, windows as W
        >>> events = [{"t": 1, "load": 5}, {"t": 2, "load": 3}, {"t": 4, "load": 7}]
        >>> query = Query(W.tumbling(10), {"top": A.top_k("load", 2)}, time="t")
        >>> query.over(events)[0]["top"]
        [7, 5]
    """
    return TopK((column,), whole_number(k, "top_k: k", 1, 2**62))
