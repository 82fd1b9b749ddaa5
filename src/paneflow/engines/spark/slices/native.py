"""Slices built inside the JVM: operators as Spark's own aggregates.

Events that Spark can fold never cross into Python; only their slices do. What has no native form
(sketches, runs of sorted values, user-defined functions) is folded by `parcels.py`. So are the
variance of floats and the regression: Spark keeps their mean in one float64, which stops moving
where the mean is large against the spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.aggregates._numerics import whole_deviation as whole_deviation
from paneflow.aggregates.aggregate import Multiset
from paneflow.aggregates.operator import TIME, Operator
from paneflow.aggregates.values import Kind, kind_of
from paneflow.engines.spark import frames
from paneflow.slicing.layout import (
    counted_columns,
    sequence_columns,
    stored_operators,
)
from paneflow.slicing.slices import LAST, ROWS, SLICING, START, TIME_SLICES
from paneflow.slicing.times import FARTHEST
from paneflow.windows import Sliding

if TYPE_CHECKING:
    from paneflow.query import Query

MOST_PROGRESSIONS = 12
"""With more, Spark could not compile the expression into one method."""
FINER = 4
LOW_LIMB = 0xFFFFFFFF


def slices_natively(
    query: Query, frame: Any, source: pa.Schema, layout: pa.Schema, further: dict[str, Any]
) -> Any | None:
    """A frame of slices, one row for each key and slice; None if an aggregate has no such form.

    Its columns are those of `carried(layout, ...)`. `further` are columns of the layout that follow
    from the start of a slice, which is called s.
    """
    from pyspark.sql import functions as F

    grid = _grid(query)
    kinds = {name: kind_of(type_, name) for name, type_ in query.types(source).items()}
    operators = stored_operators(query, kinds)
    if grid is None or any(isinstance(a, Multiset) for a in query.aggregates.values()):
        return None
    if any(op.name not in FORMS for op in operators):
        return None
    if any(
        op.name in OF_DIGITS and kinds[op.columns[0]].family is Kind.DECIMAL for op in operators
    ):
        return None  # Spark has no function that gives the digits of a decimal
    t = F.col("t")
    start = F.greatest(
        *(t - F.pmod(t - phase, F.lit(step)) for phase, step in grid), F.lit(None).cast("long")
    )
    made: dict[str, Any] = {LAST: F.max("t"), ROWS: F.count(F.lit(1))}
    for columns, name in counted_columns(query).items():
        made[name] = F.count(F.when(present(columns), 1))
    for operator, prefix in operators.items():
        parts = FORMS[operator.name](operator)
        for component, part in zip(operator.components, parts, strict=True):
            made[f"{prefix}.{component.name}"] = part
    for columns, name in sequence_columns(query).items():
        made[name] = _sequence(columns)
    keys = [F.col(f"k{k}") for k in range(len(query.key))]
    grouped = (
        events_of(query, frame, source)
        .groupBy(*keys, start.alias("s"))
        .agg(*(made[name].alias(f"c{k}") for k, name in enumerate(layout.names) if name in made))
    )
    placed = {START: F.col("s")} | further
    placed |= {f"key:{name}": key for name, key in zip(query.key, keys, strict=True)}
    return grouped.select(
        *(
            (placed[name] if name in placed else F.col(f"c{k}")).alias(f"c{k}")
            for k, name in enumerate(layout.names)
            if name != SLICING
        )
    )


def events_of(query: Query, frame: Any, source: pa.Schema) -> Any:
    """Events under names that expressions here use: t, at (their order), k0..., v:column..."""
    from pyspark.sql import functions as F

    return frame.select(
        instant(query.time, source).alias("t"),
        F.monotonically_increasing_id().alias("at"),
        *(frames.column(source, name).alias(f"k{k}") for k, name in enumerate(query.key)),
        *(frames.column(source, name).alias(f"v:{name}") for name in query.types(source)),
    )


def carried(layout: pa.Schema, query: Query, source: pa.Schema) -> pa.Schema:
    """The layout as native slices carry it through Spark: c1, c2, ...; times as int64.

    All are of one slicing, so that column stays behind.
    """
    kinds = {name: kind_of(type_, name) for name, type_ in query.types(source).items()}
    times = {START, LAST}
    for operator, prefix in stored_operators(query, kinds).items():
        times |= {f"{prefix}.{c.name}" for c in operator.components if c.column == TIME}
    listed = set(sequence_columns(query).values())
    fields = []
    for k, field in enumerate(layout):
        if field.name == SLICING:
            continue
        type_ = pa.int64() if field.name in times else field.type
        if field.name in listed:
            struct = field.type.value_type
            inner = [
                pa.field("time", pa.int64()),
                *(struct.field(i) for i in range(1, len(struct))),
            ]
            type_ = pa.list_(pa.struct(inner))
        fields.append(pa.field(f"c{k}", type_))
    return pa.schema(fields)


def restored(slices: pa.Table, layout: pa.Schema) -> pa.Table:
    """Slices as Spark carried them, in their own layout again."""
    names = [name for name in layout.names if name != SLICING]
    label = pa.repeat(pa.scalar(TIME_SLICES), slices.num_rows)
    place = layout.get_field_index(SLICING)
    return slices.rename_columns(names).add_column(place, SLICING, label).cast(layout)


def _grid(query: Query) -> list[tuple[int, int]] | None:
    """The progressions of edges that cut the slices; finer ones where there would be too many."""
    edges = set()
    for window in query.windows.values():
        if not isinstance(window, Sliding):
            return None
        edges |= set(window.edges)
    if len(edges) <= MOST_PROGRESSIONS:
        return sorted(edges)
    phase = min(p for p, _ in edges)
    step = math.gcd(*(s for _, s in edges), *(p - phase for p, _ in edges))
    # A common grid will do, unless it is far finer than all edges together.
    together = sum(1 / s for _, s in edges)
    return [(phase % step, step)] if 1 / step <= FINER * together else None


def ticks(name: str, source: pa.Schema) -> Any:
    """A time column as int64: microseconds, or the user's own unit."""
    from pyspark.sql import functions as F

    given, type_ = frames.column(source, name), source.field(name).type
    if pa.types.is_date(type_):
        return F.unix_date(given).cast("long") * 86_400_000_000
    if pa.types.is_timestamp(type_) and type_.tz is None:
        # A difference of times without a zone is exact. Other functions, such as timestamp_diff,
        # first read the time in the session's zone, which may not have it on the day of a change.
        since = given - F.expr("TIMESTAMP_NTZ'1970-01-01 00:00:00'")
        seconds = since.cast("interval second").cast("decimal(20, 6)")
        return (seconds * 1_000_000).cast("long")
    return F.unix_micros(given) if pa.types.is_timestamp(type_) else given.cast("long")


def instant(name: str, source: pa.Schema) -> Any:
    """The same; a null, or a time too far from zero, stops the job."""
    from pyspark.sql import functions as F

    t = ticks(name, source)
    advice = F.when(
        t.isNull(),
        f"the time column '{name}' is null in some rows: an event without a time is in no "
        f"window; drop those rows or fill in their times",
    ).otherwise(
        f"the time column '{name}' holds times too far from zero for windows to be added to them "
        f"(at most 2**61): correct them or use a coarser unit"
    )
    near = t.between(-FARTHEST, FARTHEST)
    return F.when(near, t).otherwise(F.raise_error(advice).cast("long"))


def value_of(column: str) -> Any:
    """A column of an event, or its time."""
    from pyspark.sql import functions as F

    return F.col("t") if column == TIME else F.col(f"`v:{column.replace('`', '``')}`")


def present(columns: tuple[str, ...]) -> Any:
    """Whether an event has a value in each of the columns."""
    from pyspark.sql import functions as F

    present = F.lit(True)
    for column in columns:
        present = present & value_of(column).isNotNull()
    return present


def _real(operator: Operator) -> Any:
    return value_of(operator.inputs[0].column).cast("double")


def _zeroed(total: Any) -> Any:
    from pyspark.sql import functions as F

    return F.coalesce(total, F.lit(0))


def _minimum(operator: Operator) -> list[Any]:
    from pyspark.sql import functions as F

    return [F.min(value_of(operator.columns[0]))]


def _maximum(operator: Operator) -> list[Any]:
    from pyspark.sql import functions as F

    return [F.max(value_of(operator.columns[0]))]


def limbs(value: Any) -> tuple[Any, Any]:
    """An integer as high and low limbs, whose sums cannot overflow."""
    from pyspark.sql import functions as F

    long = value.cast("long")
    return F.shiftright(long, 32), long.bitwiseAND(F.lit(LOW_LIMB))


def _integer_sum(operator: Operator) -> list[Any]:
    from pyspark.sql import functions as F

    return [_zeroed(F.sum(limb)) for limb in limbs(value_of(operator.columns[0]))]


def _float_sum(operator: Operator) -> list[Any]:
    from pyspark.sql import functions as F

    return [F.coalesce(F.sum(_real(operator)), F.lit(0.0))]


def _whole_deviation(operator: Operator) -> list[Any]:
    from pyspark.sql import functions as F

    value = value_of(operator.columns[0]).cast("long")
    high, low = F.shiftright(value, 32), value.bitwiseAND(F.lit(LOW_LIMB))
    # As in aggregates/_numerics/whole_deviation.py; but Spark may refuse to multiply beyond int64,
    # so the square of the low limb is made of halves.
    upper, lower = F.shiftright(low, 16), low.bitwiseAND(F.lit(0xFFFF))
    middle = F.shiftleft(upper * lower, 17) + lower * lower
    cross, above = high * low, high * high
    doubled = F.shiftleft(cross.bitwiseAND(F.lit(LOW_LIMB >> 1)), 1)
    limbs = [
        high,
        low,
        middle.bitwiseAND(F.lit(LOW_LIMB)),
        upper * upper + F.shiftright(middle, 32) + doubled,
        F.shiftright(cross, 31) + above.bitwiseAND(F.lit(LOW_LIMB)),
        F.shiftright(above, 32),
    ]
    enough = F.count(value) <= F.lit(whole_deviation.RUN)
    advice = f"{operator.columns[0]}: more than {whole_deviation.RUN} integers in one slice"
    refused = F.raise_error(F.lit(f"{advice} are too many for their variance: cast to double"))
    sums = [_zeroed(F.sum(limb)) for limb in limbs]
    return [F.when(enough, sums[0]).otherwise(refused.cast("long")), *sums[1:]]


def logarithm(value: Any) -> Any:
    """The logarithm as geometric means take it: minus infinity of zero, NaN below."""
    from pyspark.sql import functions as F

    return (
        F.when(value > 0, F.log(value))
        .when(value == 0, F.lit(-math.inf))
        .when(value.isNotNull(), F.lit(math.nan))
    )


def _log_sum(operator: Operator) -> list[Any]:
    from pyspark.sql import functions as F

    return [F.coalesce(F.sum(logarithm(_real(operator))), F.lit(0.0))]


def _product(operator: Operator) -> list[Any]:
    from pyspark.sql import functions as F

    return [F.coalesce(F.product(_real(operator)), F.lit(1.0))]


def edge(column: str, earliest: bool) -> Any:
    """The first or the last event with a value, as a struct of t, at and value."""
    from pyspark.sql import functions as F

    event = F.struct(F.col("t"), F.col("at"), value_of(column).alias("value"))
    return (F.min if earliest else F.max)(F.when(present((column,)), event))


def _first(operator: Operator) -> list[Any]:
    picked = edge(operator.columns[0], earliest=True)
    return [_zeroed(picked["t"]), picked["value"]]


def _last(operator: Operator) -> list[Any]:
    picked = edge(operator.columns[0], earliest=False)
    return [_zeroed(picked["t"]), picked["value"]]


def extreme(column: str, by: str, least: bool) -> Any:
    """The event where `by` is least or greatest, as a struct of by, t, at and value."""
    from pyspark.sql import functions as F

    sign = 1 if least else -1  # among equals the earliest, whichever end is sought
    event = F.struct(
        value_of(by).alias("by"),
        (F.col("t") * sign).alias("t"),
        (F.col("at") * sign).alias("at"),
        value_of(column).alias("value"),
    )
    return (F.min if least else F.max)(F.when(present((by, column)), event))


def _arg_min(operator: Operator) -> list[Any]:
    by, _, column = (i.column for i in operator.inputs)
    picked = extreme(column, by, least=True)
    return [picked["by"], _zeroed(picked["t"]), picked["value"]]


def _arg_max(operator: Operator) -> list[Any]:
    by, _, column = (i.column for i in operator.inputs)
    picked = extreme(column, by, least=False)
    return [picked["by"], _zeroed(-picked["t"]), picked["value"]]


def _sequence(columns: tuple[str, ...]) -> Any:
    """Every event's values in total order."""
    from pyspark.sql import functions as F

    values = [value_of(c).alias(f"value_{k}") for k, c in enumerate(columns)]
    event = F.struct(F.col("t").alias("time"), F.col("at"), *values)
    ordered = F.array_sort(F.collect_list(F.when(present(columns), event)))
    names = ["time", *(f"value_{k}" for k in range(len(columns)))]
    return F.transform(ordered, lambda e: F.struct(*(e[name].alias(name) for name in names)))


FORMS: dict[str, Callable[[Operator], list[Any]]] = {
    "min": _minimum,
    "max": _maximum,
    "integer_sum": _integer_sum,
    "float_sum": _float_sum,
    "whole_deviation": _whole_deviation,
    "log_sum": _log_sum,
    "product": _product,
    "first": _first,
    "last": _last,
    "arg_min": _arg_min,
    "arg_max": _arg_max,
}
"""Spark's aggregates that give an operator's components, by the operator's name."""

OF_DIGITS = ("integer_sum", "whole_deviation")
"""Operators that add up decimals as the integers of their digits."""
