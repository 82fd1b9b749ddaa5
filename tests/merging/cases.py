"""What the merge algorithms are tried on: aggregates with partials, traces, and window grids."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paneflow import aggregates as A
from paneflow.aggregates.aggregate import Constant
from paneflow.aggregates.operator import Array, Component, Input, Operator, Partials
from paneflow.aggregates.sums import float_sum
from paneflow.aggregates.values import Kind

EVENTS = 512
"""Different partials of a case; longer runs repeat them."""


@dataclass(frozen=True)
class Case:
    """An aggregate's operator and partials of single events.

    `laws` says what holds for the combine, apart from what the operator claims. `exact`: the
    order in which partials are grouped does not change a single bit.
    """

    name: str
    operator: Operator
    partials: Partials
    laws: frozenset[str] = frozenset()
    exact: bool = True
    lower: Callable[[Array, Partials], tuple[Any, Any]] | None = None

    def allowed_by(self, law: str | None) -> bool:
        """Whether an algorithm that rests on a law (or one of several) takes this aggregate."""
        return law is None or any(held in law for held in self.laws)

    def at(self, i: int) -> tuple[Any, ...]:
        """The partial of event i."""
        return tuple(column[i % EVENTS] for column in self.partials)

    def repeated(self, n: int) -> Partials:
        """The partials of n events."""
        return tuple(column[np.arange(n) % EVENTS] for column in self.partials)


def lift(operator: Operator, *columns: Array) -> Partials:
    """Every event's partial, by the operator's own plain Python functions."""
    lifted = operator.empty(len(columns[0]))
    for i, values in enumerate(zip(*columns, strict=True)):
        if operator.lift is not None:
            partial = operator.lift(*values, *operator.parameters)
        else:
            assert operator.absorb is not None
            start = operator.start()
            partial = operator.absorb(
                start[0] if operator.bare else start, *values, *operator.parameters
            )
        for column, value in zip(lifted, (partial,) if operator.bare else partial, strict=True):
            column[i] = value
    return lifted


def _of(
    name: str, aggregate: Constant, kinds: dict[str, Kind], *columns: Array, **options: Any
) -> Case:
    (operator,) = aggregate.operators(kinds)
    return Case(
        name,
        operator,
        lift(operator, *columns),
        lower=lambda n, merged: aggregate.lower(n, (merged,), kinds),
        **options,
    )


def _heisenberg(p, q):  # type: ignore[no-untyped-def]
    # Sums of x and of y, and of x * y over all pairs in which x comes before y.
    return p[0] + q[0], p[1] + q[1], p[2] + q[2] + p[0] * q[1]


def _without_first(whole, part):  # type: ignore[no-untyped-def]
    x, y = whole[0] - part[0], whole[1] - part[1]
    return x, y, whole[2] - part[2] - part[0] * y


def _latest(p, q):  # type: ignore[no-untyped-def]
    return q if q[0] else p


def _subtract(whole, part):  # type: ignore[no-untyped-def]
    return whole - part


def _join(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return a + b


def _add_rows(a, b):  # type: ignore[no-untyped-def]
    return a + b


def _subtract_rows(whole, part):  # type: ignore[no-untyped-def]
    return whole - part


def _greater_row(a, b):  # type: ignore[no-untyped-def]
    return b.copy() if b[0] > a[0] else a.copy()


def _longer(a: str, b: str) -> str:
    return b if len(b) > len(a) else a


PRIME = 2**31 - 1


def _compose(p, q):  # type: ignore[no-untyped-def]
    # x -> a * x + b, first p, then q.
    return p[0] * q[0] % PRIME, (p[1] * q[0] + q[1]) % PRIME


def _least_and_how_often(p, q):  # type: ignore[no-untyped-def]
    if p[0] == q[0]:
        return p[0], p[1] + q[1]
    return p if p[0] < q[0] else q


@functools.cache
def cases() -> dict[str, Case]:
    """All aggregates, by name."""
    rng = np.random.default_rng(2021)
    integers = rng.integers(-9, 10, EVENTS)
    floats = rng.uniform(0.5, 2.0, EVENTS)
    # Zeros of both signs, and NaN: what equality alone would confuse.
    odd = rng.choice([-0.0, 0.0, -1.5, -2.5, 0.5], EVENTS)
    odd[rng.random(EVENTS) < 0.02] = np.nan
    hashes = rng.integers(0, 2**63, EVENTS).astype(np.uint64)
    times = np.arange(EVENTS)
    integer, floating = {"v": Kind.INTEGER}, {"v": Kind.FLOAT}
    invertible, selective = frozenset({"invertible"}), frozenset({"selective"})
    affine = A.define(
        lift=lambda x: (x + 11, x * x + 1),
        combine=_compose,
        lower=lambda p: p[1],
        identity=(1, 0),
        commutative=False,
        samples=range(5),
        name="affine",
    )
    minima = A.define(
        lift=lambda x: (x, 1),
        combine=_least_and_how_often,
        lower=lambda p: p[1],
        identity=(math.inf, 0),
        commutative=True,
        name="min_count",
    )
    pairs = tuple(Component(name, "int64") for name in ("x", "y", "xy"))
    heisenberg = Operator(
        "heisenberg",
        (Input("v"),),
        pairs,
        (0, 0, 0),
        _heisenberg,
        lambda x: (x, x + 3, 0),
        bare=False,
        invert=_without_first,
    )
    latest = Operator(
        "latest",
        (Input("v"),),
        (Component("seen", "bool"), Component("value", "float64")),
        (False, 0.0),
        _latest,
        lambda x: (True, x),
        bare=False,
        selective=True,
    )
    values = Component("values", "object")
    collect = Operator(
        "collect", (Input("v"),), (values,), ((),), _join, lambda x: (int(x),), compiled=False
    )
    histogram = Operator(
        "histogram",
        (Input("v"),),
        (Component("counts", "int64", 4),),
        (0,),
        _add_rows,
        lambda x: np.bincount([x % 4], minlength=4),
        invert=_subtract_rows,
    )
    record = Operator(
        "record",
        (Input("v"),),
        (Component("row", "float64", 2),),
        (-math.inf,),
        _greater_row,
        lambda x: np.array([0.0 if x != x else x, x]),
        selective=True,
    )
    longest = Operator(
        "longest",
        (Input("v"),),
        (Component("word", "object"),),
        ("",),
        _longer,
        lambda x: chr(97 + x % 26) * (x * x % 23),
        selective=True,
        compiled=False,
    )
    # Lowering packs the filter's words, or solves for a density: the rows themselves say more.
    bloom = _of("bloom filter", A.bloom_filter("v", bits=256), floating, hashes)
    sketch = _of("moment sketch", A.moment_sketch("v", k=5), floating, floats, exact=False)
    drifting = replace(float_sum("v"), invert=_subtract)
    listed = [
        _of("sum", A.sum("v"), integer, integers, laws=invertible),
        _of("sum of floats", A.sum("v"), floating, floats, exact=False),
        _of("max", A.max("v"), floating, odd, laws=selective),
        _of("mean", A.mean("v"), integer, integers, laws=invertible),
        _of("std", A.std("v"), floating, floats, exact=False),
        _of("geometric mean", A.geometric_mean("v"), floating, floats, exact=False),
        _of(
            "argmax",
            A.arg_max("x", by="v"),
            {"x": Kind.INTEGER, "v": Kind.FLOAT},
            odd,
            times,
            integers,
            laws=selective,
        ),
        _of("min-count", minima("v"), floating, np.where(np.isnan(odd), 0.5, odd)),
        Case("collect", collect, lift(collect, times)),
        replace(bloom, lower=None),
        replace(sketch, lower=None),
        _of("affine maps", affine("v"), integer, integers),
        Case("ordered pairs", heisenberg, lift(heisenberg, integers), invertible),
        Case("latest", latest, lift(latest, odd), selective),
        Case("histogram", histogram, lift(histogram, integers), invertible),
        Case("record row", record, lift(record, odd), selective),
        Case("longest word", longest, lift(longest, times), selective),
        Case("drifting sum", drifting, lift(drifting, floats), exact=False),
    ]
    return {case.name: case for case in listed}


# Traces: i inserts the next partial, e evicts the oldest, q asks.


def _fill_and_drain() -> Iterator[str]:
    yield "q"
    for size in (1, 2, 3, 40):
        yield "iq" * size + "eq" * size


def _sawtooth() -> Iterator[str]:
    for top, bottom in ((33, 5), (20, 1), (50, 30), (60, 0), (7, 3)):
        yield "iq" * (top - bottom) + "eq" * (top - bottom) + "iq" * bottom


def _random_sizes() -> Iterator[str]:
    rng = np.random.default_rng(7)
    size = 0
    for step in range(900):
        growing = 0.6 if step // 150 % 2 == 0 else 0.4
        draw = rng.choice(["i", "e", "q"], p=[growing * 0.7, (1 - growing) * 0.7, 0.3])
        if draw != "e" or size > 0:
            size += {"i": 1, "e": -1, "q": 0}[draw]
            yield draw


def _bulk() -> Iterator[str]:
    rng = np.random.default_rng(8)
    size = 0
    for _ in range(30):
        more = int(rng.integers(0, 45))
        less = int(rng.integers(0, size + more + 1))
        size += more - less
        yield "i" * more + "q" + "e" * less + "q"


def _slides() -> Iterator[str]:
    for size, slide in ((1, 1), (8, 1), (21, 1), (16, 5)):
        yield "i" * size + "q" + ("e" * slide + "i" * slide + "q") * 70 + "e" * size


TRACES: dict[str, str] = {
    "fill and drain": "".join(_fill_and_drain()),
    "sawtooth": "".join(_sawtooth()),
    "random sizes": "".join(_random_sizes()),
    "bulk": "".join(_bulk()),
    "slides": "".join(_slides()),
}


@dataclass(frozen=True)
class Pair:
    """A range and a slide of the grids of Zhang et al.: counts, or milliseconds."""

    range: int
    slide: int
    timed: bool

    def __str__(self) -> str:
        return f"{self.range}{'ms' * self.timed}/{self.slide}{'ms' * self.timed}"


PAIRS = [
    *(Pair(2**k, 1, False) for k in range(3, 21)),
    *(Pair(2**17, slide, False) for slide in range(1, 11)),
    *(Pair(minutes * 60_000, 10, True) for minutes in range(6, 61, 6)),
    *(Pair(3_600_000, slide, True) for slide in range(10, 101, 10)),
]
"""Zhang, Akbarinia, Toumani, "Efficient Incremental Computation of Aggregations over Sliding
Windows" (KDD 2021), section 5.1.1: 28 count-based pairs and 20 time-based ones."""


def windows(pair: Pair, power: float = 1.0) -> tuple[Array, Array]:
    """The slices lo <= i < hi of each window of a pair, over three times a window's length.

    Slices are cut as in the source (section 2.2): one for each slide, or two where the slide
    does not divide the range; then a window is a number of whole slides and a remainder. `power`
    scales the number of whole slides down (0.5: 1,024 instead of 2**20) and keeps the remainder.
    In time windows some slices are absent because no event fell into them, once a whole stretch
    longer than a window, so that windows grow and shrink, and some are empty.
    """
    whole = max(2, round((pair.range // pair.slide) ** power))
    cut = 2 if pair.range % pair.slide else 1
    length = whole * cut + (cut - 1)
    lo = np.arange(0, 2 * length + 1, cut)
    hi = lo + length
    if not pair.timed:
        return lo, hi
    present = np.random.default_rng(pair.range + pair.slide).random(3 * length + cut) < 0.9
    present[length : 2 * length + 3] = False
    places = np.concatenate([[0], np.cumsum(present)])
    return places[lo], places[hi]
