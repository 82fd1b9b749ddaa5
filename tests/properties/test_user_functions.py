"""Random functions of a user's, in every way they can run: compiled, as Python, by the oracle.

Expressions over integers, floats and booleans are written as text, so that their types vary with
their branches. Compiled, they give what Python gives, or raise; they raise for no other reason
than Python's own, or an integer that leaves int64 on the way. Columns hold the ends of their
types.
"""

from __future__ import annotations

import linecache
import math
import operator
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates import SlowAggregateWarning
from paneflow.aggregates.kernels import compile_loop
from tests.properties.compare import alike, assert_same_rows

LEAST, MOST = -(2**63), 2**63 - 1
INTEGERS = [0, 1, -1, 2, 3, -7, 10, 63, 64, 2**31, 2**53 + 1, -(2**53) - 1, 2**62, LEAST, MOST]
FLOATS = [0.0, -0.0, 0.5, -2.5, 3.0, 1e-320, 2.0**53, 2.0**63, -(2.0**63), 1e300, math.inf]
EVENTS = [
    (i, x, b)
    for k, i in enumerate(INTEGERS)
    for x, b in ((FLOATS[k % len(FLOATS)], k % 2 == 0), (FLOATS[-1 - k % len(FLOATS)], k % 3 == 0))
]
ARGUMENTS = "i, x, b"
slowly = pytest.mark.filterwarnings("ignore::paneflow.aggregates.SlowAggregateWarning")


# Expressions.


def integer(r: random.Random, depth: int) -> str:
    if depth == 0:
        return r.choice(["i", "i", f"int({r.choice([0, 1, 2, 3, 7, -3, 2**40])})", "b"])
    a, b = integer(r, depth - 1), integer(r, depth - 1)
    return r.choice(
        [
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} // {b})",
            f"({a} % {b})",
            f"(-{a})",
            f"abs({a})",
            f"min({a}, {b})",
            f"max({a}, {b}, 3)",
            f"({a} ** {r.randint(0, 4)})",
            f"({a} << {r.randint(0, 9)})",
            f"({a} >> {r.randint(0, 70)})",
            f"({a} & {b})",
            f"({a} if {truth(r, depth - 1)} else {b})",
            f"int({real(r, depth - 1)})",
            f"({b} + {truth(r, depth - 1)})",
        ]
    )


def real(r: random.Random, depth: int) -> str:
    if depth == 0:
        return r.choice(["x", "x", repr(r.choice([0.5, -1.5, 3.0, 1e10])), "float(i)"])
    a, b = real(r, depth - 1), real(r, depth - 1)
    return r.choice(
        [
            f"({a} + {b})",
            f"({a} * {b})",
            f"({a} / {b})",
            f"({a} // {b})",
            f"({integer(r, depth - 1)} / {integer(r, depth - 1)})",
            f"({integer(r, depth - 1)} * {a})",
            f"(-{a})",
            f"abs({a})",
            f"min({a}, {b})",
            f"math.sqrt({a})",
            f"math.exp({a})",
            f"(abs({a}) ** {b})",
            f"({a} if {truth(r, depth - 1)} else {b})",
        ]
    )


def truth(r: random.Random, depth: int) -> str:
    if depth == 0:
        return r.choice(["b", "i > 2", "x < 1.5", "i == x", "(not b)"])
    sides = [r.choice([integer, real])(r, depth - 1) for _ in range(3)]
    sign = r.choice(["<", "<=", ">", ">=", "==", "!="])
    return r.choice(
        [
            f"({sides[0]} {sign} {sides[1]})",
            f"({sides[0]} <= {sides[1]} {sign} {sides[2]})",
            f"({truth(r, depth - 1)} and {truth(r, depth - 1)})",
            f"({truth(r, depth - 1)} or {truth(r, depth - 1)})",
            f"(not {truth(r, depth - 1)})",
        ]
    )


def mixed(r: random.Random, depth: int) -> str:
    """An integer or a float, as it comes."""
    whole, part = integer(r, depth), real(r, depth)
    return r.choice(
        [
            f"({whole} if {truth(r, depth)} else {part})",
            f"({part} if {truth(r, depth)} else {whole})",
            f"min({whole}, {part})",
            f"max({part}, {whole})",
        ]
    )


def function(text: str, *, source: bool = True, **names: Any) -> Callable[..., Any]:
    """A function of a text, which can be read again or not."""
    file = f"<random function {hash(text)}>" if source else "<nowhere>"
    if source:
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"math": math, **names}
    exec(compile(text, file, "exec"), space)
    made: Callable[..., Any] = space["f"]
    return made


# What Python gives, and whether an integer leaves int64 on the way.


class Int64(int):
    """An integer that cannot leave int64."""


def _limited(name: str) -> Any:
    bare = getattr(operator, name)

    def limited(a: Any, b: Any = None) -> Any:
        operands = (a,) if b is None else (a, b)
        plain = [int(o) if isinstance(o, int) else o for o in operands]
        return held(bare(*plain))

    def reflected(a: Any, b: Any) -> Any:
        return limited(b, a)

    return limited, reflected


def held(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        if not LEAST <= value <= MOST:
            raise OverflowError(value)
        return Int64(value)
    return value


for _name in ("add", "sub", "mul", "floordiv", "mod", "pow", "lshift", "rshift", "neg", "abs"):
    _plain, _reflected = _limited(_name)
    setattr(Int64, f"__{_name}__", _plain)
    if _name not in ("neg", "abs"):
        setattr(Int64, f"__r{_name}__", _reflected)


def outcome(run: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives, or the kind of its failure."""
    try:
        return run(*arguments)
    except (ArithmeticError, ValueError, pf.PaneflowError) as error:
        return error


def failed(given: Any) -> bool:
    return isinstance(given, Exception)


APPLIED = f"""
    def applied({ARGUMENTS}):
        return user_f({ARGUMENTS})
    """


def check_expression(text: str) -> None:
    source = f"def f({ARGUMENTS}):\n    return {text}\n"
    plain = function(source)
    limited = function(source, int=lambda v: held(int(v)))
    compiled = compile_loop("applied", {"user_f": plain}, APPLIED, "applied", checked=True)
    for i, x, b in EVENTS:
        expected = outcome(plain, i, x, b)
        given = outcome(compiled, i, x, b)
        overflow = isinstance(outcome(limited, Int64(i), x, Int64(b)), OverflowError)
        told = f"{text} of {(i, x, b)}: {given!r}, in Python {expected!r}"
        if isinstance(given, Exception):
            assert failed(expected) or overflow, told
        else:
            assert not failed(expected) and alike(float(given), float(expected), 1e-9), told


@pytest.mark.parametrize("seed", range(8))
def test_expressions_mean_what_they_mean_in_python(seed: int) -> None:
    r = random.Random(seed)
    check_expression(r.choice([integer, integer, real, truth, mixed])(r, 2))


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(8, 400))
def test_many_expressions_mean_what_they_mean_in_python(seed: int) -> None:
    r = random.Random(seed)
    check_expression(r.choice([integer, integer, real, truth, mixed])(r, r.choice([1, 2, 3])))


# Aggregates.

COMBINES = {
    "add": ("a + b", "0"),
    "most": ("max(a, b)", str(LEAST)),
    "least": ("b if b < a else a", "math.inf"),
    "both": ("(a[0] + b[0], a[1] + b[1])", "(0, 0.0)"),
}


def draw_aggregate(r: random.Random, source: bool) -> Any:
    """An aggregate over i, x and b; where partials mix integers and floats, lower is continuous."""
    combine, identity = COMBINES[name := r.choice(list(COMBINES))]
    depth = r.choice([0, 1, 2])
    lift = r.choice([integer, mixed])(r, depth)
    partial = "p"
    if name == "both":
        lift, partial = f"({integer(r, depth)}, {real(r, 0)})", r.choice(["p[0]", "p[1]"])
    lower = r.choice(
        [
            partial,
            f"{partial} / 2",
            f"{partial} + 1 if {partial} > 0 else 0.5",
            f"None if {partial} == 0 else {partial}",
            f"min({partial}, 10.5)",
            f"{partial} > 3",
        ]
    )
    texts = (
        f"def f({ARGUMENTS}):\n    return {lift}\n",
        f"def f(a, b):\n    return {combine}\n",
        f"def f(p):\n    return {lower}\n",
    )
    functions = [function(text, source=source) for text in texts]
    return A.define(
        *functions,
        eval(identity),
        commutative=True,
        samples=[(2, 0.5, True), (-3, 1.5, False), (0, 0.25, True), (7, 2.0, False)],
    )


def table(r: random.Random, extreme: bool) -> pa.Table:
    n = r.randint(5, 40)
    integers = INTEGERS if extreme else range(-9, 9)
    floats = [0.0, 0.5, -2.5, 3.0, 8.0]
    return pa.table(
        {
            "t": sorted(r.choices(range(30), k=n)),
            "i": pa.array(r.choices(integers, k=n), pa.int64()),
            "x": r.choices([*floats, None], k=n),
            "b": r.choices([True, False], k=n),
        }
    )


def check_aggregate(seed: int, source: bool) -> None:
    r = random.Random(seed)
    while True:
        try:
            aggregate = draw_aggregate(r, source)("i", "x", "b")
            break
        except pf.QueryError as error:
            assert "takes none of the samples" in str(error)
    window = r.choice([W.tumbling(10), W.sliding(9, 2), W.count(4, 2)])
    for extreme in (False, True):
        given = table(r, extreme)
        query = pf.Query(window, {"r": aggregate}, time="t")
        expected = outcome(lambda q=query, g=given: q.over(g, engine="oracle"))
        rows = outcome(lambda q=query, g=given: q.over(g))
        told = f"{aggregate.definition.lift.__code__.co_consts}: {rows!r}, expected {expected!r}"
        if isinstance(rows, Exception):
            assert isinstance(rows, pf.PaneflowError), told
            assert isinstance(expected, pf.PaneflowError) or "int64" in str(rows), told
            assert str(aggregate) in str(rows), told
        else:
            assert not isinstance(expected, Exception), told
            assert_same_rows(query, rows, expected)


@slowly
@pytest.mark.parametrize("seed", range(12))
def test_aggregates_that_run_as_python(seed: int) -> None:
    check_aggregate(seed, source=False)


@slowly
@pytest.mark.parametrize("seed", range(3))
def test_aggregates_that_are_compiled(seed: int) -> None:
    check_aggregate(seed, source=True)


@pytest.mark.exhaustive
@slowly
@pytest.mark.parametrize("seed", range(3, 100))
def test_many_aggregates_that_are_compiled(seed: int) -> None:
    check_aggregate(seed, source=True)


def test_functions_without_source_run_as_python() -> None:
    """So the tests above compare what they say."""
    aggregate = draw_aggregate(random.Random(1), False)("i", "x", "b")
    with pytest.warns(SlowAggregateWarning, match="cannot be read"):
        pf.Query(W.tumbling(9), {"r": aggregate}, time="t").over(table(random.Random(1), False))


# Functions of whole windows.

RETURNED = {
    "int8": pa.int8(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "text": pa.string(),
    "integers": pa.list_(pa.int64()),
    "record": pa.struct([("n", pa.int64()), ("x", pa.float64())]),
    "time": pa.timestamp("us"),
}
GIVEN = [
    "len(i)",
    "int(i.sum())",
    "i.max()",
    "float(x[0])",
    "x.mean()",
    "bool(b.any())",
    "b[0]",
    "[*i]",
    "i + 0.5",
    "x",
    "{'n': len(i), 'x': x[0]}",
    "{'n': x[0] / 2, 'x': 1}",
    "{'other': 1}",
    "'text'",
    "None",
    "i[0] / 2",
    "2**70",
    "float('nan')",
    "len(i) if b[0] else x[0] / 4",
    "None if b[0] else len(i)",
    "1 / (len(i) - 3)",
]


def exact(given: Any, held: Any) -> bool:
    """Whether a result column holds what a function gave."""
    if isinstance(given, dict):
        return given.keys() <= held.keys() and all(exact(v, held[k]) for k, v in given.items())
    if isinstance(given, list) or getattr(given, "ndim", 0):
        several = list(given)
        return len(several) == len(held) and all(map(exact, several, held))
    if given is None or held is None:
        return given is None and held is None
    return bool(given == held) or (given != given and held != held)


@pytest.mark.parametrize("seed", range(20))
def test_what_a_window_function_gives_comes_out_or_is_refused(seed: int) -> None:
    r = random.Random(seed)
    name = r.choice(list(RETURNED))
    run = function(f"def f(i, x, b):\n    return {r.choice(GIVEN)}\n")
    asked = A.apply(run, "i", "x", "b", returns=RETURNED[name])
    query = pf.Query(W.count(3, 2), {"r": asked}, time="t")
    given = table(r, False)
    rows = outcome(lambda: query.over(given))
    expected = outcome(lambda: query.over(given, engine="oracle"))
    if isinstance(expected, Exception):
        assert isinstance(rows, pf.InputError), rows
        assert str(asked) in str(rows)
    else:
        assert isinstance(rows, pa.Table), rows
        assert_same_rows(query, rows, expected)
    if not isinstance(expected, Exception) and name not in ("time", "float32"):
        alone = [run(*window) if len(window[0]) else None for window in whole_windows(given)]
        assert all(map(exact, alone, rows["r"].to_pylist())), (alone, rows["r"])


def whole_windows(given: pa.Table) -> list[tuple[Any, ...]]:
    """The arrays of windows of three events, without those in which x is null."""
    windows = []
    for start in range(0, given.num_rows - 2, 2):
        events = given.slice(start, 3)
        events = events.filter(events["x"].is_valid())
        windows.append(tuple(events[c].to_numpy() for c in ("i", "x", "b")))
    return windows
