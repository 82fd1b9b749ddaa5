"""Windows that do not overlap, answered by Spark alone.

Each event is then in one window at most, a slice is a window, and there is nothing to merge: if
every aggregate is one of Spark's own, no row crosses into Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.aggregates._numerics.decimals import DIGITS_OF_SUM
from paneflow.aggregates.aggregate import Aggregate
from paneflow.aggregates.values import Kind, kind_of
from paneflow.engines.spark.frames import spark_schema
from paneflow.engines.spark.slices.native import (
    LOW_LIMB,
    edge,
    events_of,
    extreme,
    limbs,
    logarithm,
    present,
    value_of,
)
from paneflow.windows import Sliding

if TYPE_CHECKING:
    from paneflow.query import Query


def rows_natively(query: Query, frame: Any, source: pa.Schema, schema: pa.Schema) -> Any | None:
    """The rows of a query with one window that does not overlap; None if it has another."""
    from pyspark.sql import functions as F

    (label, window), *more = query.windows.items()
    if more or not isinstance(window, Sliding) or window.slide.value < window.range.value:
        return None
    if any(a.name not in RESULTS or getattr(a, "exact", False) for a in query.aggregates.values()):
        return None
    if frame.sparkSession.conf.get("spark.sql.ansi.enabled") != "true":
        return None  # integer sums would overflow in silence
    kinds = {name: kind_of(type_, name) for name, type_ in query.types(source).items()}
    offset, slide, reach = window.offset.value, window.slide.value, window.range.value
    since = F.col("t") - F.lit(offset)
    begin = F.col("t") - F.pmod(since, F.lit(slide))
    events = events_of(query, frame, source)
    if slide > reach:
        events = events.filter(F.pmod(since, F.lit(slide)) < F.lit(reach))
    keys = [F.col(f"k{k}") for k in range(len(query.key))]
    grouped = events.groupBy(*keys, begin.alias("s")).agg(
        *(RESULTS[a.name](a, kinds).alias(f"r{i}") for i, a in enumerate(query.aggregates.values()))
    )
    start = F.col("s")
    rows = [
        F.lit(label),
        *keys,
        F.expr(f"(s - {offset}L) div {slide}L"),
        _moment(start, schema.field("start").type),
        _moment(start + F.lit(reach), schema.field("end").type),
        *(F.col(f"r{i}") for i in range(len(query.aggregates))),
    ]
    fields = spark_schema(schema).fields
    named = zip(rows, fields, strict=True)
    return grouped.select(*(made.cast(field.dataType).alias(field.name) for made, field in named))


def _moment(ticks: Any, type_: pa.DataType) -> Any:
    """int64 as the time column's type."""
    from pyspark.sql import functions as F

    if not pa.types.is_timestamp(type_):
        return ticks
    if type_.tz is not None:
        return F.timestamp_micros(ticks)
    epoch = F.to_timestamp_ntz(F.lit("1970-01-01 00:00:00"))
    return F.timestamp_add("MICROSECOND", ticks, epoch)


def _count(a: Aggregate, kinds: dict[str, Kind]) -> Any:
    from pyspark.sql import functions as F

    return F.count(F.when(present(a.columns), 1))


def _sum(a: Aggregate, kinds: dict[str, Kind]) -> Any:
    from pyspark.sql import functions as F

    value, kind = value_of(a.columns[0]), kinds[a.columns[0]]
    if kind.family is Kind.DECIMAL:
        return F.sum(value.cast(f"decimal({DIGITS_OF_SUM},{kind.scale})"))
    if not kind.whole:
        return F.sum(value.cast("double"))
    # Spark would stop at an overflow in between that the rest of the window takes back.
    high, low = (F.sum(limb) for limb in limbs(value))
    carried = high + F.shiftright(low, 32)
    whole = F.shiftleft(carried, 32).bitwiseOR(low.bitwiseAND(F.lit(LOW_LIMB)))
    advice = F.lit(
        f"{a}: a window's sum does not fit into int64: cast '{a.columns[0]}' to double, or divide "
        f"it first"
    )
    fits = carried.isNull() | carried.between(-(2**31), 2**31 - 1)
    return F.when(fits, whole).otherwise(F.raise_error(advice).cast("long"))


def _mean(a: Aggregate, kinds: dict[str, Kind]) -> Any:
    from pyspark.sql import functions as F

    kind = kinds[a.columns[0]]
    if not kind.whole:
        return F.avg(value_of(a.columns[0]).cast("double"))
    # Spark would sum integers as floats.
    digits = DIGITS_OF_SUM if kind.family is Kind.DECIMAL else 20
    exact = F.sum(value_of(a.columns[0]).cast(f"decimal({digits},{kind.scale})")).cast("double")
    return exact / F.count(value_of(a.columns[0]))


def _geometric_mean(a: Aggregate, kinds: dict[str, Kind]) -> Any:
    from pyspark.sql import functions as F

    return F.exp(F.avg(logarithm(value_of(a.columns[0]).cast("double"))))


def _extreme(name: str) -> Callable[[Aggregate, dict[str, Kind]], Any]:
    """The least or the greatest value. Zeros are equal, so a zero comes out without a sign."""

    def form(a: Aggregate, kinds: dict[str, Kind]) -> Any:
        from pyspark.sql import functions as F

        found = getattr(F, name)(value_of(a.columns[0]))
        return found + F.lit(0.0) if kinds[a.columns[0]] is Kind.FLOAT else found

    return form


def _product(a: Aggregate, kinds: dict[str, Kind]) -> Any:
    from pyspark.sql import functions as F

    return F.product(value_of(a.columns[0]).cast("double"))


RESULTS: dict[str, Callable[[Any, dict[str, Kind]], Any]] = {
    "count": _count,
    "sum": _sum,
    "mean": _mean,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "product": _product,
    "geometric_mean": _geometric_mean,
    "first": lambda a, kinds: edge(a.columns[0], earliest=True)["value"],
    "last": lambda a, kinds: edge(a.columns[0], earliest=False)["value"],
    "arg_min": lambda a, kinds: extreme(a.columns[0], a.columns[1], least=True)["value"],
    "arg_max": lambda a, kinds: extreme(a.columns[0], a.columns[1], least=False)["value"],
}
"""Spark's own form of an aggregate, by its name."""
