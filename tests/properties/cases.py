"""Random questions over random tables: what every engine has to answer alike.

Everything is drawn from one `random.Random`, so a case is known by its seed. Hypothesis would
prefer tables of few events.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

import paneflow as pf
from examples.threshold_window import Threshold
from paneflow import aggregates as A, windows as W
from tests.compared import note_table
from tests.properties.compare import assert_same_rows

EPOCH = dt.datetime(2024, 2, 29, 23, 59, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Case:
    query: pf.Query
    table: pa.Table

    def __repr__(self) -> str:
        return f"{self.query!r}\n{self.table.to_pylist()}"


# x -> m*x + c, composed: associative, not commutative, with an identity.
affine = A.define(
    lift=lambda x: (0.5, x),
    combine=lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]),
    lower=lambda p: p[1],
    identity=(1.0, 0.0),
    commutative=False,
    name="affine",
)
range_of = A.define(
    lift=lambda x: (x, x),
    combine=lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
    lower=lambda p: p[1] - p[0],
    identity=(math.inf, -math.inf),
    commutative=True,
    idempotent=True,
    name="range_of",
)
weighted = A.define(
    lift=lambda value, weight: (value * weight, weight),
    combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    lower=lambda p: p[0] / p[1] if p[1] != 0 else 0.0,
    identity=(0.0, 0.0),
    commutative=True,
    name="weighted",
    samples=((1.0, 2.0), (3.0, 0.5), (-2.0, 4.0)),
)


def spread(values: Any) -> float:
    return float(np.max(values)) - float(np.min(values))


def numeric(r: random.Random) -> str:
    return r.choice(["i", "f", "x", "price"])


def added(r: random.Random) -> str:
    """What can be added up."""
    return r.choice(["i", "f", "x", "price", "b"])


def anything(r: random.Random) -> str:
    return r.choice(["i", "f", "s", "b", "day", "x", "price"])


AGGREGATES: dict[str, Callable[[random.Random], A.Aggregate]] = {
    "count": lambda r: A.count(r.choice([None, anything(r)])),
    "sum": lambda r: A.sum(added(r)),
    "exact_sum": lambda r: A.sum(added(r), exact=True),
    "min": lambda r: A.min(anything(r)),
    "max": lambda r: A.max(anything(r)),
    "mean": lambda r: A.mean(added(r)),
    "var": lambda r: A.var(added(r)),
    "std": lambda r: A.std(added(r)),
    "var_pop": lambda r: A.var_pop(added(r)),
    "std_pop": lambda r: A.std_pop(added(r)),
    "geometric_mean": lambda r: A.geometric_mean(numeric(r)),
    "product": lambda r: A.product(numeric(r)),
    "first": lambda r: A.first(anything(r)),
    "last": lambda r: A.last(anything(r)),
    "arg_min": lambda r: A.arg_min(anything(r), by=anything(r)),
    "arg_max": lambda r: A.arg_max(anything(r), by=anything(r)),
    "median": lambda r: A.median(numeric(r)),
    "quantile": lambda r: A.quantile(numeric(r), r.choice([0, 0.1, 0.5, 0.99, 1])),
    "quantiles": lambda r: A.quantiles(numeric(r), [0.25, r.random()]),
    "mode": lambda r: A.mode(anything(r)),
    "distinct": lambda r: A.distinct(anything(r)),
    "top_k": lambda r: A.top_k(anything(r), r.randint(1, 4)),
    "collect": lambda r: A.collect(anything(r)),
    "concat": lambda r: A.concat("s", r.choice(["", "-"])),
    "bloom_filter": lambda r: A.bloom_filter(r.choice(["i", "f", "s", "b"]), 64, r.randint(1, 3)),
    "moment_sketch": lambda r: A.moment_sketch("small", r.choice([0.1, 0.5, 0.9])),
    "approx_distinct": lambda r: A.approx_distinct(r.choice(["i", "f", "s", "b"]), 7),
    "approx_quantile": lambda r: A.approx_quantile("x", r.choice([0.0, 0.3, 0.5, 0.9, 1.0])),
    "linear_regression": lambda r: A.linear_regression("x", r.choice(["i", "x"])),
    "define_commutative": lambda r: r.choice([range_of("x"), range_of("i"), weighted("x", "i")]),
    "define_ordered": lambda r: affine(r.choice(["x", "i"])),
    "apply": lambda r: A.apply(spread, "x"),
}


def time_span(r: random.Random, stamped: bool, most: int) -> Any:
    """A duration: a plain integer, or text where the time column is a timestamp."""
    n = r.randint(1, most)
    return r.choice([f"{n} s", dt.timedelta(seconds=n), f"{n * 1000} ms"]) if stamped else n


def shift(r: random.Random, stamped: bool, *choices: int) -> Any:
    """An offset, of so many microseconds where the time column is a timestamp."""
    n = r.choice(choices)
    return f"{n} us" if stamped and n else n


WINDOWS: dict[str, Callable[[random.Random, bool], W.Window]] = {
    "tumbling": lambda r, s: W.tumbling(time_span(r, s, 9), offset=shift(r, s, 0, -3, 4)),
    "sliding": lambda r, s: W.sliding(
        time_span(r, s, 12), time_span(r, s, 5), offset=shift(r, s, 0, 0, -7, 1)
    ),
    "count": lambda r, s: W.count(r.randint(1, 6), r.randint(1, 7), partial=r.random() < 0.4),
    "session": lambda r, s: W.session(time_span(r, s, 4)),
    "slide_by_tuple": lambda r, s: W.slide_by_tuple(
        time_span(r, s, 9), r.randint(1, 5), partial=r.random() < 0.4
    ),
    "slide_by_time": lambda r, s: W.slide_by_time(
        r.randint(1, 5), time_span(r, s, 5), offset=shift(r, s, 0, 2, -1)
    ),
    "delta": lambda r, s: W.delta(
        "grows", r.choice([1, 3, 8, 2.5]), r.choice([0, 1, 3, 1.5]), partial=r.random() < 0.4
    ),
    "punctuation": lambda r, s: W.punctuation("b", partial=r.random() < 0.4),
    "threshold": lambda r, s: Threshold(r.choice(["i", "x"]), r.choice([-1.0, 0.0, 2.0])),
}
MERGEABLE = ("tumbling", "sliding", "session")
SHARED = range(2)
"""Seeds of the aggregates that tests have in common: each type of a column has its own kernels."""
FEW_TYPES = True
"""Whether random questions ask for those only, over columns of the same types."""


def perhaps(r: random.Random, nulls: float, value: Any) -> Any:
    return None if r.random() < nulls else value


def draw_type(r: random.Random, types: list[pa.DataType]) -> pa.DataType:
    """One of these types; the first where types are to be few."""
    drawn = r.choice(types)
    return types[0] if FEW_TYPES else drawn


def draw_table(r: random.Random, n: int, stamped: bool) -> pa.Table:
    """Events in any order of time, with equal times, nulls, NaN and several keys."""
    nulls = r.choice([0.0, 0.0, 0.2, 0.6])
    spread_ = r.choice([3, 15, 40, 200])
    times = [r.randint(-spread_ // 2, spread_) for _ in range(n)]
    if r.random() < 0.4:
        times.sort()
    floats = [-2.5, -1.0, -0.0, 0.0, 0.25, 1.0, 1.0, 3.5, 1e6, math.nan, math.inf, -math.inf]
    columns = {
        "k": pa.array([perhaps(r, nulls / 2, r.choice("abc")) for _ in range(n)], pa.string()),
        "h": pa.array([perhaps(r, nulls / 2, r.randint(-1, 2)) for _ in range(n)], pa.int32()),
        "t": pa.array([EPOCH + dt.timedelta(seconds=t) for t in times], pa.timestamp("us", "UTC"))
        if stamped
        else pa.array(times, r.choice([pa.int64(), pa.int32()])),
        "i": pa.array(
            [perhaps(r, nulls, r.choice([-3, 0, 1, 1, 2, 7, 2**40])) for _ in range(n)], pa.int64()
        ),
        "f": pa.array([perhaps(r, nulls, r.choice(floats)) for _ in range(n)], pa.float64()),
        "x": pa.array(
            [perhaps(r, nulls, r.randint(-40, 40) / 4) for _ in range(n)],
            draw_type(r, [pa.float64(), pa.float64(), pa.float32()]),
        ),
        "small": pa.array([perhaps(r, nulls, float(r.randint(1, 4))) for _ in range(n)]).cast(
            pa.float64()
        ),
        "s": pa.array(
            [perhaps(r, nulls, r.choice(["", "a", "b", "ä", "zz"])) for _ in range(n)]
        ).cast(pa.string()),
        "b": pa.array([perhaps(r, nulls, r.random() < 0.3) for _ in range(n)], pa.bool_()),
        "day": pa.array([perhaps(r, nulls, r.randint(0, 5)) for _ in range(n)], pa.int32()).cast(
            pa.date32()
        ),
        "price": pa.array(
            [perhaps(r, nulls, Decimal(r.randint(-999, 999)) / 100) for _ in range(n)],
            r.choice([pa.decimal128(5, 2), pa.decimal128(38, 10)]),
        ),
        "grows": pa.array([t / 2 for t in times] if r.random() < 0.5 else times, pa.float64()),
    }
    table = pa.table(columns)
    if n > 2 and r.random() < 0.3:
        cut = r.randint(1, n - 1)
        table = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    return table


def draw_size(r: random.Random, most: int) -> int:
    """How many events: tens of them in most tables, and in some few or none."""
    return r.randint(0, 9) if r.random() < 0.15 else r.randint(10, most)


def draw_case(
    r: random.Random,
    *,
    windows: tuple[str, ...] = tuple(WINDOWS),
    aggregates: tuple[str, ...] = tuple(AGGREGATES),
    most: int = 40,
) -> Case:
    """A question and a table."""
    stamped = r.random() < 0.4
    asked = {f"w{k}": WINDOWS[r.choice(windows)](r, stamped) for k in range(r.choice([1, 1, 2, 3]))}
    wanted = {f"a{k}": draw_aggregate(r, r.choice(aggregates)) for k in range(r.randint(1, 4))}
    key = r.choice([None, "k", "h", ["k", "h"]])
    query = pf.Query(asked, wanted, key=key, time="t")
    return Case(query, draw_table(r, draw_size(r, most), stamped))


def draw_aggregate(r: random.Random, name: str) -> A.Aggregate:
    """An aggregate of a name, over columns of few types or of any; `conftest.py` says when."""
    return seeded_aggregate(name, r.choice(SHARED)) if FEW_TYPES else AGGREGATES[name](r)


def seeded_aggregate(name: str, seed: int, text: bool = True) -> A.Aggregate:
    """An aggregate that its name and a seed decide: tests that share seeds share kernels."""
    r = random.Random(f"{name} {seed}")
    made = AGGREGATES[name](r)
    while not text and "s" in made.columns:
        made = AGGREGATES[name](r)
    return made


def full_case(
    seed: int,
    windows: tuple[str, ...],
    aggregates: Iterable[str],
    text: bool = True,
    *,
    columns: int | None = None,
) -> Case:
    """All of these aggregates in all of these windows, over a table of 10 to 60 events.

    `columns` is the seed of the aggregates, if it is not that of the windows and the table.
    """
    columns = seed if columns is None else columns
    r = random.Random(f"{windows} {seed}")
    stamped = r.random() < 0.4
    query = pf.Query(
        {kind: WINDOWS[kind](r, stamped) for kind in windows},
        {name: seeded_aggregate(name, columns, text) for name in aggregates},
        key=r.choice([None, "k", "h", ["k", "h"]]),
        time="t",
    )
    return Case(query, draw_table(r, r.randint(10, 60), stamped))


def check(case: Case, merge: str = "auto") -> None:
    """The table engine gives the oracle's rows."""
    expected = case.query.over(case.table, engine="oracle")
    assert_same_rows(case.query, case.query.over(case.table, merge=merge), expected)
    note_table(case.query, case.table.num_rows, expected)
