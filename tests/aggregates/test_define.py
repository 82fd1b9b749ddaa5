"""A user's own aggregate: any way to write it gives the rows that its Python functions mean.

The oracle folds with the functions as they are; the table engine compiles them. Warnings are
errors in these tests, so a definition that is expected to compile fails if it does not.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from math import log as natural_logarithm
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates import SlowAggregateWarning
from paneflow.aggregates.aggregate import Constant
from paneflow.aggregates.values import kind_of
from paneflow.windows import Window
from tests.properties.compare import assert_same_rows

#  t    1    2    3    4    7    8   12
#  x  1.0  2.5  0.5  4.0  8.0  0.25 2.0
EVENTS = pa.table(
    {
        "t": [1, 2, 3, 4, 7, 8, 12],
        "k": ["a", "b", "a", "a", "b", "a", "a"],
        "x": [1.0, 2.5, 0.5, 4.0, 8.0, 0.25, 2.0],
        "i": [3, -1, 4, 1, -5, 9, 2],
        "b": [False, True, False, False, True, True, False],
        "s": ["on", "off", "", "on", "ä", "off", "zz"],
        "n": [1.0, None, 3.0, None, None, 4.0, None],
        "o": [None, None, 3.0, 1.0, None, 4.0, 2.0],
        "day": pa.array([3, 1, 4, 1, 5, 9, 2], pa.date32()),
    }
)
ALL = W.tumbling(100)
EVERY_MERGE = ("auto", "sba", "flat_fat")
WINDOWS: list[Window] = [ALL, W.sliding(4, 1), W.session(2), W.count(3, 1, partial=True)]
# Every definition compiles six kernels of its own.
later = functools.partial(pytest.param, marks=pytest.mark.long)


def values(
    aggregate: A.Aggregate, window: Window = ALL, *, merges: tuple[str, ...] = ("auto",)
) -> list[Any]:
    """The results of the table engine, which the oracle confirms."""
    query = pf.Query(window, {"r": aggregate}, time="t")
    expected = query.over(EVENTS, engine="oracle")
    for merge in merges:
        assert_same_rows(query, query.over(EVENTS, merge=merge), expected)
    results: list[Any] = expected.column("r").to_pylist()
    return results


def total(lift: Callable[..., Any], **options: Any) -> Any:
    """The sum of what `lift` gives, over whatever columns it is called with."""
    return A.define(
        lift,
        lambda a, b: a + b,
        lambda p: p,
        options.pop("identity", 0.0),
        commutative=True,
        **options,
    )


def compiled(aggregate: Constant) -> bool:
    kinds = {c: kind_of(EVENTS.schema.field(c).type, c) for c in aggregate.columns}
    return all(operator.compiled for operator in aggregate.operators(kinds))


# What it computes.


geometric = A.define(
    lift=lambda x: (math.log(x), 1),
    combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    lower=lambda p: math.exp(p[0] / p[1]),
    identity=(0.0, 0),
    commutative=True,
    name="geometric",
)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_a_geometric_mean_is_the_built_in_one(window: Window) -> None:
    assert compiled(geometric("x"))
    found = values(geometric("x"), window, merges=EVERY_MERGE)
    assert found == pytest.approx(values(A.geometric_mean("x"), window), rel=1e-12)


def test_several_columns() -> None:
    weighted = A.define(
        lambda value, weight: (value * weight, weight),
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lambda p: p[0] / p[1],
        (0.0, 0.0),
        commutative=True,
        samples=[(1.0, 2.0), (0.5, 4.0)],
    )
    weights, numbers = EVENTS["x"].to_pylist(), EVENTS["i"].to_pylist()
    products = sum(w * n for w, n in zip(weights, numbers, strict=True))
    assert values(weighted("i", "x"), ALL) == [pytest.approx(products / sum(weights))]
    for window in WINDOWS:
        assert values(weighted("i", "x"), window), "compared with the oracle's"


@pytest.mark.long
def test_columns_come_in_the_order_they_are_named() -> None:
    difference = total(lambda a, b: a - b, samples=[(1.0, 2.0)])
    assert values(difference("x", "i")) == [18.25 - 13]
    assert values(difference("i", "x")) == [13 - 18.25]
    assert values(difference("x", "x")) == [0.0]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_the_order_of_events_is_kept(window: Window) -> None:
    """Digits of a number, written one behind the other: associative, not commutative."""
    digits = A.define(
        lambda i: (abs(i), 10),
        lambda a, b: (a[0] * b[1] + b[0], a[1] * b[1]),
        lambda p: p[0],
        (0, 1),
        commutative=False,
    )
    assert not digits("i").laws.commutative
    found = values(digits("i"), window, merges=EVERY_MERGE)
    if window is ALL:
        assert found == [3141592]


def test_nulls_are_skipped() -> None:
    count = total(lambda n: 1, identity=0)
    assert values(count("n"), W.tumbling(4)) == [2, None, 1, None]
    both = total(lambda n, x: 1, identity=0, samples=[(1.0, 1.0)])
    assert values(both("n", "x"), W.tumbling(4)) == [2, None, 1, None]
    assert values(both("n", "o"), W.tumbling(4)) == [1, None, 1, None]
    assert values(both("o", "n"), W.tumbling(4)) == [1, None, 1, None]


def test_times_come_as_integers_in_their_unit() -> None:
    latest = A.define(lambda d: d, lambda a, b: max(a, b), lambda p: p, -(2**60), commutative=True)
    assert compiled(latest("day"))
    assert values(latest("day")) == [9]


# The types of partials and results.


@pytest.mark.parametrize(
    ("column", "lift", "identity", "type_", "expected"),
    [
        ("x", lambda x: x, 0.0, pa.float64(), 18.25),
        later("x", lambda x: x, 0, pa.float64(), 18.25),
        ("i", lambda i: i, 0, pa.int64(), 13),
        later("i", lambda i: i, 0.0, pa.float64(), 13.0),
        ("i", lambda i: i / 2, 0, pa.float64(), 6.5),
        later("i", lambda i: i // 2, 0, pa.int64(), 4),
        later("i", lambda i: i % 3, 0, pa.int64(), 7),
        ("b", lambda b: 1 if b else 0, 0, pa.int64(), 3),
        ("b", lambda b: b + 0.5, 0.0, pa.float64(), 6.5),
    ],
)
def test_numbers(
    column: str, lift: Callable[[Any], Any], identity: Any, type_: pa.DataType, expected: Any
) -> None:
    aggregate = total(lift, identity=identity)(column)
    query = pf.Query(ALL, {"r": aggregate}, time="t")
    assert query.over(EVENTS).schema.field("r").type == type_
    assert values(aggregate) == [expected]


def test_truth() -> None:
    either = A.define(
        lambda b: b,
        lambda a, b: a or b,
        lambda p: p,
        False,
        commutative=True,
        samples=[True, False],
    )
    assert compiled(either("b"))
    assert values(either("b"), W.tumbling(4)) == [True, True, True, False]
    never_high = A.define(
        lambda x: x > 3.0, lambda a, b: a or b, lambda p: not p, False, commutative=True
    )
    assert compiled(never_high("x"))
    assert values(never_high("x"), W.tumbling(4)) == [True, False, True, True]


def test_partials_of_several_types() -> None:
    mixed = A.define(
        lambda x: (x, 1, x > 3.0),
        lambda a, b: (a[0] + b[0], a[1] + b[1], a[2] or b[2]),
        lambda p: p[0] / p[1] if p[2] else -1.0,
        (0.0, 0, False),
        commutative=True,
    )
    assert compiled(mixed("x"))
    assert values(mixed("x"), W.tumbling(4)) == [-1.0, 6.0, -1.0, -1.0]


def test_a_lift_that_gives_integers_or_floats() -> None:
    """One type must hold both: cutting a float to an integer would be a wrong result."""
    assert values(total(lambda i: i if i > 0 else 0.5, identity=0)("i")) == [20.0]


def test_a_lower_that_gives_integers_or_floats() -> None:
    mean = A.define(
        lambda x: (x, 1),
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lambda p: p[0] / p[1] if p[1] > 1 else 0,
        (0.0, 0),
        commutative=True,
    )
    assert values(mean("x"), W.tumbling(4)) == [pytest.approx(4 / 3), 6.0, 0.0, 0.0]


def test_a_negative_power_of_integers_is_a_float() -> None:
    """In Python; compiled code would take it for an integer and give 0, so it is not used."""
    powers = [2.0 ** -abs(i) for i in EVENTS["i"].to_pylist()]
    with pytest.warns(SlowAggregateWarning, match="float if the second is negative"):
        assert values(total(lambda i: 2 ** -abs(i))("i")) == [sum(powers)]


@pytest.mark.parametrize(
    ("lower", "type_", "expected"),
    [
        (lambda p: "many" if p[1] > 2 else "few", pa.string(), ["many", "few", "few", "few"]),
        (lambda p: [p[0], p[0] / p[1]], pa.list_(pa.float64()), None),
        (lambda p: (p[0], p[0] / p[1]), pa.list_(pa.float64()), None),
        (lambda p: {"n": p[1]}, pa.struct([("n", pa.int64())]), [{"n": n} for n in (3, 2, 1, 1)]),
    ],
    ids=["text", "list", "tuple", "dict"],
)
def test_results_that_are_no_numbers(
    lower: Callable[[Any], Any], type_: pa.DataType, expected: list[Any] | None
) -> None:
    means = A.define(
        lambda x: (x, 1), lambda a, b: (a[0] + b[0], a[1] + b[1]), lower, (0.0, 0), commutative=True
    )
    query = pf.Query(W.tumbling(4), {"r": means("x")}, time="t")
    assert query.over(EVENTS).schema.field("r").type == type_
    found = values(means("x"), W.tumbling(4))
    assert found == (expected or [[4.0, 4 / 3], [12.0, 6.0], [0.25, 0.25], [2.0, 2.0]])


def test_a_result_may_be_missing() -> None:
    """None is how Python says null; a single value has no spread."""
    spread = A.define(
        lambda x: (x, x, 1),
        lambda a, b: (min(a[0], b[0]), max(a[1], b[1]), a[2] + b[2]),
        lambda p: p[1] - p[0] if p[2] > 1 else None,
        (math.inf, -math.inf, 0),
        commutative=True,
    )
    assert values(spread("x"), W.tumbling(4)) == [2.0, 4.0, None, None]


# Ways to write it.

SCALE = 3


def tripled(x: float) -> float:
    """A function that others call."""
    return x * SCALE


def by_definition(x: float) -> float:
    """With annotations and a docstring."""
    return x * 3


def by_helper(x: float) -> float:
    return tripled(x)


def by_helpers_helper(x: float) -> float:
    return by_helper(x) + 0.0


def by_closure(factor: float) -> Callable[[float], float]:
    def scaled(x: float) -> float:
        return x * factor

    return scaled


def by_loop(x: float) -> float:
    result = 0.0
    for _ in range(SCALE):
        result += x
    return result


def by_inner_function(x: float) -> float:
    def scaled(y: float) -> float:
        return y * 3

    return scaled(x)


def by_default(x: float, factor: float = SCALE) -> float:
    return x * factor


def announced(function: Callable[[float], float]) -> Callable[[float], float]:
    """A decorator that changes what a function gives."""

    @functools.wraps(function)
    def wrapper(x: float) -> float:
        return 3 * function(x)

    return wrapper


@announced
def by_decorator(x: float) -> float:
    return x


class Scaling:
    """Functions that are not plain functions."""

    factor = 3.0

    def __call__(self, x: float) -> float:
        return x * self.factor

    def method(self, x: float) -> float:
        return x * self.factor

    @staticmethod
    def static(x: float) -> float:
        return x * 3.0


def from_text() -> Callable[[float], float]:
    """A function whose source cannot be read again."""
    names: dict[str, Any] = {}
    exec("def scaled(x):\n    return x * 3.0", names)
    made: Callable[[float], float] = names["scaled"]
    return made


@pytest.mark.parametrize(
    "lift",
    [
        lambda x: x * 3,
        later(lambda x: tripled(x)),
        lambda x, factor=SCALE: x * factor,
        later(by_definition),
        later(by_helper),
        later(by_helpers_helper),
        later(by_closure(3.0)),
        by_closure(3),
        later(by_closure(np.float64(3.0))),
        later(by_loop),
        later(by_inner_function),
        by_default,
        later(by_decorator),
        numba.njit(by_definition),
        later(Scaling.static),
    ],
    ids=[
        "lambda",
        "lambda with helper",
        "lambda with default",
        "def",
        "helper",
        "helper of helper",
        "closure over a float",
        "closure over an integer",
        "closure over a NumPy float",
        "loop",
        "inner function",
        "default",
        "decorator",
        "compiled already",
        "static method",
    ],
)
def test_ways_to_write_a_function(lift: Callable[[float], float]) -> None:
    aggregate = total(lift)("x")
    assert compiled(aggregate)
    assert values(aggregate) == [54.75]


def test_a_function_without_source_runs_as_python() -> None:
    """Compiled as it is, it would wrap around where integers become too large."""
    with pytest.warns(SlowAggregateWarning, match="the source of scaled cannot be read"):
        assert values(total(from_text())("x")) == [54.75]


# Whether these can be compiled is for Numba to say; the rows are the same.
either_way = pytest.mark.filterwarnings("ignore::paneflow.aggregates.SlowAggregateWarning")


@either_way
@pytest.mark.parametrize(
    "lift",
    [
        lambda x: math.log(x),
        lambda x: natural_logarithm(x),
        lambda x: np.log(x),
        math.log,
        np.log,
    ],
    ids=["math.log(x)", "log(x)", "np.log(x)", "math.log", "np.log"],
)
def test_functions_of_libraries(lift: Callable[[float], float]) -> None:
    aggregate = total(lift, samples=[0.5, 2.0, 4.0])("x")
    assert values(aggregate) == [pytest.approx(sum(map(math.log, EVENTS["x"].to_pylist())))]


@either_way
@pytest.mark.parametrize(
    ("combine", "identity", "expected"),
    [
        (lambda a, b: max(a, b), -math.inf, 8.0),
        (max, -math.inf, 8.0),
        (np.maximum, -math.inf, 8.0),
        (operator.add, 0.0, 18.25),
    ],
    ids=["max(a, b)", "max", "np.maximum", "operator.add"],
)
def test_combines_that_are_built_in(
    combine: Callable[[Any, Any], Any], identity: float, expected: float
) -> None:
    aggregate = A.define(lambda x: x, combine, lambda p: p, identity, commutative=True)
    assert values(aggregate("x")) == [expected]


@either_way
@pytest.mark.parametrize(
    "lift",
    [Scaling(), Scaling().method, functools.partial(operator.mul, 3.0)],
    ids=["object", "method", "partial"],
)
def test_callables_that_are_no_functions(lift: Callable[[float], float]) -> None:
    assert values(total(lift)("x")) == [54.75]


def test_closures_of_one_function_are_different_functions() -> None:
    query = pf.Query(ALL, {f"by {n}": total(by_closure(n))("x") for n in (2.0, 3.0)}, time="t")
    (row,) = query.over(EVENTS).to_pylist()
    assert (row["by 2.0"], row["by 3.0"]) == (36.5, 54.75)


def test_functions_of_one_name_are_different_functions() -> None:
    def lift(x: float) -> float:
        return x

    plain = total(lift)("x")

    def lift(x: float) -> float:  # type: ignore[no-redef]
        return -x

    query = pf.Query(ALL, {"plain": plain, "negative": total(lift)("x")}, time="t")
    (row,) = query.over(EVENTS).to_pylist()
    assert (row["plain"], row["negative"]) == (18.25, -18.25)


@pytest.mark.long
def test_lambdas_on_one_line_are_told_apart() -> None:
    def made(*functions: Callable[..., Any]) -> A.Aggregate:
        lift, lower = functions
        return A.define(lift, lambda a, b: a + b, lower, 0.0, commutative=True)("x")

    plain = made(lambda x: x + 1, lambda x: x + 2)
    nested = made(lambda x: (lambda y: y + 1)(x), lambda x: (lambda y: y + 2)(x))
    assert values(plain) == [18.25 + 7 + 2]
    assert values(nested) == [18.25 + 7 + 2]


LEVEL = "info"


def test_a_constant_of_text() -> None:
    assert values(total(lambda x: 1.0 if LEVEL == "info" else 0.0)("x")) == [7.0]


# A user's functions may have any name, also one that paneflow's generated code uses.


def helper(x: float) -> float:
    return x * 3


combine = absorb = fold = merge = build = user_lift = user_combine = steps = trial = helper


@pytest.mark.parametrize(
    "lift",
    [
        lambda x: helper(x),
        later(lambda x: combine(x)),
        later(lambda x: absorb(x)),
        later(lambda x: fold(x)),
        later(lambda x: merge(x)),
        later(lambda x: build(x)),
        later(lambda x: user_lift(x)),
        later(lambda x: user_combine(x)),
        later(lambda x: trial(x)),
    ],
    ids=lambda lift: lift.__code__.co_names[0],
)
def test_names_of_helpers_do_not_matter(lift: Callable[[float], float]) -> None:
    aggregate = total(lift)("x")
    assert compiled(aggregate)
    assert values(aggregate) == [54.75]


def test_names_of_constants_do_not_matter() -> None:
    def lifts(compiled: float, numba: float, identity: float) -> Callable[[float], float]:
        def lift(x: float) -> float:
            return x * compiled * numba * identity

        return lift

    aggregate = total(lifts(3.0, 0.5, 2.0))("x")
    assert values(aggregate) == [54.75]


# What cannot be compiled runs as Python, and says so.


@pytest.mark.parametrize(
    ("lift", "combine", "lower", "identity", "expected"),
    [
        (
            lambda i: {i % 3: 1},
            lambda a, b: {k: a.get(k, 0) + b.get(k, 0) for k in a.keys() | b.keys()},
            lambda p: max(p.values()),
            {},
            [1, 2, 1, 1],
        ),
        (
            lambda i: [i],
            lambda a, b: sorted(a + b),
            lambda p: p[len(p) // 2],
            [],
            [3, 1, 9, 2],
        ),
        (
            lambda i: frozenset([i % 3]),
            lambda a, b: a | b,
            lambda p: len(p),
            frozenset(),
            [3, 1, 1, 1],
        ),
        (
            lambda i: str(abs(i)),
            lambda a, b: max(a, b),
            lambda p: int(p),
            "",
            [4, 5, 9, 2],
        ),
    ],
    ids=["dict", "list", "set", "text"],
)
def test_partials_that_are_no_numbers(
    lift: Callable[[int], Any],
    combine: Callable[[Any, Any], Any],
    lower: Callable[[Any], Any],
    identity: Any,
    expected: list[int],
) -> None:
    aggregate = A.define(
        lift, combine, lower, identity, commutative=True, name="odd", samples=[1, 2, 5]
    )("i")
    with pytest.warns(SlowAggregateWarning, match=r"odd\(i\) runs as plain Python"):
        found = values(aggregate, W.tumbling(4))
    assert found == expected
    assert not compiled(aggregate)
    assert values(aggregate, W.sliding(4, 1), merges=EVERY_MERGE)
    query = pf.Query(ALL, {"r": aggregate}, time="t")
    assert any("r" in why and "not compiled" in why for why in query.explain(EVENTS).reasons)


NAMES = {3: 1, 4: 2}


def test_a_function_that_numba_cannot_compile() -> None:
    aggregate = total(lambda i: NAMES.get(i, 0), identity=0, name="looked_up")("i")
    with pytest.warns(SlowAggregateWarning, match=r"looked_up\(i\) runs as plain Python"):
        assert values(aggregate) == [3]


def test_the_warning_says_why() -> None:
    aggregate = total(lambda i: NAMES.get(i, 0), identity=0)("i")
    with pytest.warns(SlowAggregateWarning) as caught:
        values(aggregate)
    assert "NAMES" in str(caught[0].message)


def test_text_columns() -> None:
    letters = total(lambda s: len(s), identity=0, name="letters")("s")
    with pytest.warns(SlowAggregateWarning, match=r"letters\(s\).*reads text"):
        assert values(letters, W.tumbling(4)) == [5, 3, 3, 2]
    sentence = A.define(
        lambda s: s,
        lambda a, b: a + b,
        lambda p: p,
        "",
        commutative=False,
        name="sentence",
        samples=["a", "bc", ""],
    )("s")
    with pytest.warns(SlowAggregateWarning, match=r"sentence\(s\)"):
        assert values(sentence, W.tumbling(4)) == ["onoff", "onä", "off", "zz"]


def test_text_beside_numbers() -> None:
    lit = total(lambda s, x: x if s == "on" else 0.0, samples=[("on", 1.0)], name="lit")("s", "x")
    with pytest.warns(SlowAggregateWarning, match=r"lit\(s, x\)"):
        assert values(lit, W.tumbling(4)) == [1.0, 4.0, 0.0, 0.0]


# Several at once, and beside built-in ones.


def test_beside_others() -> None:
    aggregates = {
        "defined": total(by_definition)("x"),
        "again": total(by_definition)("x"),
        "sum": A.sum("x"),
        "other": total(lambda x: x)("i"),
    }
    query = pf.Query([W.sliding(4, 1), W.session(2)], aggregates, key="k", time="t")
    assert_same_rows(query, query.over(EVENTS), query.over(EVENTS, engine="oracle"))


def test_explain_needs_no_table() -> None:
    bits = A.define(lambda i: i >> 1, lambda a, b: a | b, lambda p: p, 0, commutative=True)
    query = pf.Query(W.tumbling(4), {"r": bits("i")}, time="t")
    assert "define" in str(query.explain())
    assert query.finish(query.slice(EVENTS)).equals(query.over(EVENTS))
