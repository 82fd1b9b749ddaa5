"""What each aggregate means, in plain Python over the list of a window's values.

One function per aggregate. Each gets the aggregate, for its parameters, and one list per column
it reads, in total order, without the events in which one of them is null; never an empty list.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pyarrow as pa

from paneflow.engines.oracle import moments
from paneflow.engines.oracle.events import Events, order, plain
from paneflow.errors import InputError

INT64 = range(-(2**63), 2**63)


def result(aggregate: Any, events: Events, rows: list[int]) -> Any:
    """The result of an aggregate over a window's rows, given in total order."""
    columns = [events.columns[name] for name in aggregate.columns]
    counted = [row for row in rows if all(column[row] is not None for column in columns)]
    if not counted:
        return 0 if aggregate.name in ("count", "distinct") else None
    if aggregate.name == "count":
        return len(counted)
    if aggregate.name == "apply":
        return _apply(aggregate, events, counted)
    return _MEANINGS[aggregate.name](
        aggregate, *([column[row] for row in counted] for column in columns)
    )


def _sum(aggregate: Any, values: list[Any]) -> int | float | Decimal:
    if isinstance(values[0], float):
        return _float_sum(values)
    if isinstance(values[0], Decimal):
        with localcontext(prec=99):  # more digits than a sum can have
            return sum(values, Decimal())
    total = sum(values)
    if total not in INT64:
        raise InputError(
            f"{aggregate}: the sum {total} of a window does not fit into int64: cast the column "
            f"to float64, or divide it first."
        )
    return int(total)


def _mean(aggregate: Any, values: list[Any]) -> float:
    return moments.mean(values)


def _product(aggregate: Any, values: list[Any]) -> float:
    return functools.reduce(lambda a, b: a * b, map(float, values))


def _geometric_mean(aggregate: Any, values: list[Any]) -> float:
    return _exp(_float_sum([_log(float(v)) for v in values]) / len(values))


def _variance(aggregate: Any, values: list[Any], taken: int) -> float | None:
    return moments.variance(values, taken)


def _deviation(aggregate: Any, values: list[Any], taken: int) -> float | None:
    return moments.deviation(values, taken)


def _first(aggregate: Any, values: list[Any]) -> Any:
    return values[0]


def _last(aggregate: Any, values: list[Any]) -> Any:
    return values[-1]


def _min(aggregate: Any, values: list[Any]) -> Any:
    return _unsigned(min(values, key=order))


def _max(aggregate: Any, values: list[Any]) -> Any:
    return _unsigned(max(values, key=order))


def _arg_min(aggregate: Any, values: list[Any], by: list[Any]) -> Any:
    return values[min(range(len(by)), key=lambda i: order(by[i]))]


def _arg_max(aggregate: Any, values: list[Any], by: list[Any]) -> Any:
    return values[max(range(len(by)), key=lambda i: order(by[i]))]


def _quantile(values: list[Any], q: float) -> float:
    ordered = sorted(values, key=order)
    h = q * (len(ordered) - 1)
    i = math.floor(h)
    f = h - i
    if f == 0 or order(ordered[i]) == order(ordered[i + 1]):
        return float(_unsigned(ordered[i]))
    low, high = float(ordered[i]), float(ordered[i + 1])
    return low + (high - low) * f


def _median(aggregate: Any, values: list[Any]) -> float:
    return _quantile(values, 0.5)


def _one_quantile(aggregate: Any, values: list[Any]) -> float:
    return _quantile(values, aggregate.q)


def _many_quantiles(aggregate: Any, values: list[Any]) -> list[float]:
    return [_quantile(values, q) for q in aggregate.qs]


def _mode(aggregate: Any, values: list[Any]) -> Any:
    times = Counter(map(order, values))
    most = max(times.values())
    return _unsigned(min((v for v in values if times[order(v)] == most), key=order))


def _distinct(aggregate: Any, values: list[Any]) -> int:
    return len(set(map(order, values)))


def _top_k(aggregate: Any, values: list[Any]) -> list[Any]:
    return [_unsigned(v) for v in sorted(values, key=order, reverse=True)[: aggregate.k]]


def _collect(aggregate: Any, values: list[Any]) -> list[Any]:
    return values


def _concat(aggregate: Any, values: list[Any]) -> str:
    try:
        texts = [v.decode() if isinstance(v, bytes) else v for v in values]
    except UnicodeDecodeError as error:
        raise InputError(
            f"{aggregate}: column {aggregate.columns[0]!r} holds bytes that are no text "
            f"({error}): decode the column, or cast it to a string type."
        ) from error
    return str(aggregate.separator.join(texts))


def _linear_regression(aggregate: Any, ys: list[Any], xs: list[Any]) -> dict[str, float] | None:
    line = moments.line(ys, xs)
    return None if line is None else {"slope": line[0], "intercept": line[1]}


def _define(aggregate: Any, *columns: list[Any]) -> Any:
    return aggregate.lower_one(functools.reduce(aggregate.combine, map(aggregate.lift, *columns)))


def _apply(aggregate: Any, events: Events, rows: list[int]) -> Any:
    """Gets arrays instead of lists, since a user's function expects them."""
    given = aggregate.call([_numpy(events.table.column(c), rows) for c in aggregate.columns])
    return plain(aggregate.fitted([given]))[0]


def _numpy(column: pa.ChunkedArray[Any], rows: list[int]) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.take(pa.array(rows, pa.int64())).combine_chunks().to_numpy(zero_copy_only=False)


def _bloom_filter(aggregate: Any, values: list[Any]) -> bytes:
    from paneflow.engines.oracle import sketches

    return sketches.bloom_filter(values, aggregate.bits, aggregate.hashes)


def _moment_sketch(aggregate: Any, values: list[Any]) -> float:
    from paneflow.engines.oracle import sketches

    return sketches.moment_sketch(list(map(float, values)), aggregate.q, aggregate.k)


def _approx_distinct(aggregate: Any, values: list[Any]) -> float:
    from paneflow.engines.oracle import sketches

    return sketches.approx_distinct(values, aggregate.lg_k)


def _approx_quantile(aggregate: Any, values: list[Any]) -> float:
    from paneflow.engines.oracle import sketches

    numbers = [float(v) for v in values if v == v]
    if 0 < len(numbers) <= aggregate.k:
        return _quantile(numbers, aggregate.q)  # a sketch that holds every value knows it exactly
    return sketches.approx_quantile(numbers, aggregate.q, aggregate.k)


def _float_sum(values: list[float]) -> float:
    """The correctly rounded sum; IEEE's answer where infinities or NaN take part."""
    if not all(map(math.isfinite, values)):
        return float(sum(v for v in values if not math.isfinite(v)))
    try:
        return math.fsum(values)
    except OverflowError:  # also raised if only a part of the sum is too large
        return moments.rounded(sum(map(Fraction, values), Fraction()))


def _unsigned(value: Any) -> Any:
    """Zeros are equal, so the one that represents them has no sign."""
    return 0.0 if isinstance(value, float) and value == 0.0 else value


def _log(value: float) -> float:
    if value > 0.0:
        return math.log(value)
    return -math.inf if value == 0.0 else math.nan


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


_MEANINGS: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "mean": _mean,
    "product": _product,
    "geometric_mean": _geometric_mean,
    "var": functools.partial(_variance, taken=1),
    "std": functools.partial(_deviation, taken=1),
    "var_pop": functools.partial(_variance, taken=0),
    "std_pop": functools.partial(_deviation, taken=0),
    "first": _first,
    "last": _last,
    "min": _min,
    "max": _max,
    "arg_min": _arg_min,
    "arg_max": _arg_max,
    "median": _median,
    "quantile": _one_quantile,
    "quantiles": _many_quantiles,
    "mode": _mode,
    "distinct": _distinct,
    "top_k": _top_k,
    "collect": _collect,
    "concat": _concat,
    "linear_regression": _linear_regression,
    "bloom_filter": _bloom_filter,
    "moment_sketch": _moment_sketch,
    "approx_distinct": _approx_distinct,
    "approx_quantile": _approx_quantile,
    "define": _define,
}
