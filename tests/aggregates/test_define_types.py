"""The types of a user's aggregate are those of its functions; nothing is cut, nothing wraps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from paneflow.aggregates import SlowAggregateWarning
from tests.every_engine import engines

TABLE = pa.table(
    {
        "t": [1, 2, 3, 4],
        "i": [3, 10, 20, 1],
        "x": [1.5, 0.0, 2.0, -1.0],
        "y": [1.5, 9.0, 2.0, -1.0],
        "big": [4 * 10**9, 1, 2, 3],
        "b": [True, False, True, True],
    }
)
slowly = pytest.mark.filterwarnings("ignore::paneflow.aggregates.SlowAggregateWarning")


ENGINES = engines(TABLE)
every_engine = pytest.mark.parametrize("engine", ENGINES)


def asked(aggregate: A.Aggregate) -> pf.Query:
    return pf.Query(W.tumbling(10), {"r": aggregate}, time="t")


def add(a: Any, b: Any) -> Any:
    return a + b


def same(p: Any) -> Any:
    return p


def half_or_whole(p: int) -> Any:
    return p / 8 if p > 30 else p


capped = A.define(lambda x: min(x, 10.5), add, same, 0, commutative=True)("i")
halved = A.define(lambda x: x, add, half_or_whole, 0, commutative=True)("i")
squared = A.define(lambda x: x * x, add, same, 0, commutative=True, name="squared")("big")
summed = A.define(lambda x: x * 2**58, add, same, 0, commutative=True, name="summed")("i")
lowered = A.define(lambda x: x, add, lambda p: p << 60, 0, commutative=True, name="lowered")("i")
reciprocal = A.define(lambda x: 1 / x, add, same, 0.0, commutative=True, name="reciprocal")("x")
logarithm = A.define(lambda x: math.log(x), add, same, 0.0, commutative=True, name="log")("x")
beyond = A.define(lambda x: int(x * 2e18), add, same, 0, commutative=True, name="beyond")("y")
missing = A.define(lambda x: x, add, lambda p: 1 / (p - 34), 0, commutative=True, name="gap")("i")


@every_engine
def test_a_float_on_one_branch_makes_a_float(engine: str) -> None:
    assert ENGINES[engine](asked(capped))["r"].to_pylist() == [3 + 10 + 10.5 + 1]
    assert ENGINES[engine](asked(halved))["r"].to_pylist() == [34 / 8]


@every_engine
@pytest.mark.parametrize(
    ("aggregate", "said", "cause"),
    [
        (squared, r"squared\(big\).*int64", None),
        (reciprocal, r"reciprocal\(x\): lift\(0.0\) raised ZeroDivisionError", ZeroDivisionError),
        (missing, r"gap\(i\): lower\(34(.0)?\) raised ZeroDivisionError", ZeroDivisionError),
    ],
    ids=lambda given: str(given),
)
def test_errors_say_where_in_every_engine(
    engine: str, aggregate: A.Aggregate, said: str, cause: type | None
) -> None:
    with pytest.raises(pf.PaneflowError, match=said) as caught:
        ENGINES[engine](asked(aggregate))
    if cause is not None:
        assert isinstance(caught.value.__cause__, cause)


@pytest.mark.parametrize(
    ("aggregate", "said"),
    [
        (summed, r"summed\(i\): combine\(.*int64"),
        (lowered, r"lowered\(i\): lower\(34\) .*int64"),
        (logarithm, r"log\(x\): lift\(0.0\) raised ValueError"),
        (beyond, r"beyond\(y\): lift\(9.0\) .*int64"),
    ],
    ids=lambda given: str(given),
)
def test_what_compiled_code_cannot_hold_is_an_error(aggregate: A.Aggregate, said: str) -> None:
    with pytest.raises(pf.InputError, match=said):
        asked(aggregate).over(TABLE)


def test_a_value_that_a_function_reads_may_change() -> None:
    made = functions_that_read({"scale": 2.0})
    assert asked(made("x")).over(TABLE)["r"].to_pylist() == [5.0]
    made.lift.__globals__["scale"] = 3.0
    assert asked(made("x")).over(TABLE)["r"].to_pylist() == [7.5]


def functions_that_read(names: dict[str, Any]) -> Any:
    import linecache

    text = "lift = lambda x: x * scale\n"
    file = "<functions that read>"
    linecache.cache[file] = (len(text), None, [text], file)
    exec(compile(text, file, "exec"), names)
    return A.define(names["lift"], add, same, 0.0, commutative=True)


@slowly
@pytest.mark.parametrize(
    ("lower", "expected"),
    [
        (lambda p: None, None),
        (lambda p: (p, 1.5), [34.0, 1.5]),
        (lambda p: np.int64(p), 34),
        (lambda p: np.float32(p), 34.0),
        (lambda p: "many" if p > 3 else "few", "many"),
        (lambda p: p if p > 3 else False, 34),
        (lambda p: p if p > 99 else True, 1),
        (lambda p: {"p": p}, {"p": 34}),
        (float, 34.0),
    ],
    ids=["none", "tuple", "int64", "float32", "text", "int", "bool", "dict", "builtin"],
)
@pytest.mark.parametrize("engine", ["oracle", "table"])
def test_lower_may_give_anything_of_one_type(
    engine: str, lower: Callable[[Any], Any], expected: Any
) -> None:
    query = asked(A.define(lambda i: i, add, lower, 0, commutative=True)("i"))
    assert ENGINES[engine](query)["r"].to_pylist() == [expected]


@slowly
@pytest.mark.parametrize("engine", ["oracle", "table"])
def test_a_lower_that_takes_no_partial_is_refused(engine: str) -> None:
    query = asked(A.define(lambda i: i, add, len, 0, commutative=True)("i"))
    with pytest.raises(pf.PaneflowError, match="take no sample"):
        ENGINES[engine](query)


@pytest.mark.parametrize("identity", [(), (0,)], ids=str)
def test_partials_of_no_or_one_value_are_refused(identity: Any) -> None:
    with pytest.raises(pf.QueryError, match=r"no values|bare"):
        A.define(lambda x: identity, lambda a, b: a, same, identity, commutative=True)


def test_a_combine_that_changes_its_arguments_is_refused() -> None:
    def update(a: dict[int, int], b: dict[int, int]) -> dict[int, int]:
        a.update(b)
        return a

    with pytest.raises(pf.QueryError, match="combine changes its argument"):
        A.define(lambda x: {x: 1}, update, len, {}, commutative=True)


def test_many_definitions_are_never_taken_for_each_other() -> None:
    """Each is forgotten before the next is made, and their partials lie beside each other."""
    with pytest.warns(SlowAggregateWarning):
        for k in range(8):
            total = A.define(
                lambda x, k=k: {x: k}, lambda a, b: {**a, **b}, same_key, {}, commutative=True
            )
            other = A.define(
                lambda x, k=k: {x: -k}, lambda a, b: {**a, **b}, same_key, {}, commutative=True
            )
            query = pf.Query(W.tumbling(10), {"r": total("i"), "s": other("i")}, time="t")
            (row,) = query.over(TABLE).to_pylist()
            assert (row["r"], row["s"]) == (k, -k)


def same_key(p: Any) -> int:
    return int(next(iter(p.values()), 0))


WEIGHTS = np.array([0.5, 2.0, 4.0])


def test_an_array_that_a_function_reads_is_compiled_in_and_bounded() -> None:
    """Compiled code would read beyond its end without a word."""
    weighted = A.define(lambda i: WEIGHTS[i % 3] * i, add, same, 0.0, commutative=True)
    assert asked(weighted("i")).over(TABLE)["r"].to_pylist() == [1.5 + 20.0 + 80.0 + 2.0]
    outside = A.define(
        lambda i: WEIGHTS[i] * i, add, same, 0.0, commutative=True, samples=[1, 2], name="outside"
    )
    with pytest.raises(pf.InputError, match=r"outside\(i\): lift\(3\) raised IndexError"):
        asked(outside("i")).over(TABLE)
