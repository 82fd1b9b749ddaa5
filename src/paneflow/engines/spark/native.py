"""Slices built inside the JVM: operators as Spark's own aggregates.

Events that Spark can fold never cross into Python; only their slices do. What has no native form
(sketches, runs of sorted values, functions of the user's) is folded by `packing.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paneflow.aggregates.aggregate import Multiset
from paneflow.aggregates.operator import TIME, Operator
from paneflow.aggregates.values import kind_of
from paneflow.slicing.layout import (
    counted_columns,
    sequence_columns,
    stored_operators,
)
from paneflow.slicing.slices import LAST, ROWS, SLICING, START, TIME_SLICES
from paneflow.windows import Sliding

if TYPE_CHECKING:
    from paneflow.query import Query

MOST_PROGRESSIONS = 12
"""More would make an expression that Spark cannot compile into one method."""
LOW_LIMB = 0xFFFFFFFF


def slices_natively(
    query: Query, frame: Any, source: pa.Schema, layout: pa.Schema, further: dict[str, Any]
) -> Any | None:
    """A frame of slices, one row for each key and slice; None if an aggregate has no such form.

    Its columns are c0, c1, ... for those of `layout`, in which times are int64. `further` are
    columns of the layout that follow from the start of a slice, which is called s.
    """
    from pyspark.sql import functions as F

    grid = _grid(query)
    kinds = {name: kind_of(type_, name) for name, type_ in query.types(source).items()}
    operators = stored_operators(query, kinds)
    if grid is None or any(isinstance(a, Multiset) for a in query.aggregates.values()):
        return None
    if any(op.name not in FORMS for op in operators):
        return None
    t = F.col("t")
    events = frame.select(
        _instant(query.time, source).alias("t"),
        F.monotonically_increasing_id().alias("at"),
        *(_column(name).alias(f"k{k}") for k, name in enumerate(query.key)),
        *(_column(name).alias(f"v:{name}") for name in query.types(source)),
    )
    start = F.greatest(
        *(t - F.pmod(t - phase, F.lit(step)) for phase, step in grid), F.lit(None).cast("long")
    )
    made: dict[str, Any] = {
        SLICING: F.lit(TIME_SLICES),
        LAST: F.max("t"),
        ROWS: F.count(F.lit(1)),
    }
    for columns, name in counted_columns(query).items():
        made[name] = F.count(F.when(_present(columns), 1))
    for operator, prefix in operators.items():
        parts = FORMS[operator.name](operator)
        for component, part in zip(operator.components, parts, strict=True):
            made[f"{prefix}.{component.name}"] = part
    for columns, name in sequence_columns(query).items():
        made[name] = _sequence(columns)
    keys = [F.col(f"k{k}") for k in range(len(query.key))]
    grouped = events.groupBy(*keys, start.alias("s")).agg(
        *(made[name].alias(f"c{k}") for k, name in enumerate(layout.names) if name in made)
    )
    placed = {START: F.col("s")} | further
    placed |= {f"key:{name}": key for name, key in zip(query.key, keys, strict=True)}
    return grouped.select(
        *(
            (placed[name] if name in placed else F.col(f"c{k}")).alias(f"c{k}")
            for k, name in enumerate(layout.names)
        )
    )


def carried(layout: pa.Schema, query: Query, source: pa.Schema) -> pa.Schema:
    """The layout as native slices carry it through Spark: c0, c1, ...; times as int64."""
    kinds = {name: kind_of(type_, name) for name, type_ in query.types(source).items()}
    times = {START, LAST}
    for operator, prefix in stored_operators(query, kinds).items():
        times |= {f"{prefix}.{c.name}" for c in operator.components if c.column == TIME}
    listed = set(sequence_columns(query).values())
    fields = []
    for k, field in enumerate(layout):
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
    finest = min(s for _, s in edges)
    # Slices much finer than any slide would be as many as the events.
    return [(phase % step, step)] if 64 * step >= finest else None


def _column(name: str) -> Any:
    from pyspark.sql import functions as F

    return F.col(f"`{name.replace('`', '``')}`")


def _instant(name: str, source: pa.Schema) -> Any:
    """The time column as int64: microseconds, or the user's own unit; a null stops the job."""
    from pyspark.sql import functions as F

    column, type_ = _column(name), source.field(name).type
    if pa.types.is_date(type_):
        t = F.unix_date(column).cast("long") * 86_400_000_000
    elif pa.types.is_timestamp(type_) and type_.tz is None:
        epoch = F.to_timestamp_ntz(F.lit("1970-01-01 00:00:00"))
        t = F.timestamp_diff("MICROSECOND", epoch, column)
    elif pa.types.is_timestamp(type_):
        t = F.unix_micros(column)
    else:
        t = column.cast("long")
    advice = (
        f"the time column '{name}' is null in some rows: an event without a time is in no "
        f"window; drop those rows or fill in their times"
    )
    return F.coalesce(t, F.raise_error(F.lit(advice)).cast("long"))


def _value(column: str) -> Any:
    from pyspark.sql import functions as F

    return F.col("t") if column == TIME else F.col(f"`v:{column}`")


def _present(columns: tuple[str, ...]) -> Any:
    from pyspark.sql import functions as F

    present = F.lit(True)
    for column in columns:
        present = present & _value(column).isNotNull()
    return present


def _real(operator: Operator) -> Any:
    return _value(operator.inputs[0].column).cast("double")


def _zeroed(total: Any) -> Any:
    from pyspark.sql import functions as F

    return F.coalesce(total, F.lit(0))


def _minimum(operator: Operator) -> list[Any]:
    from pyspark.sql import functions as F

    return [F.min(_value(operator.columns[0]))]


def _maximum(operator: Operator) -> list[Any]:
    from pyspark.sql import functions as F

    return [F.max(_value(operator.columns[0]))]


def _integer_sum(operator: Operator) -> list[Any]:
    from pyspark.sql import functions as F

    value = _value(operator.columns[0]).cast("long")
    high, low = F.shiftright(value, 32), value.bitwiseAND(F.lit(LOW_LIMB))
    return [_zeroed(F.sum(high)), _zeroed(F.sum(low))]


def _float_sum(operator: Operator) -> list[Any]:
    from pyspark.sql import functions as F

    return [F.coalesce(F.sum(_real(operator)), F.lit(0.0))]


def _deviation(operator: Operator) -> list[Any]:
    from pyspark.sql import functions as F

    value = _real(operator)
    n = F.count(value)
    squares = F.coalesce(F.var_pop(value) * n, F.lit(0.0))
    return [n, F.coalesce(F.sum(value), F.lit(0.0)), squares]


def _log_sum(operator: Operator) -> list[Any]:
    from pyspark.sql import functions as F

    value = _real(operator)
    log = (
        F.when(value > 0, F.log(value))
        .when(value == 0, F.lit(-math.inf))
        .when(value.isNotNull(), F.lit(math.nan))
    )
    return [F.coalesce(F.sum(log), F.lit(0.0))]


def _product(operator: Operator) -> list[Any]:
    from pyspark.sql import functions as F

    return [F.coalesce(F.product(_real(operator)), F.lit(1.0))]


def _edge(earliest: bool) -> Callable[[Operator], list[Any]]:
    def form(operator: Operator) -> list[Any]:
        from pyspark.sql import functions as F

        (column,) = operator.columns
        event = F.struct(F.col("t"), F.col("at"), _value(column).alias("value"))
        picked = (F.min if earliest else F.max)(F.when(_present((column,)), event))
        return [_zeroed(picked["t"]), picked["value"]]

    return form


def _extreme(least: bool) -> Callable[[Operator], list[Any]]:
    def form(operator: Operator) -> list[Any]:
        from pyspark.sql import functions as F

        by, _, column = (i.column for i in operator.inputs)
        sign = 1 if least else -1  # among equals the earliest, whichever end is sought
        event = F.struct(
            _value(by).alias("by"),
            (F.col("t") * sign).alias("t"),
            (F.col("at") * sign).alias("at"),
            _value(column).alias("value"),
        )
        picked = (F.min if least else F.max)(F.when(_present((by, column)), event))
        return [picked["by"], _zeroed(picked["t"] * sign), picked["value"]]

    return form


def _regression(operator: Operator) -> list[Any]:
    from pyspark.sql import functions as F

    y, x = (_value(i.column).cast("double") for i in operator.inputs)
    parts = [F.regr_avgy(y, x), F.regr_avgx(y, x), F.regr_sxx(y, x), F.regr_sxy(y, x)]
    return [F.regr_count(y, x), *(F.coalesce(part, F.lit(0.0)) for part in parts)]


def _sequence(columns: tuple[str, ...]) -> Any:
    """Every event's values in total order."""
    from pyspark.sql import functions as F

    values = [_value(c).alias(f"value_{k}") for k, c in enumerate(columns)]
    event = F.struct(F.col("t").alias("time"), F.col("at"), *values)
    ordered = F.array_sort(F.collect_list(F.when(_present(columns), event)))
    names = ["time", *(f"value_{k}" for k in range(len(columns)))]
    return F.transform(ordered, lambda e: F.struct(*(e[name].alias(name) for name in names)))


FORMS: dict[str, Callable[[Operator], list[Any]]] = {
    "min": _minimum,
    "max": _maximum,
    "integer_sum": _integer_sum,
    "float_sum": _float_sum,
    "deviation": _deviation,
    "log_sum": _log_sum,
    "product": _product,
    "first": _edge(earliest=True),
    "last": _edge(earliest=False),
    "arg_min": _extreme(least=True),
    "arg_max": _extreme(least=False),
    "linear_regression": _regression,
}
"""Spark's aggregates that give an operator's components, by the operator's name."""
