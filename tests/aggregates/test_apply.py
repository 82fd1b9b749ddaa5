"""Functions of whole windows: what they are given, what they may give, how they fail."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import paneflow as pf
from paneflow import aggregates as A, windows as W
from tests.every_engine import engines
from tests.properties.compare import assert_same_rows

TABLE = pa.table(
    {
        "t": [1, 2, 3, 4, 5, 6],
        "x": [3.0, 1.0, 2.0, 6.0, 5.0, 4.0],
        "i": [3, 1, 2, 6, 5, 4],
        "b": [True, False, True, True, False, False],
        "s": ["c", "a", "b", "f", "e", "d"],
        "d": pa.array([3, 1, 2, 6, 5, 4], pa.timestamp("us")),
        "n": [3.0, None, 2.0, None, 5.0, 4.0],
    }
)


ENGINES = engines(TABLE)
every_engine = pytest.mark.parametrize("engine", ENGINES)
both = pytest.mark.parametrize("engine", ["oracle", "table"])


def asked(function: Callable[..., Any], *columns: str, returns: pa.DataType) -> pf.Query:
    return pf.Query(W.sliding(4, 2), {"r": A.apply(function, *columns, returns=returns)}, time="t")


def sorted_in_place(values: Any) -> Any:
    values.sort()
    return values[0]


def sorted_copy(values: Any) -> Any:
    return sorted_in_place(values.copy())


@every_engine
@pytest.mark.parametrize("column", ["x", "i", "b", "s", "d", "n"])
def test_arrays_are_read_only(engine: str, column: str) -> None:
    type_ = TABLE.schema.field(column).type
    with pytest.raises(pf.PaneflowError, match=r"sorted_in_place, .[,)].*copy an array") as caught:
        ENGINES[engine](asked(sorted_in_place, column, returns=type_))
    assert isinstance(cause(caught.value), ValueError)
    query = asked(sorted_copy, column, returns=type_)
    assert_same_rows(query, ENGINES[engine](query), query.over(TABLE, engine="oracle"))


def cause(error: BaseException | None) -> BaseException | None:
    """What paneflow's errors come from."""
    while isinstance(error, pf.PaneflowError):
        error = error.__cause__
    return error


@both
@pytest.mark.parametrize(
    ("given", "returns"),
    [
        (2.5, pa.int64()),
        (np.float64(2.5), pa.int64()),
        (2.5, pa.timestamp("us")),
        (float("nan"), pa.int64()),
        (2**63, pa.int64()),
        (300, pa.int8()),
        (1e300, pa.float32()),
        ("text", pa.float64()),
        (1, pa.bool_()),
        ([1, 2.5], pa.list_(pa.int64())),
        (np.array([1.0, 2.5]), pa.list_(pa.int64())),
        ({"a": 2.5}, pa.struct([("a", pa.int64())])),
        ({"b": 2}, pa.struct([("a", pa.int64())])),
        (..., pa.float64()),
        (2**60 + 1, pa.float64()),
    ],
    ids=repr,
)
def test_what_does_not_fit_is_an_error(engine: str, given: Any, returns: pa.DataType) -> None:
    with pytest.raises(pf.PaneflowError, match=r"apply\(.*returned .*does not fit into"):
        ENGINES[engine](asked(lambda x: given, "x", returns=returns))


@both
@pytest.mark.parametrize(
    ("given", "returns", "expected"),
    [
        (2.0, pa.int64(), 2),
        (np.int64(2), pa.float64(), 2.0),
        (np.float32(0.5), pa.float64(), 0.5),
        (np.array(3.0), pa.float64(), 3.0),
        (np.bool_(True), pa.bool_(), True),
        (None, pa.int64(), None),
        (float("nan"), pa.float64(), None),
        (np.arange(2), pa.list_(pa.int64()), [0, 1]),
        ((1, 2.0), pa.list_(pa.int64()), [1, 2]),
        ({"a": 2}, pa.struct([("a", pa.int64())]), {"a": 2}),
        ("ä", pa.string(), "ä"),
    ],
    ids=repr,
)
def test_what_fits(engine: str, given: Any, returns: pa.DataType, expected: Any) -> None:
    query = asked(lambda x: given, "x", returns=returns)
    rows = ENGINES[engine](query)
    assert_same_rows(query, rows, query.over(TABLE, engine="oracle"))
    if expected is not None:
        assert rows["r"].to_pylist()[0] == expected


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> float:
        return float(x.sum() * self.factor)

    def method(self, x: Any) -> float:
        return self(x)


@every_engine
@pytest.mark.parametrize(
    "function",
    [
        functools.partial(np.sum, initial=0.0),
        functools.partial(lambda extra, x: extra + len(x), 7.0),
        Scaled(2.0),
        Scaled(2.0).method,
        max,
        len,
        np.max,
        np.add.reduce,
    ],
    # Their own texts hold addresses, which differ between processes.
    ids=["partial", "partial lambda", "object", "method", "max", "len", "np.max", "np.add.reduce"],
)
def test_anything_that_can_be_called(engine: str, function: Callable[..., Any]) -> None:
    query = asked(function, "x", returns=pa.float64())
    assert_same_rows(query, ENGINES[engine](query), query.over(TABLE, engine="oracle"))


@every_engine
def test_a_failure_names_the_function_and_its_cause(engine: str) -> None:
    def failing(x: Any) -> float:
        if len(x) > 1:
            raise LookupError("more than one")
        return 0.0

    with pytest.raises(
        pf.PaneflowError, match=r"apply\(failing, x\).*LookupError: more than one.*\d events"
    ) as caught:
        ENGINES[engine](asked(failing, "x", returns=pa.float64()))
    assert isinstance(cause(caught.value), LookupError)
